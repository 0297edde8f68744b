"""The SQL statement of a search: the texts of the layers, and messages, that may contain a word of the query."""

from collections.abc import Sequence
from typing import NamedTuple

from app.kit.planner import COMPUTED_ONCE, ONE_LOOKUP_EACH
from app.knowledge.liveness import keep_to_chat
from app.layers.documents import (
    COLUMNS,
    Document,
    write_documents,
    write_scope_documents,
    write_shared_documents,
)
from app.layers.layer import Layer
from app.messages.rules import IS_HIDDEN_BY_SCENES, IS_NOT_DELETED, IS_NOT_HIDDEN_BY_USER, IS_OF_STORY, qualify
from app.passages.lookup import (
    COMPARED,
    MOST_IN_INDEX,
    write_messages,
    write_near_messages,
    write_text_digest,
    write_text_similarities,
)
from app.search.likely import IS_LISTED, Parameters, write_likely, write_near
from app.search.scopes import write_scopes

MAX_MESSAGES = 1_000
"""Recall reads at most this many messages that are not in the index of words: the newest ones."""

MAX_MESSAGES_LOOKED_UP = 10_000
"""The same for a person's search."""

MAX_NAMED = 1_000
"""How many seqs at the end of a line are considered when indexed messages are compared with the names in a query.

The comparison is made only if the index may lack names (`passages/names.py`, `passages/lookup.py`).
"""

MAX_OF_EACH_CHAT = 150
"""A search over a user's chats reads at most this many indexed messages of each chat: those with the rarest words.

In such a search, it also replaces MAX_NAMED.
"""

MAX_MESSAGE_TOKENS = 2_000
"""Longer messages are not recalled."""

MAX_CANDIDATES = 150
"""How many texts are ranked because of their words: those with the most and the rarest words of the query."""

MAX_LOOKED_UP = 300
"""The same for a person's search, which answers with up to 100 results."""

# Messages that scenes hide are out of the history, too. What is excluded from summaries is not recalled either.
_IS_RECALLED = f"""{IS_NOT_DELETED} AND kind IS NULL AND NOT blank AND NOT excluded AND tokens <= $9
        AND {IS_OF_STORY}
        AND ({IS_HIDDEN_BY_SCENES} OR (hidden_by IS NULL AND seq < c.anchor_seq))
        AND (q.before_seq IS NULL OR seq < q.before_seq)"""

_IS_LOOKED_UP = f"""{IS_NOT_DELETED} AND kind IS NULL AND NOT blank AND {IS_NOT_HIDDEN_BY_USER}
        AND {IS_OF_STORY}
        AND ($3::text IS NULL OR (role = 'assistant'
            AND (name = $3 OR (name IS NULL AND jsonb_array_length(c.characters) < 2))))"""

_MESSAGES = """
    SELECT 'message:' || m.message_id, m.content, m.seq AS first_seq, m.seq AS last_seq, NULL::text,
        m.importance::float8, m.role, m.name, m.digest, m.likelihood, {similarity}
    FROM ({messages}) AS m"""

_LIGATURES = {"œ": "oe", "æ": "ae", "Œ": "oe", "Æ": "ae"}
_FOLDED_LETTERS = {"ς": "σ", "ß": "ss", **_LIGATURES, **dict(zip("øłđØŁĐ", "oldold", strict=True))}


def _write_folded(text: str) -> str:
    """Return SQL for a text as `words.fold` and `words.drop_accents` fold the query, as far as SQL can.

    `translate` instead of one `replace` for each letter would take as long as all the rest.
    """
    bare = rf"lower(regexp_replace(normalize({text}, NFKD), '[\u0300-\u036f]+', '', 'g'))"
    for letter, folded in _FOLDED_LETTERS.items():
        bare = f"replace({bare}, '{letter}', '{folded}')"
    return bare


# The patterns of the query are compared with the texts of layers, with messages outside the index, and with messages of
# the index that have a name of the query (COMPARED). All other rows, which the index or a vector has found, are not
# compared. A message outside the index can have such a row, too, beside the one that is compared.
_LOWERED = f"""' ' || CASE
        WHEN {{text}}.role IS NULL OR {{text}}.likelihood = {{compared}}
            OR ({{text}}.likelihood IS NULL AND {{text}}.similarity IS NULL) THEN CASE
            WHEN octet_length({{text}}.text) = length({{text}}.text) THEN lower({{text}}.text)
            ELSE {_write_folded("{text}.text")}
        END END"""

_TEXTS = f"""
    SELECT row_number() OVER () AS number, d.*, c.chat_key, c.message_count, {{lowered}} AS lowered
    FROM chats c CROSS JOIN (
        SELECT $3::text AS character, $3::text AS named, $4::timestamptz AS now, $5::int AS before_seq,
            $12::text AS fading
        {COMPUTED_ONCE}) AS q
    CROSS JOIN LATERAL ({{texts}}) AS d ({{columns}}, role, name, digest, likelihood, similarity)
    WHERE c.chat_key = $1 AND c.line_id = $2 AND (q.before_seq IS NULL OR d.last_seq < q.before_seq)
        AND split_part(d.source, ':', 1) <> ALL ($6::text[]) AND (d.source <> ALL ($7::text[]) OR {{is_listed}})"""  # noqa: S608

# A text is in the list once, although several chats of a user, or several characters of a chat, can see the same text.
# If the search names no character, texts of all characters are found. Facts are an exception, because several
# characters can have different values for a key: `q.named` has the character that the search names, if any. The time of
# sending costs a lookup for each text, so it is read only if the search is limited by time; `list_sources` reads it for
# the results.
_EVERYWHERE = """
    SELECT row_number() OVER () AS number, f.*, {lowered} AS lowered FROM (
        SELECT known.*, {similarity} FROM (SELECT d.*, NULL::text AS role, NULL::text AS name, {digest} AS digest,
            NULL::float8 AS likelihood
        FROM (SELECT DISTINCT ON (d.text_key) d.* FROM ({known}) AS d ORDER BY d.text_key, d.last_seq DESC) AS d
        ) AS known{near}{shared}
        UNION ALL
        SELECT {chat_columns}, NULL, d.* FROM chats c
        CROSS JOIN LATERAL ({messages}) AS d ({columns}, role, name, digest, likelihood, similarity)
        WHERE {which} AND ($4::text[] IS NULL OR 'message' = ANY ($4))
    ) AS f
    WHERE ($5::int IS NULL OR coalesce(nullif(f.first_seq, 0), f.last_seq) >= $5)
        AND ($6::int IS NULL OR f.last_seq <= $6)
        AND (($7::timestamptz IS NULL AND $8::timestamptz IS NULL) OR EXISTS (
            SELECT FROM messages m WHERE m.chat_key = f.chat_key AND m.line_id = f.line_id AND m.seq = f.last_seq
                AND {is_not_deleted} AND ($7 IS NULL OR m.sent_at > $7) AND ($8 IS NULL OR m.sent_at < $8)
            {one_lookup_each}))"""

# The texts of other chats are about no message of the line. The hits name the other chat.
_SHARED = """
        UNION ALL
        SELECT of_others.chat_id, c.chat_key, {more_of_chat}, NULL, source, text, 0, 0, NULL, NULL, NULL, NULL, NULL,
            NULL, {similarity}
        FROM chats c CROSS JOIN LATERAL (
            SELECT DISTINCT ON (d.source) d.* FROM ({viewers}) AS q CROSS JOIN LATERAL ({texts}) AS d ORDER BY d.source
        ) AS of_others{near}
        WHERE {which}"""

_KNOWN = """
        SELECT {chat_columns}, CASE WHEN split_part(d.source, ':', 1) IN ('memory', 'fact') THEN d.source
                ELSE c.chat_key || d.source END AS text_key, d.*
        FROM chats c CROSS JOIN LATERAL ({viewers}) AS q CROSS JOIN LATERAL ({documents}) AS d ({columns})
        WHERE {which}"""

_VIEWERS = """
            SELECT p.value ->> 'name' AS character, $3::text AS named, $2::timestamptz AS now, NULL::int AS before_seq,
                'ignored' AS fading
            FROM jsonb_array_elements(CASE WHEN c.characters = '[]' THEN '[{}]' ELSE c.characters END) AS p
            WHERE $3::text IS NULL OR p.value ->> 'name' = $3"""

_MORE_OF_CHAT = "c.line_id, c.characters::text, c.user_name, c.head_seq, c.message_count"

_CHAT_COLUMNS = f"c.chat_id, c.chat_key, {_MORE_OF_CHAT}"

_FOUND = "number, chat_id, chat_key, line_id, characters, user_name, head_seq"

_NO_DOCUMENTS = f"SELECT {', '.join(f'NULL AS {column}' for column in Document._fields)} WHERE false"

_OF_CHAT = "c.chat_key = $1 AND c.line_id = $10"

OF_USER = """c.user_key = $1 AND c.line_status = 'current'
            AND coalesce((c.settings -> 'search' ->> 'across_chats')::boolean, false)"""
"""The condition that a row `c` of `chats` is read by a search over the chats of the user $1."""


class Statements(NamedTuple):
    """The statements of the three searches. All of them find the texts of the layers, and messages.

    Attributes:
        recall: For a context or a tool: the texts, and messages that have left the history (`list_candidates`).
        of_chat: For a person: the texts, and the messages of a line, with the history (`look_up_in_chat`).
        of_user: The same in all chats of a user that have `search.across_chats` (`look_up_of_user`).
        shared_recall: `recall` with texts of the user's other chats, for a chat that may see some.
        shared_of_chat: `of_chat` with the same texts.
        own_recall: `recall` for a caller who sees only the chat itself.
        own_of_chat: `of_chat` for such a caller.

    """

    recall: str
    of_chat: str
    of_user: str
    shared_recall: str
    shared_of_chat: str
    own_recall: str
    own_of_chat: str


def write_search(layers: Sequence[Layer], *, with_vectors: bool) -> Statements:
    """Return the statements of searches over the texts of these layers, and over messages.

    After the parameters that say what is searched, one parameter says whether the search is a deep one
    (`passages.lookup.MOST_DEEP`). With vectors, two parameters follow, a vector and its model, and texts with a similar
    meaning are found, too. `recall` then has one more, which says whether the similarities of the layers' texts are
    returned as well.
    """
    documents = write_documents(layers, _is_recalled) or _NO_DOCUMENTS
    recall, shared_recall = (
        _write_recall(documents, shared, with_vectors=with_vectors)
        for shared in ("", write_shared_documents(layers, _is_recalled))
    )
    documents = write_documents(layers, _is_looked_up) or _NO_DOCUMENTS
    known = _write_known(documents, _OF_CHAT)
    of_chat, shared_of_chat = (
        _write_everywhere(known, _OF_CHAT, 11, MOST_IN_INDEX, MAX_NAMED, shared, with_vectors=with_vectors)
        for shared in ("", write_shared_documents(layers, _is_looked_up))
    )
    known = _write_known(keep_to_chat(documents), OF_USER)
    if scopes := write_scope_documents(layers, _is_looked_up):
        known = (
            f"{known} UNION ALL SELECT * FROM ({write_scopes(scopes, _VIEWERS, OF_USER, _CHAT_COLUMNS)}) AS of_scopes"  # noqa: S608
        )
    of_user = _write_everywhere(known, OF_USER, 10, MAX_OF_EACH_CHAT, MAX_OF_EACH_CHAT, with_vectors=with_vectors)
    own = keep_to_chat(recall), keep_to_chat(of_chat)
    return Statements(recall, of_chat, of_user, shared_recall, shared_of_chat, *own)


def _is_recalled(kinds: str) -> str:
    return f"NOT ({kinds} <@ $6::text[])"


def _is_looked_up(kinds: str) -> str:
    """Return the condition for the texts of a layer, which are all read if one of the layer's kinds is wanted.

    The layer of scenes has the kinds `recap` and `scene`, so a search for `recap` reads the recaps of scenes, too.
    """
    return f"($4::text[] IS NULL OR {kinds} && $4)"


def _write_recall(documents: str, shared: str, *, with_vectors: bool) -> str:
    parameters = Parameters(8, 10, 13, with_vectors)
    is_listed = IS_LISTED.format(text="of_layers")
    similarity, near = write_near("of_layers", "c.chat_key", f"NOT {is_listed}", parameters)
    of_layers = f"""
        SELECT {COLUMNS}, NULL::text, NULL::text, NULL::bytea, NULL::float8, {similarity}
        FROM ({documents}) AS of_layers{near}"""  # noqa: S608
    if shared:
        similarity, near = write_near("of_others", "of_others.chat_key", "true", parameters)
        of_layers += f""" UNION ALL
        SELECT source, text, 0, 0, category, NULL, NULL, NULL, NULL, NULL, {similarity}
        FROM ({shared}) AS of_others{near}"""  # noqa: S608
    messages = _write_messages(_IS_RECALLED, MAX_MESSAGES, MAX_NAMED, parameters)
    texts = _TEXTS.format(
        texts=f"{of_layers} UNION ALL {messages}",
        columns=COLUMNS,
        lowered=_LOWERED.format(text="d", compared=COMPARED),
        is_listed=IS_LISTED.format(text="d"),
    )
    which = "c.chat_key = $1 AND c.line_id = $2"
    more = ", NULL::bytea AS near_digest" if with_vectors else ""
    return write_likely(
        texts, parameters, MAX_CANDIDATES, which=which, most_in_index=MOST_IN_INDEX, more=more, listed=True
    )


def _write_known(documents: str, which: str) -> str:
    """Return the query of the layers' texts in several chats; `documents` is the query of their texts on one line."""
    return _KNOWN.format(
        documents=f"SELECT {COLUMNS} FROM ({documents}) AS of_layers",  # noqa: S608
        viewers=_VIEWERS,
        chat_columns=_CHAT_COLUMNS,
        columns=COLUMNS,
        which=which,
    )


def _write_shared(texts: str, which: str, parameters: Parameters) -> str:
    similarity, near = write_near("of_others", "of_others.chat_key", "true", parameters)
    return _SHARED.format(
        more_of_chat=_MORE_OF_CHAT, viewers=_VIEWERS, texts=texts, which=which, similarity=similarity, near=near
    )


def _write_everywhere(
    known: str, which: str, keys: int, most_in_index: int, most_named: int, shared: str = "", *, with_vectors: bool
) -> str:
    parameters = Parameters(9, keys, keys + 1, with_vectors)
    similarity, near = "NULL::float8 AS similarity", ""
    if parameters.given:
        chats = f"chat_key IN (SELECT c.chat_key FROM chats c WHERE {which})"  # noqa: S608
        similarity = "near.similarity"
        near = f" LEFT JOIN ({write_text_similarities(chats, *parameters.given)}) AS near ON near.digest = known.digest"
    texts = _EVERYWHERE.format(
        known=known,
        shared=_write_shared(shared, which, parameters) if shared else "",
        messages=_write_messages(_IS_LOOKED_UP, MAX_MESSAGES_LOOKED_UP, most_named, parameters),
        chat_columns=_CHAT_COLUMNS,
        lowered=_LOWERED.format(text="f", compared=COMPARED),
        columns=COLUMNS,
        which=which,
        is_not_deleted=qualify(IS_NOT_DELETED, "m"),
        one_lookup_each=ONE_LOOKUP_EACH,
        similarity=similarity,
        near=near,
        digest=write_text_digest("d.text") if parameters.given else "NULL::bytea",
    )
    more = f", {_FOUND}"
    return write_likely(texts, parameters, MAX_LOOKED_UP, which=which, most_in_index=most_in_index, more=more)


def _write_messages(where: str, most: int, most_named: int, parameters: Parameters) -> str:
    """Return the SQL that finds the messages of a line's row `c` by their words, with vectors also by their meaning.

    `where` is a condition on the columns of `messages` and the rows `c` and `q` of the statement.
    """
    messages = write_messages(where, most, f"${parameters.keys}", most_named)
    found = _MESSAGES.format(messages=messages, similarity="NULL::float8")
    if not parameters.with_vectors:
        return found
    near = _MESSAGES.format(messages=write_near_messages(where), similarity="m.similarity")
    return f"{found} UNION ALL {near}"
