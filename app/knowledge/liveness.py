"""SQL that decides which statements are live, and which of them hold. Composed of constants.

A statement `s` is live if a person set it, or if one of its teachings is live. A teaching is the row that says which
message of which line taught the statement. A teaching is live while it is not `hidden`, and while its line counts. It
is hidden for example while its message has another text, or is deleted or hidden by a person (`models.py`). In the chat
that is read, only the line that is read counts. If the parameter `before` is a seq, only messages before it count on
this line. In every other chat, only the current line counts.

Of the live statements of a key in one scope, the newest one holds. A block is an exception: its live operations
together make its text.
"""

from app.kit.owners import CHAT_WIDE, NO_LINE
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.important import LEAST_IMPORTANCE, MOST, MOST_EXAMINED

TENANT_KEY = "encode(substr(sha256(convert_to(c.tenant, 'UTF8') || '\\x00'), 1, 16), 'hex')::uuid"
"""What `tenant_key` of `app/kit/ids.py` computes."""

OWNERS_OF_CHAT = f"""
    SELECT c.chat_key AS owner_key, '{CHAT_WIDE}'::uuid AS line_id, 0 AS rank, ''::text AS character,
        NULL::text AS current_name
    UNION ALL
    SELECT c.user_key, '{NO_LINE}', 1, named.name, p.value ->> 'name'
    FROM jsonb_array_elements(c.characters) AS p CROSS JOIN LATERAL (
        SELECT p.value ->> 'name' UNION SELECT jsonb_array_elements_text(p.value -> 'aliases')) AS named (name)
    WHERE c.user_key IS NOT NULL
    UNION ALL
    SELECT c.user_key, '{NO_LINE}', 2, '', NULL WHERE c.user_key IS NOT NULL
    UNION ALL
    SELECT {TENANT_KEY}, '{NO_LINE}', 3, '', NULL"""  # noqa: S608 - constants only
"""The scopes that a chat's row `c` sees, with the rank of each. A character is known under its former names, too."""

SOLE_CHARACTER = """(
    SELECT min(p.value ->> 'name') FROM jsonb_array_elements(c.characters) AS p
    WHERE coalesce(p.value ->> 'disabled', 'false') <> 'true' HAVING count(*) = 1)"""
"""A scalar subquery: the only character of the chat's row `c` that is not disabled, otherwise NULL."""

MAY_KNOW = f"""
    SELECT true FROM statements s WHERE s.owner_key = ANY (ARRAY[c.chat_key, c.user_key, {TENANT_KEY}])
    ORDER BY s.owner_key LIMIT 1"""  # noqa: S608
"""A scalar subquery: true if any scope that the chat's row `c` sees has a statement, live or not; otherwise NULL.

It is read from the table itself, so no write has to maintain it. Because of the ORDER BY the planner uses the index, so
the query is one lookup for each scope, even if most rows belong to one owner.
"""

CHAT_ITSELF = f"""
    SELECT c.chat_key AS owner_key, '{CHAT_WIDE}'::uuid AS line_id, 0 AS rank, ''::text AS character,
        NULL::text AS current_name"""
"""The scope of the chat itself."""

_WIDER = ("user_key", TENANT_KEY, "c.tenant")


def keep_to_chat(query: str) -> str:
    """Return a query on the chat's row `c`, limited to the scope of the chat itself.

    It is for callers who may see no other scope. Raises ValueError if the query names a wider scope outside of
    OWNERS_OF_CHAT.
    """
    kept = query.replace(OWNERS_OF_CHAT, CHAT_ITSELF)
    if any(wider in kept for wider in _WIDER):
        raise ValueError(f"the query reads more than the chat itself: {kept}")
    return kept


OWNER_GIVEN = """
    SELECT $1::uuid AS owner_key, $2::uuid AS line_id, $3::int AS rank, $4::text AS character,
        nullif($4::text, '') AS current_name"""
"""One scope, as parameters."""

SCOPE_GIVEN = """
    SELECT scope.owner_key, scope.line_id, scope.rank, scope.character, NULL::text AS current_name"""
"""The scope in the row `scope` of a layer's query `scope_documents` (`app/layers/documents.py`)."""

IS_IMPORTANT = f"kind = 'memory' AND importance >= {LEAST_IMPORTANCE}"
"""The condition of the partial index in which the important texts of a scope are in the order of their arrival."""

IS_PRESENT_IMPORTANT = f"{IS_IMPORTANT} AND archived IS NOT TRUE"
"""The condition of the partial index in which the important texts of a scope are in the order of importance."""

IS_LESS_IMPORTANT = (
    f"kind = 'memory' AND importance < {LEAST_IMPORTANCE} AND origin <> 'extractive' AND archived IS NOT TRUE"
)
"""The condition of the partial index in which the less important texts of a scope are in the order of importance.

It has no quotation that a rule has chosen (the origin `extractive`). The importance of such a quotation is a guess, and
most of those below 0.7 tell what happened.
"""

LEARNT_US = "(extract(epoch FROM {}.learnt_at) * 1000000)::bigint"
"""SQL for the time of a statement, in microseconds since 1970."""

_COLUMNS = f"""k.rank, {{character}} AS character, k.key, n.statement_id, n.content, n.tokens, n.origin, n.edited,
        {LEARNT_US.format("n")} AS learnt_us"""

_IS_OPEN = """EXISTS (
            SELECT FROM bindings o WHERE o.chat_key = t.chat_key AND o.line_id = t.line_id
                AND o.binding_id = t.teaching_id AND o.is_open)"""


IS_ON_CURRENT_LINE = """(
            SELECT l.line_status FROM chats l WHERE l.chat_key = t.chat_key AND l.line_id = t.line_id) = 'current'"""
"""The condition that the line of the teaching `t` is current.

It is a subquery instead of a join: without statistics, the planner would begin a join with all current lines of the
service.
"""


_TEACHES = "t.statement_id = s.statement_id AND coalesce(t.wide_key, t.chat_key) = s.owner_key"
"""The condition that `t` is a teaching of the statement `s`, live or not."""


def _write_counts(*, chat: str, line: str, before: str) -> str:
    """Return the condition that the line of the teaching `t` counts; the arguments are those of `write_is_live`."""
    return f"""CASE WHEN t.chat_key = {chat} THEN t.line_id = {line} AND ({before} IS NULL OR t.first_seq < {before})
                ELSE {IS_ON_CURRENT_LINE} END"""


def write_is_live(*, chat: str, line: str, before: str, with_open: bool = False) -> str:
    """Return the condition that the statement `s` is live.

    Args:
        chat: SQL for the key of the chat that is read; NULL for none.
        line: SQL for the id of the line of that chat.
        before: SQL for a seq: only teachings before this seq count; NULL for no such limit.
        with_open: Whether to include what was written by those tool calls of the chat whose reply is not stored yet.

    """
    hidden = f"t.hidden AND NOT (t.chat_key = {chat} AND {_IS_OPEN})" if with_open else "t.hidden"
    return f"""(s.is_set OR EXISTS (
        SELECT FROM teachings t
        WHERE {_TEACHES} AND NOT ({hidden}) AND {_write_counts(chat=chat, line=line, before=before)}
        {ONE_LOOKUP_EACH}))"""


def write_newest(owners: str, is_live: str, kind: str, *, character: str = "k.current_name") -> str:
    """Return the query of the newest live statement of each key, in each of `owners`.

    Its columns are those of `Known`, without `operation` and `pattern`. `character` is SQL for the column `character`;
    `k` in this SQL is a row of `owners` together with one of its keys.

    The query steps from key to key in the index, so its cost does not grow with the former values of a key.
    """
    return f"""
    WITH RECURSIVE {_write_keys(owners, kind)}
    SELECT {_COLUMNS.format(character=character)}
    FROM keys k CROSS JOIN LATERAL (
        SELECT * FROM statements s WHERE {_write_of_key(kind)} AND {is_live}
        ORDER BY s.learnt_at DESC, s.statement_id DESC LIMIT 1) AS n"""  # noqa: S608


def write_log(owners: str, is_live: str, kind: str) -> str:
    """Return the query of the live operations of each key, in each of `owners`, from the newest live `replace` on.

    Its columns are those of `Known`. Operations before that `replace` are not read.
    """
    return f"""
    WITH RECURSIVE {_write_keys(owners, kind)}
    SELECT {_COLUMNS.format(character="k.current_name")}, n.operation, n.pattern
    FROM keys k LEFT JOIN LATERAL (
        SELECT s.learnt_at, s.statement_id FROM statements s
        WHERE {_write_of_key(kind)} AND s.operation = 'replace' AND {is_live}
        ORDER BY s.learnt_at DESC, s.statement_id DESC LIMIT 1) AS base ON true
    CROSS JOIN LATERAL (
        SELECT * FROM statements s WHERE {_write_of_key(kind)} AND {is_live}
            AND (s.learnt_at, s.statement_id) >= (
                coalesce(base.learnt_at, '-infinity'), coalesce(base.statement_id, '{NO_LINE}'))
        ORDER BY s.learnt_at, s.statement_id {ONE_LOOKUP_EACH}) AS n"""  # noqa: S608


def write_keys(owners: str, kind: str) -> str:
    """Return the query of the keys that have a statement of a kind, live or not, in each of `owners`.

    It steps from key to key in the index, so its cost does not grow with the statements of a key.
    """
    return f"WITH RECURSIVE {_write_keys(owners, kind)} SELECT k.rank, k.key FROM keys k"  # noqa: S608


def _write_keys(owners: str, kind: str) -> str:
    """Return the recursive CTE `keys`: each key that has a statement of a kind, in each of `owners`.

    Each step finds the next key with a comparison of several columns, `(owner_key, …, key) > (…)`, and sorts by these
    columns. Only the index `ix_statements_key` has this order. If each column were compared with `=` instead, the
    planner could choose an index without the key, and read all statements of the scope at each step.
    """
    order = "s.owner_key, s.line_id, s.kind, s.character"
    next_key = f"""
        SELECT s.key FROM statements s
        WHERE ({order}, s.key) {{after}} AND ({order}) <= {{last}} ORDER BY {order}, s.key LIMIT 1"""  # noqa: S608
    of_owner, of_key = (f"{row}.owner_key, {row}.line_id, '{kind}', {row}.character" for row in ("o", "k"))
    first = next_key.format(after=f">= ({of_owner}, '')", last=f"({of_owner})")
    following = next_key.format(after=f"> ({of_key}, k.key)", last=f"({of_key})")
    return f"""owners AS ({owners}), keys AS (
        SELECT o.*, found.key FROM owners o CROSS JOIN LATERAL ({first}) AS found
        UNION ALL
        SELECT k.owner_key, k.line_id, k.rank, k.character, k.current_name, found.key
        FROM keys k CROSS JOIN LATERAL ({following}) AS found
    )"""  # noqa: S608


def _write_of_key(kind: str) -> str:
    """Return the condition that the statement `s` is about the key `k`."""
    return f"""s.owner_key = k.owner_key AND s.line_id = k.line_id AND s.kind = '{kind}'
            AND s.character = k.character AND s.key = k.key"""


def write_history(owners: str, is_live: str, kind: str, *, key: str) -> str:
    """Return the query of the live statements of one key in each of `owners`; its columns are those of `Known`."""
    return f"""
    SELECT o.rank, o.current_name AS character, s.key, s.statement_id, s.content, s.tokens, s.origin, s.edited,
        {LEARNT_US.format("s")} AS learnt_us,
        s.operation, s.pattern
    FROM ({owners}) AS o JOIN statements s ON s.owner_key = o.owner_key AND s.line_id = o.line_id
        AND s.kind = '{kind}' AND s.character = o.character AND s.key = {key}
    WHERE {is_live}
    ORDER BY s.learnt_at DESC, s.statement_id DESC"""  # noqa: S608


def write_json(query: str) -> str:
    """Return a scalar subquery: the rows of `query` as JSON lists with the fields of `Known`; NULL if there are none.

    `query` is a query that `write_log` has returned.
    """
    return f"""
    SELECT json_agg(json_build_array(k.rank, k.character, k.key, k.statement_id, k.content, k.tokens, k.origin,
        k.edited, k.learnt_us, k.operation, k.pattern))::text FROM ({query}) AS k"""  # noqa: S608


def write_versions(
    owners: str, kind: str, *, chat: str, line: str, before: str = "NULL::int", by_key: bool = False
) -> str:
    """Return the query of all live statements of a kind in `owners`: rank, current_name, all columns, and `said_at`.

    With `by_key`, `owners` has a column `key`, and only statements of this key are returned.

    `said_at` is the date of a statement: the time at which the newest of its live messages was sent. If a person or a
    tool wrote the statement, it is the time of writing, or the time of a message that has said the same since then.

    Use it for keys with few former values: it looks up the teachings of each statement, also of former values. It goes
    through the teachings of a statement from the newest to the oldest and stops at the first whose line counts, because
    a statement that many forks share has many teachings. `chat`, `line` and `before` are those of `write_is_live`.
    """
    return f"""
    SELECT o.rank, o.current_name, s.* FROM ({owners}) AS o CROSS JOIN LATERAL (
        SELECT s.*, CASE WHEN s.is_set THEN greatest(s.learnt_at, t.said_at) ELSE t.said_at END AS said_at
        FROM statements s LEFT JOIN LATERAL (
            SELECT t.dated_at AS said_at FROM (
                SELECT t.chat_key, t.line_id, t.first_seq, coalesce(t.said_at, s.learnt_at) AS dated_at FROM teachings t
                WHERE {_TEACHES} AND NOT t.hidden ORDER BY dated_at DESC {ONE_LOOKUP_EACH}) AS t
            WHERE {_write_counts(chat=chat, line=line, before=before)} ORDER BY t.dated_at DESC LIMIT 1) AS t ON true
        WHERE s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.kind = '{kind}' AND s.character = o.character
            {"AND s.key = o.key" if by_key else ""} AND (s.is_set OR t.said_at IS NOT NULL)
        {ONE_LOOKUP_EACH}) AS s"""  # noqa: S608


def write_ratings(owners: str, *, ids: str) -> str:
    """Return the query of statements in `owners`, live or not, with their category, importance and tags.

    `ids` is SQL for the array of the statements' ids. The columns are the id and the fields of `Rating`.
    """
    return f"""
    SELECT s.statement_id, s.category, s.importance, s.tags FROM ({owners}) AS o CROSS JOIN LATERAL (
        SELECT * FROM statements s WHERE s.owner_key = o.owner_key AND s.line_id = o.line_id
            AND s.statement_id = ANY ({ids}) {ONE_LOOKUP_EACH}) AS s"""  # noqa: S608


def write_hash(content: str) -> str:
    """Return SQL for the hash of a text exactly as it is stored, with its case and white space.

    `Statement.forgotten` contains such hashes, and hashes of folded texts (`fold` in `known.py`).
    """
    return f"substr(sha256(convert_to({content}, 'UTF8')), 1, 16)"


def write_important(owners: str, is_live: str, *, wanted: str = "true", chat: str | None = None) -> str:
    """Return the query of the most important memories that hold in each of `owners`.

    Its columns are those of `Important`. The newest live text of a memory holds, unless the memory was forgotten, or a
    person put it into the archive. In each scope, the query reads the important statements in the order of importance
    until MOST hold. If fewer hold, the less important ones fill up the rest. Only the first MOST_EXAMINED of these are
    examined, live or not, so the cost does not grow with the texts that were replaced or taken back.

    A less important statement counts only if its id is not greater than that of the newest live important statement of
    all `owners`; without such a statement, the query returns no rows. So a memory of less importance is in the result
    from the next arrival of an important one on. The important statement does not have to hold: if it is replaced,
    forgotten or put into the archive, the other memories stay.

    Args:
        owners: The query of the scopes.
        is_live: SQL for whether the statement `s` is live (`write_is_live`).
        wanted: An SQL condition; if it is false, the query returns no rows.
        chat: SQL for the key of the chat that is read, if the scopes are those of a chat. A memory of a wider scope is
            then left out if the chat itself has a live statement about it. It is also left out if its text was
            forgotten or replaced in the chat, unless a person set that text.

    """
    of_scope = "s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.character = o.character"
    of_chat = f"s.owner_key = {chat} AND s.line_id = '{CHAT_WIDE}' AND s.character = '' AND s.kind = 'memory'"
    in_chat = f"""AND NOT (o.rank > 0 AND EXISTS (
                SELECT FROM statements s WHERE {of_chat} AND s.key = i.key AND {is_live} {ONE_LOOKUP_EACH}))
            AND (o.rank = 0 OR i.is_set OR {write_hash("i.content")} <> ALL (ARRAY(
                SELECT unnest(s.forgotten) FROM statements s
                WHERE {of_chat} AND s.forgotten IS NOT NULL AND {is_live})))"""  # noqa: S608
    holds = f"""i.content IS NOT NULL AND NOT EXISTS (
                SELECT FROM statements s WHERE {of_scope} AND s.kind = 'memory' AND s.key = i.key
                    AND (s.learnt_at, s.statement_id) > (i.learnt_at, i.statement_id) AND {is_live} {ONE_LOOKUP_EACH})
            {in_chat if chat else ""}"""
    order = "ORDER BY i.importance DESC, i.learnt_at DESC, i.statement_id DESC"
    return f"""
    WITH owners AS ({owners}), newest AS MATERIALIZED (
        SELECT n.statement_id FROM owners o CROSS JOIN LATERAL (
            SELECT s.statement_id FROM statements s WHERE {of_scope} AND {IS_IMPORTANT} AND {is_live}
            ORDER BY s.statement_id DESC LIMIT 1) AS n
        WHERE {wanted} ORDER BY n.statement_id DESC LIMIT 1)
    SELECT o.rank, o.current_name AS character, n.key, n.statement_id, n.content, n.importance,
        {LEARNT_US.format("n")} AS learnt_us
    FROM newest CROSS JOIN owners o CROSS JOIN LATERAL (
        WITH important AS MATERIALIZED (
            SELECT i.* FROM (
                SELECT * FROM statements s WHERE {of_scope} AND {IS_PRESENT_IMPORTANT} AND {is_live}) AS i
            WHERE {holds} {order} LIMIT {MOST})
        SELECT * FROM important
        UNION ALL (
            SELECT i.* FROM (
                SELECT * FROM (
                    SELECT * FROM statements s
                    WHERE {of_scope} AND {IS_LESS_IMPORTANT} AND s.statement_id <= newest.statement_id
                    {order.replace("i.", "s.")} LIMIT {MOST_EXAMINED}) AS s
                WHERE {is_live}) AS i
            WHERE {holds} {order} LIMIT {MOST} - (SELECT count(*) FROM important))) AS n"""  # noqa: S608 - constants only
