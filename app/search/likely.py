"""The SQL that chooses the texts which are ranked: those with the most and the rarest words, or with a near meaning."""

from typing import NamedTuple

from app.kit.planner import WITH_HASH_TABLE
from app.layers.documents import COLUMNS
from app.passages.lookup import (
    COMPARED,
    ENOUGH,
    MOST_NEAREST,
    NEAREST_COLUMNS,
    write_in_index,
    write_nearest,
    write_similarity,
    write_text_similarities,
    write_text_similarity,
    write_unrelated,
)

MAX_NEAR = 100
"""How many messages are ranked because of their meaning, whatever their words: the nearest ones."""

MAX_NEAR_TEXTS = 50
"""The same for the texts of the layers."""

IS_LISTED = "split_part({text}.source, ':', 1) = ANY ($11::text[])"
"""The condition for texts of the kinds $11. All of them are returned, so the choice of the likely texts skips them."""

_LIKELY = """
    WITH {nearest}in_index AS MATERIALIZED ({in_index}
    ), texts AS MATERIALIZED ({texts}
    ), total AS (
        SELECT count(*) FILTER (WHERE role IS NULL) + (
            SELECT coalesce(sum(message_count), 0) FROM (SELECT DISTINCT chat_key, message_count FROM texts) AS chats
        ) AS texts, NOT {deep}::boolean AND ((
            count(likelihood) < {enough} AND EXISTS (SELECT FROM in_index WHERE is_cut)
        ){or_few_near}) AS is_cut FROM texts
    ), matches AS (
        SELECT t.number, t.last_seq, count(*) OVER (PARTITION BY p.pattern) AS found
        FROM texts t JOIN unnest({patterns}::text[]) AS p (pattern) ON strpos(t.lowered, p.pattern) > 0{unlisted}
    ), likely AS (
        SELECT number FROM (
            SELECT m.number, m.last_seq, sum(ln(1 + total.texts::float8 / m.found)) AS likelihood
            FROM matches m CROSS JOIN total GROUP BY m.number, m.last_seq
            UNION ALL SELECT number, last_seq, likelihood FROM texts WHERE likelihood > {compared}
        ) AS found ORDER BY likelihood DESC, last_seq DESC, number DESC LIMIT {most}
    )
    SELECT {columns}, role, name, {similarity}, total.texts, total.is_cut{more}
    FROM total LEFT JOIN texts ON (number IN (SELECT number FROM likely)) {hashed}{or_near}{or_listed}{own}
    {text_similarities}"""

_OR_NEAR = """
        OR (texts.similarity IS NOT NULL AND (number IN (
            SELECT number FROM texts WHERE role {of} AND similarity IS NOT NULL
            ORDER BY similarity DESC LIMIT {most})) {hashed})"""

_OR_FEW_NEAR = f"""
            OR (count(similarity) FILTER (WHERE role IS NOT NULL) < {ENOUGH}
                AND (SELECT count(*) FROM nearest) >= {MOST_NEAREST})"""  # noqa: S608 - of constants

_NO_SIMILARITY = "NULL::float8 AS similarity, NULL::float8 AS lowest, NULL::float8 AS unrelated"
_SIMILARITY = """coalesce(texts.similarity, own.similarity) AS similarity,
        (SELECT lowest FROM nearest LIMIT 1) AS lowest, ({unrelated}) AS unrelated"""

# The process has remembered the texts of the layers (`known.py`), so this part returns only the similarity of each
# text, with its digest.
_TEXT_SIMILARITIES = """
    UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, near.similarity,
        NULL, NULL, total.texts, total.is_cut, near.digest
    FROM total CROSS JOIN ({near}) AS near WHERE $16::boolean"""


class Parameters(NamedTuple):
    """The numbers of the parameters of a statement.

    Attributes:
        patterns: The substrings that are compared with the texts.
        keys: The keys in the index of words.
        deep: Whether the search is a deep one (`passages.lookup.MOST_DEEP`). With vectors, the next two parameters are
            the vector and its model.
        with_vectors: Whether vectors are compared.

    """

    patterns: int
    keys: int
    deep: int
    with_vectors: bool

    @property
    def given(self) -> tuple[str, str] | None:
        """The parameters with the vector and its model; None without vectors."""
        return (f"${self.deep + 1}", f"${self.deep + 2}") if self.with_vectors else None


def write_near(text: str, chat_key: str, condition: str, parameters: Parameters) -> tuple[str, str]:
    """Return the SQL of the column with the similarity of the layers' texts, and of the join that the column needs.

    `text` is the alias of the texts. The similarity is looked up only for texts for which `condition` is true.
    """
    if not (given := parameters.given):
        return "NULL::float8 AS similarity", ""
    looked_up = write_text_similarity(f"{text}.text", chat_key, condition, *given)
    return "near.similarity", f" LEFT JOIN LATERAL ({looked_up}) AS near ON true"


def write_likely(
    texts: str,
    parameters: Parameters,
    most: int,
    *,
    which: str,
    most_in_index: int,
    more: str = "",
    listed: bool = False,
) -> str:
    """Return the SQL statement that reads the texts to be ranked.

    It looks up the similarity of each message that was found by its words, because such a message is not always among
    the nearest ones.

    Args:
        texts: The query of all texts that a search compares. Besides the fields of `Document`, it has the columns
            `number` (unique), `chat_key`, `message_count` (of the chat), `lowered` (compared with the patterns),
            `role`, `name`, `digest`, `likelihood` and `similarity`. `role` is NULL if the text is not a message.
        parameters: The numbers of the parameters.
        most: How many texts are chosen by their words.
        which: A condition on rows `c` of `chats`: the lines that are searched.
        most_in_index: How many messages of each chat the index finds at most.
        more: Further columns to return, as SQL that begins with a comma.
        listed: Whether all texts of some kinds are returned (`IS_LISTED`), and with vectors also the similarities
            of the layers' texts, by digest.

    """
    deep = f"${parameters.deep}"
    given = parameters.given
    nearest = write_nearest(which, *given, deep) if given else ""
    own = f" LEFT JOIN LATERAL ({write_similarity('texts', *given)}) AS own ON true" if given else ""
    return _LIKELY.format(
        texts=texts,
        in_index=write_in_index(which, f"${parameters.keys}", deep, most_in_index),
        deep=deep,
        compared=COMPARED,
        enough=ENOUGH,
        or_few_near=_OR_FEW_NEAR if given else "",
        patterns=f"${parameters.patterns}",
        columns=COLUMNS,
        most=most,
        more=more,
        nearest=f"nearest ({NEAREST_COLUMNS}) AS MATERIALIZED ({nearest}), " if given else "",
        similarity=_SIMILARITY.format(unrelated=write_unrelated(*given)) if given else _NO_SIMILARITY,
        own=own,
        hashed=WITH_HASH_TABLE,
        or_near="".join(
            _OR_NEAR.format(of=of, most=most, hashed=WITH_HASH_TABLE)
            for of, most in (("IS NOT NULL", MAX_NEAR), ("IS NULL", MAX_NEAR_TEXTS))
        )
        if given
        else "",
        text_similarities=_TEXT_SIMILARITIES.format(near=write_text_similarities("chat_key = $1", *given))
        if given and listed
        else "",
        unlisted=f" AND NOT {IS_LISTED.format(text='t')}" if listed else "",
        or_listed=f" OR {IS_LISTED.format(text='texts')}" if listed else "",
    )
