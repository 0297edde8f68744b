"""The SQL that reads the scopes above the chats of a user, each scope once, for a search over all these chats.

Each chat sees the scopes of its user, of the user with each of its characters, and of the tenant, but not all of their
texts. A text is hidden from a chat if the chat itself or a nearer scope knows something about the same key, or if the
chat has forgotten the text. A text is found if at least one of the chats sees it. A chat or a message *taught* a text
if the text was learnt from it.
"""

from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH, WITH_HASH_TABLE
from app.knowledge.liveness import IS_ON_CURRENT_LINE, LEARNT_US, OWNERS_OF_CHAT, SOLE_CHARACTER, write_is_live
from app.layers.documents import SCOPE_COLUMNS

_IS_LIVE = write_is_live(chat="NULL::uuid", line="NULL::uuid", before="NULL::int")

# The scopes, each with the chats that see it; a chat with several characters is listed once for each of them. The
# character whose facts hold in a chat is `meant`: the one that the search names, or the only one.
_SCOPES = f"""
    SELECT o.owner_key, o.line_id, o.rank, o.character, array_agg(c.chat_key) AS chat_keys,
        array_agg(q.character) AS characters, array_agg(coalesce(q.named, {SOLE_CHARACTER})) AS meant
    FROM chats c CROSS JOIN LATERAL ({{viewers}}) AS q CROSS JOIN LATERAL ({OWNERS_OF_CHAT}) AS o
    WHERE {{which}} AND o.rank > 0 AND (o.current_name IS NULL OR o.current_name = q.character)
    GROUP BY o.owner_key, o.line_id, o.rank, o.character"""  # noqa: S608 - of constants

# What the chats have forgotten: the hashes of texts in the newest live row of `statements` about each memory.
_FORGOTTEN = f"""
    SELECT c.chat_key, unnest(held.forgotten) AS hash FROM chats c CROSS JOIN LATERAL (
        SELECT DISTINCT ON (s.key) s.forgotten FROM statements s
        WHERE s.owner_key = c.chat_key AND s.line_id = '{CHAT_WIDE}' AND s.kind = 'memory' AND s.character = ''
            AND {_IS_LIVE}
        ORDER BY s.key, s.learnt_at DESC, s.statement_id DESC) AS held
    WHERE {{which}}"""  # noqa: S608

# Whether the viewer does not see the text: a nearer scope has a statement about its key, a scope of the same rank has a
# newer one (a character has a scope for each of its former names, too), it is a fact of a character that is not meant,
# or the chat has forgotten the text.
_IS_HIDDEN = f"""EXISTS (
            SELECT FROM ({OWNERS_OF_CHAT}) AS o CROSS JOIN LATERAL (
                SELECT FROM statements s
                WHERE s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.kind = d.kind
                    AND s.character = o.character AND s.key = d.key AND {_IS_LIVE} AND (o.rank < scope.rank
                        OR ({LEARNT_US.format("s")}, s.statement_id) > (d.learnt_us, d.statement_id))
                {ONE_LOOKUP_EACH}) AS nearer
            WHERE o.rank <= scope.rank AND (o.current_name IS NULL
                OR o.current_name = CASE WHEN d.kind = 'fact' THEN viewer.meant ELSE viewer.character END))
            OR (d.kind = 'fact' AND scope.character <> '' AND viewer.meant IS DISTINCT FROM viewer.character)
            OR ((c.chat_key, d.hash) IN (SELECT chat_key, hash FROM forgotten)) {WITH_HASH_TABLE}"""  # noqa: S608

# `unnest` in a list of columns returns one row at a time, so the chats after the first that sees the text are not read.
_VIEWERS = """SELECT unnest(scope.chat_keys) AS chat_key, unnest(scope.characters) AS character,
            unnest(scope.meant) AS meant"""

_SEEN_BY = f"""
        SELECT c.*, {{taught}} FROM ({{viewers}}) AS viewer CROSS JOIN LATERAL (
            SELECT * FROM chats c WHERE c.chat_key = viewer.chat_key AND {{which}} {ONE_LOOKUP_EACH}) AS c
        WHERE NOT ({_IS_HIDDEN})"""  # noqa: S608

_TEACHERS = f"""
            SELECT v.*, t.first_taught, t.last_taught FROM (
                SELECT t.chat_key, min(t.first_seq) AS first_taught, max(t.first_seq) AS last_taught FROM teachings t
                WHERE t.statement_id = d.statement_id AND NOT t.hidden AND {IS_ON_CURRENT_LINE}
                GROUP BY t.chat_key) AS t
            JOIN ({_VIEWERS}) AS v ON v.chat_key = t.chat_key"""  # noqa: S608

# Each text is returned once, with one of the chats that see it. If some of these chats taught the text, it is the chat
# that taught it at the highest seq. If none of them did, it is any of them.
_TEXTS = f"""
    WITH scopes AS MATERIALIZED ({_SCOPES}
    ), forgotten AS MATERIALIZED ({_FORGOTTEN})
    SELECT {{chat_columns}}, d.source AS text_key, d.source, d.text, c.first_taught AS first_seq, c.last_taught
        AS last_seq, d.category, d.importance
    FROM scopes AS scope CROSS JOIN LATERAL ({{texts}}) AS d ({SCOPE_COLUMNS}) CROSS JOIN LATERAL (
        SELECT * FROM (
            ({_SEEN_BY.format(taught="viewer.first_taught, viewer.last_taught", viewers=_TEACHERS, which="{which}")}
            ORDER BY viewer.last_taught DESC LIMIT 1)
            UNION ALL
            ({_SEEN_BY.format(taught="0, 0", viewers=_VIEWERS, which="{which}")} LIMIT 1)) AS found
        ORDER BY last_taught DESC LIMIT 1) AS c"""  # noqa: S608 - of constants


def write_scopes(texts: str, viewers: str, which: str, chat_columns: str) -> str:
    """Return the query of the texts in the scopes above the chats, each once.

    Its columns are the columns in `chat_columns`, a column `text_key` (by which `statements.py` detects duplicates),
    and the fields of `Document`. The seqs are those of the first and the last message in the row's chat that taught the
    text; 0 if no message in that chat did.

    Args:
        texts: The query of the texts of a scope (`app.layers.documents.write_scope_documents`).
        viewers: A query on the chat's row `c` for the characters for which the chat is searched (`character`), and the
            one that the search names (`named`).
        which: A condition on rows `c` of `chats`: the current lines that are searched.
        chat_columns: Columns of the row `c` of the chat, as SQL.

    """
    return _TEXTS.format(texts=texts, viewers=viewers, which=which, chat_columns=chat_columns)
