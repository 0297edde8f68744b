"""The SQL that finds the messages of a line that may have a word of a query, and texts with a similar meaning."""

import hashlib

from app.kit.owners import CHAT_WIDE
from app.kit.planner import NOT_BY_INDEX, ONE_LOOKUP_EACH
from app.passages.keys import HASH, SHARE, name_analysis
from app.passages.progress import NAME

MOST_WITH_KEY = 1_000
"""How many messages with a key are considered: the last ones in the order of storage (see `_IN_INDEX`).

A key that more messages have says little about what is searched.
"""

MOST_IN_INDEX = 500
"""How many of the messages that the index finds in a chat are considered: those with the most and the rarest keys."""

MOST_NEAREST = 300
"""How many vectors are considered, the nearest ones."""

MOST_DEEP = 20_000
"""In a deep search, this replaces each of the three limits above.

The index and the vectors belong to the texts of a chat, and not to a line. So it can happen that most of the messages
that they find are deleted, are on another line, or are outside what a search is limited to. If a limit made a search
leave out messages, and the search found fewer than ENOUGH, it is repeated as a deep one.
"""

ENOUGH = 100

COMPARED = "0::float8"
"""The `likelihood` of the messages of `_NAMED`: indexed messages that contain a name from the query (`names.py`).

It is a placeholder. A search computes the likelihood of these messages, and of texts outside the index, from the
patterns that they contain. Patterns are substrings of the words of a query (`words.list_patterns`).
"""

# The cursor of `progress.py`. The cursor of a fork is ignored while it contains the key of the original chat.
# `has_names` is true if all messages up to `seq` have their names among the keys.
_PROGRESS = f"""
    SELECT coalesce((i.cursor ->> 'seq')::int, 0) AS seq,
        ARRAY(SELECT jsonb_array_elements_text(i.cursor -> 'changed')::int) AS changed,
        coalesce(i.cursor ->> 'analysis' = '{name_analysis("en")}' AND i.cursor -> 'remade' IS NULL, false) AS has_names
    FROM (SELECT CASE WHEN c.cursors -> '{NAME}' ->> 'chat' = c.chat_key::text
        THEN c.cursors -> '{NAME}' END AS cursor) AS i {ONE_LOOKUP_EACH}"""  # noqa: S608 - of constants

_NOT_IN_INDEX = f"""
        SELECT m.*, NULL::float8 AS likelihood FROM (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND line_id = c.line_id
                AND seq > greatest(i.seq, c.head_seq - {{most}}) AND {{where}}
            ORDER BY seq {ONE_LOOKUP_EACH}) AS m"""  # noqa: S608

_CHANGED = f"""
        SELECT m.*, NULL::float8 FROM unnest(i.changed) AS changed (seq) CROSS JOIN LATERAL (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND line_id = c.line_id AND seq = changed.seq AND {{where}}
            ORDER BY seq {ONE_LOOKUP_EACH}) AS m"""  # noqa: S608

# Each key is looked up for itself, so its rarity in the chat is known before any message is read. The rows of a key
# come in the order of storage, so the last ones are the newest, unless the index was made again: PostgreSQL stores a
# changed row where there is room. The rarities of a message's keys are added up.
_IN_INDEX = f"""
    SELECT c.chat_key, p.* FROM chats c CROSS JOIN LATERAL (
        SELECT array_agg(p.message_id) AS message_ids, array_agg(p.digest) AS digests,
            array_agg(p.likelihood) AS likelihoods, bool_or(p.is_cut) OR count(*) >= {{most_in_index}} AS is_cut
        FROM (
            SELECT found.message_id, found.digest, sum(found.rarity) AS likelihood, bool_or(found.is_cut) AS is_cut
            FROM (
                SELECT p.message_id, p.digest, p.number, p.messages_with > {{most_with_key}} AS is_cut,
                    wanted.share * ln(1 + c.message_count::float8 / p.messages_with) AS rarity
                FROM (
                    SELECT {HASH.format(chat_key="c.chat_key", key="k.key")} AS key, max({SHARE}) AS share
                    FROM unnest({{keys}}::text[]) AS k (key) GROUP BY 1 {ONE_LOOKUP_EACH}) AS wanted
                CROSS JOIN LATERAL (
                    SELECT p.message_id, p.digest, row_number() OVER () AS number, count(*) OVER () AS messages_with
                    FROM passages p
                    WHERE (p.chat_key = c.chat_key) {NOT_BY_INDEX} AND p.keys @> ARRAY[wanted.key]) AS p
                WHERE p.number > p.messages_with - {{most_with_key}}) AS found
            GROUP BY found.message_id, found.digest
            ORDER BY likelihood DESC, max(found.number) DESC LIMIT {{most}}) AS p) AS p
    WHERE p.is_cut IS NOT NULL AND {{which}}"""  # noqa: S608

# A frequent word that is written as a name, such as `Will`, is a key of its own (`names.py`). An index of a former
# release, or of a chat in a language other than English, lacks these keys. _MAY_LACK_NAMES is true if the query has
# such names and the index may lack them. Only then, `_NAMED` searches the newest indexed messages for the names.
# `in_index` may have found one of these messages, too, by other words of the query. The likelihood that it computed for
# the message then leaves the name out of account. So `_FOUND_BY_INDEX` skips the message, and the search computes its
# likelihood from the patterns (`COMPARED`).
_MAY_LACK_NAMES = "(SELECT {names}) IS NOT NULL AND NOT i.has_names"

_HAS_NAME = f"{_MAY_LACK_NAMES} AND seq > c.head_seq - {{most_named}} AND content ~ (SELECT {{names}})"

_NAMED = f"""
        SELECT m.*, {COMPARED} FROM (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND line_id = c.line_id AND {_MAY_LACK_NAMES}
                AND seq > c.head_seq - {{most_named}} AND seq <= i.seq AND seq <> ALL (i.changed) AND {{where}}
                AND content ~ (SELECT {{names}})
            ORDER BY seq DESC LIMIT {{most_named}}) AS m"""  # noqa: S608

# A folded key never begins with a capital of ASCII.
_NAMES = r"""'\m(' || string_agg(k.key, '|') || ')\M' FROM unnest({keys}::text[]) AS k (key) WHERE k.key ~ '^[A-Z]'"""

_FOUND_BY_INDEX = f"""
        SELECT m.*, p.likelihood FROM in_index CROSS JOIN LATERAL unnest(
            in_index.message_ids, in_index.digests, in_index.likelihoods) AS p (message_id, digest, likelihood)
        CROSS JOIN LATERAL (
            SELECT * FROM messages
            WHERE chat_key = c.chat_key AND message_id = p.message_id AND line_id = c.line_id AND {{where}}
            {ONE_LOOKUP_EACH}) AS m
        WHERE in_index.chat_key = c.chat_key AND m.digest = p.digest AND m.seq <= i.seq
            AND m.seq <> ALL (i.changed) AND NOT ({_HAS_NAME})"""  # noqa: S608


def write_in_index(which: str, keys: str, deep: str, most_in_index: int = MOST_IN_INDEX) -> str:
    """Return the query `in_index`, which finds the texts with at least one of the `keys`, for `write_messages`.

    It has one row for each chat with such texts. If it had one row for each text, a search in many chats would read the
    rows of all chats again for each chat, to find the rows of that chat. The columns are `chat_key`, the arrays
    `message_ids`, `digests` and `likelihoods` of the texts, and `is_cut`. The likelihood is the sum of the rarities of
    the keys that a text has. The rarity of a key is ln(1 + messages of the line / texts with the key), times
    `keys.SHARE`. `is_cut` is true if texts of the chat may have been left out: if the row has `most_in_index` texts or
    more, or if one of its texts has one of the `keys` that more than MOST_WITH_KEY texts of the chat have. A deep
    search does not use `is_cut`.

    Args:
        which: A condition on rows `c` of `chats`: the lines that are searched, at most one of each chat.
        keys: The parameter with the keys, such as `$8`; they are made by `list_wanted`.
        deep: The parameter that says whether the search is a deep one.
        most_in_index: How many texts of a chat are considered at most, those with the most and the rarest keys.

    """
    most_with_key = f"(CASE WHEN {deep}::boolean THEN {MOST_DEEP} ELSE {MOST_WITH_KEY} END)"
    most = f"(CASE WHEN {deep}::boolean THEN {MOST_DEEP} ELSE {most_in_index} END)"
    return _IN_INDEX.format(which=which, keys=keys, most_with_key=most_with_key, most=most, most_in_index=most_in_index)


def write_messages(where: str, most: int, keys: str, most_named: int) -> str:
    """Return a query on the line's row `c` for the messages that `in_index` has found, and those it may have missed.

    Its columns are those of `messages`, and `likelihood`. The likelihood is that of `in_index`, COMPARED for the
    messages of `_NAMED`, and NULL for messages that are not in the index or have changed since they were put there.
    Each message is in one row.

    Args:
        where: A condition on the columns of `messages`.
        most: How many seqs at the end of the line are considered. The messages there that are not in the index yet are
            read. Messages that have changed since they were put into the index are always read.
        keys: The parameter with the keys.
        most_named: How many seqs at the end of the line are considered for the names among the keys (`names.py`), if
            the index may lack names. The indexed messages there are compared with these names.

    """
    parts = (_NOT_IN_INDEX, _CHANGED, _FOUND_BY_INDEX, _NAMED)
    names = _NAMES.format(keys=keys)
    found = "\n        UNION ALL".join(
        part.format(where=where, most=most, names=names, most_named=most_named) for part in parts
    )
    return f"SELECT m.* FROM ({_PROGRESS}) AS i CROSS JOIN LATERAL ({found}) AS m"  # noqa: S608


def write_outside_index(where: str, most: int) -> str:
    """Return a query on the line's row `c` for those messages of `write_messages` that are not in the index."""
    found = "\n        UNION ALL".join(part.format(where=where, most=most) for part in (_NOT_IN_INDEX, _CHANGED))
    return f"SELECT m.* FROM ({_PROGRESS}) AS i CROSS JOIN LATERAL ({found}) AS m"  # noqa: S608


SAMPLED = 500
"""How many vectors of each chat are read to find the lowest similarity (`lowest`). To read all would be slower."""

NEAREST_COLUMNS = "chat_key, message_id, digest, similarity, lowest"

_MODEL = """(SELECT model_id FROM embedding_models
                WHERE name = {model} AND dimension = vector_dims({vector}::text::halfvec))"""

_UNRELATED = """SELECT unrelated_similarity FROM embedding_models
        WHERE name = {model} AND dimension = vector_dims({vector}::text::halfvec)"""

_COMPARED = f"""
        SELECT chat_key, message_id, digest, -(vector <#> (SELECT {{vector}}::text::halfvec))::float8 AS similarity
        FROM vectors
        WHERE chat_key = searched.chat_key AND line_id = '{CHAT_WIDE}' AND model_id = {_MODEL}"""  # noqa: S608

_NEAREST = f"""
    WITH searched AS MATERIALIZED (SELECT DISTINCT c.chat_key FROM chats c WHERE {{which}})
    SELECT v.chat_key, v.message_id, v.digest, v.similarity, (
        SELECT min(v.similarity) FROM searched CROSS JOIN LATERAL (
            {_COMPARED} ORDER BY chat_key, line_id, model_id LIMIT {SAMPLED}) AS v) AS lowest
    FROM searched CROSS JOIN LATERAL ({_COMPARED} {ONE_LOOKUP_EACH}) AS v
    ORDER BY v.similarity DESC LIMIT (CASE WHEN {{deep}}::boolean THEN {MOST_DEEP} ELSE {MOST_NEAREST} END)"""  # noqa: S608

_SIMILARITY = f"""
    SELECT max(-(v.vector <#> (SELECT {{vector}}::text::halfvec)))::float8 AS similarity FROM vectors v
    WHERE {{text}}.similarity IS NULL AND v.chat_key = {{text}}.chat_key AND v.line_id = '{CHAT_WIDE}'
        AND v.model_id = {_MODEL} AND v.message_id = substr({{text}}.source, length('message:') + 1)
        AND v.digest = {{text}}.digest {ONE_LOOKUP_EACH}"""  # noqa: S608

_TEXT_SIMILARITY = f"""
    SELECT max(-(v.vector <#> (SELECT {{vector}}::text::halfvec)))::float8 AS similarity FROM text_vectors v
    WHERE {{if_}} AND v.chat_key = {{chat_key}} AND v.line_id = '{CHAT_WIDE}' AND v.model_id = {_MODEL}
        AND v.digest = {{digest}} {ONE_LOOKUP_EACH}"""  # noqa: S608

_TEXT_SIMILARITIES = f"""
    SELECT digest, max(-(vector <#> (SELECT {{vector}}::text::halfvec)))::float8 AS similarity FROM text_vectors
    WHERE {{chats}} AND line_id = '{CHAT_WIDE}' AND model_id = {_MODEL}
    GROUP BY digest"""  # noqa: S608

_NEAR = f"""
    SELECT m.*, NULL::float8 AS likelihood, nearest.similarity FROM nearest CROSS JOIN LATERAL (
        SELECT * FROM messages
        WHERE chat_key = c.chat_key AND message_id = nearest.message_id AND line_id = c.line_id AND {{where}}
        {ONE_LOOKUP_EACH}) AS m
    WHERE nearest.chat_key = c.chat_key AND m.digest = nearest.digest"""  # noqa: S608


def write_nearest(which: str, vector: str, model: str, deep: str) -> str:
    """Return the query for the vectors that are nearest to a given one; its columns are NEAREST_COLUMNS.

    All vectors of the chats are compared. `similarity` is the cosine. `lowest` is the same in all rows: the lowest
    cosine in a sample that has up to SAMPLED vectors of each chat. A text of several parts can occur several times.

    Args:
        which: A condition on rows `c` of `chats`: the chats that are searched.
        vector: The parameter with the vector, as text.
        model: The parameter with the name of its model.
        deep: The parameter that says whether the search is a deep one.

    """
    return _NEAREST.format(which=which, vector=vector, model=model, deep=deep)


def write_near_messages(where: str) -> str:
    """Return a query on the line's row `c` for its messages that the query `nearest` has found.

    Its columns are those of `messages`, `likelihood` (NULL) and `similarity`. `where` is a condition on the columns of
    `messages`.
    """
    return _NEAR.format(where=where)


def write_text_digest(text: str) -> str:
    """Return the digest of a layer's text, given as SQL; `digest_text` is the same in Python."""
    return f"sha256(convert_to({text}, 'UTF8'))"


def digest_text(text: str) -> bytes:
    """Return the digest of a layer's text."""
    return hashlib.sha256(text.encode()).digest()


def write_text_similarity(text: str, chat_key: str, condition: str, vector: str, model: str) -> str:
    """Return the query for the similarity of a layer's text, which is NULL if the text has no vector.

    Args:
        text: The text, as SQL.
        chat_key: The key of its chat, as SQL.
        condition: The similarity is looked up only if this SQL condition is true.
        vector: The parameter with the vector, as text.
        model: The parameter with the name of its model.

    """
    return _TEXT_SIMILARITY.format(
        digest=write_text_digest(text), chat_key=chat_key, if_=condition, vector=vector, model=model
    )


def write_text_similarities(chats: str, vector: str, model: str) -> str:
    """Return the query for the `digest` and the `similarity` of the layers' texts in some chats.

    Args:
        chats: A condition on the column `chat_key`.
        vector: The parameter with the vector, as text.
        model: The parameter with the name of its model.

    """
    return _TEXT_SIMILARITIES.format(chats=chats, vector=vector, model=model)


def write_unrelated(vector: str, model: str) -> str:
    """Return the query for the cosine of unrelated texts (`embeddings.scale`), which is NULL if it is not measured yet.

    The parameters are those of `write_nearest`.
    """
    return _UNRELATED.format(vector=vector, model=model)


def write_similarity(text: str, vector: str, model: str) -> str:
    """Return the query for the similarity of a found message whose similarity is not known yet.

    The result is NULL for other texts, and for messages without a vector. `text` is the alias of the row, with the
    columns `source`, `chat_key`, `digest` and `similarity`; the parameters are those of `write_nearest`.
    """
    return _SIMILARITY.format(text=text, vector=vector, model=model)
