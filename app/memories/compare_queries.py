"""SQL that reads what new sentences are compared with before they become memories.

A memory is *judged* by looking up its teachings, the rows that say which messages taught it
(`app/knowledge/models.py`). They decide which of its texts holds, how old this text is, and so whether the memory is in
the archive. A scope can have tens of thousands of memories. So the texts are read without teachings, and only two kinds
of memories are judged: those whose texts can matter, and those that were forgotten or whose text a person replaced
(`list_forgotten`). Only `find_weakest` can judge all memories of a scope, once for all sentences.
"""

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.liveness import OWNER_GIVEN, OWNERS_OF_CHAT, write_versions
from app.knowledge.scopes import ScopeKey
from app.memories.candidates import Candidates
from app.memories.memory import Memory
from app.memories.queries import COLUMNS, KIND, Keeping, Line, read_memory, write_order_key

_PREFETCHED_TEXTS: Final = 1_000
"""How many texts are in memory at a time while all texts of a scope are read."""

TEXTS = f"""
    SELECT key, statement_id, content FROM statements
    WHERE owner_key = $1 AND line_id = $2 AND kind = '{KIND}' AND character = $3 AND content IS NOT NULL"""  # noqa: S608
"""All texts of a scope. It is public because a test runs EXPLAIN on it. Tests find other queries in asyncpg's query
log, but the query of a cursor is not logged."""

_KEYS_GIVEN = f"SELECT o.*, k.key FROM ({OWNER_GIVEN}) AS o CROSS JOIN unnest($7::text[]) AS k (key)"  # noqa: S608

_VERSIONS_OF_KEYS = write_versions(_KEYS_GIVEN, KIND, chat="$5::uuid", line="$6::uuid", by_key=True)

# `is_archived` does not consider whether the memory is one of the strongest: `_FIND_WEAKEST` decides that.
_LIST_COMPARED = f"""
    WITH held AS (
        SELECT DISTINCT ON (v.key) v.* FROM ({_VERSIONS_OF_KEYS}) AS v
        ORDER BY v.key, v.learnt_at DESC, v.statement_id DESC
    ), ordered AS (
        SELECT h.*, {write_order_key("$8")} AS order_key FROM held h WHERE h.content IS NOT NULL
    ), judged AS (
        SELECT o.*, CASE WHEN o.archived THEN true WHEN o.pinned OR o.archived IS FALSE THEN false
            ELSE o.order_key < coalesce($9::float8, '-Infinity') END AS is_archived
        FROM ordered o
    )
    SELECT {COLUMNS} FROM judged"""  # noqa: S608

_VERSIONS_OF_KEY = write_versions(
    f"SELECT o.*, k.key FROM ({OWNER_GIVEN}) AS o",  # noqa: S608
    KIND,
    chat="$5::uuid",
    line="$6::uuid",
    by_key=True,
)

# PostgreSQL computes the rows of `kept` one by one, in the order of `$7`, and only as many as are asked for. `before`
# counts the memories that come before the given one. As soon as there are `max_memories`, it stops, and `last` reads no
# row, so that no more memories are judged. Otherwise `last` reads all rows, sorts them, and finds the one at position
# `max_memories`. `$7` begins with the highest ids, those of the newest memories: they are often stronger than the given
# one, so that `max_memories` of them are found soon.
_FIND_WEAKEST = f"""
    WITH kept AS MATERIALIZED (
        SELECT h.key, h.pinned OR h.archived IS FALSE AS stays, {write_order_key("$8")} AS order_key
        FROM unnest($7::text[]) AS k (key) CROSS JOIN LATERAL (
            SELECT * FROM ({_VERSIONS_OF_KEY}) AS v ORDER BY v.learnt_at DESC, v.statement_id DESC LIMIT 1) AS h
        WHERE h.content IS NOT NULL AND h.archived IS NOT TRUE
    )
    SELECT before.count, last.order_key, last.key
    FROM (
        SELECT count(*) FROM (
            SELECT FROM kept k WHERE k.stays OR (k.order_key, k.key) > ($10::float8, $11::text)
            LIMIT $9::int) AS stronger) AS before
    LEFT JOIN LATERAL (
        SELECT k.order_key, k.key FROM kept k WHERE before.count < $9::int
        ORDER BY k.stays DESC, k.order_key DESC, k.key DESC OFFSET $9::int - 1 LIMIT 1) AS last ON true"""  # noqa: S608

# The given scope and all others that the chat sees.
_ALL_OF_CHAT = f"""
    SELECT o.* FROM ({OWNERS_OF_CHAT}) AS o
    WHERE (o.rank, o.character) <> ($3, $4) AND (o.current_name IS NULL OR o.current_name = $7)
    UNION ALL {OWNER_GIVEN}"""  # noqa: S608

# The memories that have a statement without a text, or a statement with which a person replaced their text. The partial
# index `ix_statements_decided` has only these: a wide scope can have tens of thousands of other memories.
_KEYS_DECIDED = f"""
    SELECT o.*, k.key FROM ({_ALL_OF_CHAT}) AS o CROSS JOIN LATERAL (
        SELECT DISTINCT s.key FROM statements s
        WHERE s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.kind = '{KIND}' AND s.character = o.character
            AND (s.content IS NULL OR s.forgotten IS NOT NULL)) AS k"""  # noqa: S608

_VERSIONS_DECIDED = write_versions(_KEYS_DECIDED, KIND, chat="c.chat_key", line="c.line_id", by_key=True)

# Of a forgotten memory, all texts that it ever had in the scope are listed, live or not: none of them is learnt again.
# `is_near` is true for the given scope and the nearer ones.
_LIST_FORGOTTEN = f"""
    WITH held AS (
        SELECT DISTINCT ON (v.owner_key, v.line_id, v.character, v.key) v.*
        FROM chats c CROSS JOIN LATERAL ({_VERSIONS_DECIDED}) AS v
        WHERE c.chat_key = $5 AND c.line_id = $6
        ORDER BY v.owner_key, v.line_id, v.character, v.key, v.learnt_at DESC, v.statement_id DESC
    )
    SELECT h.key, h.forgotten, h.rank < $3 OR (h.rank, h.character) = ($3, $4) AS is_near,
        CASE WHEN h.content IS NULL THEN ARRAY(
            SELECT s.content FROM statements s
            WHERE s.owner_key = h.owner_key AND s.line_id = h.line_id AND s.kind = '{KIND}'
                AND s.character = h.character AND s.key = h.key AND s.content IS NOT NULL) END AS contents
    FROM held h
    WHERE h.content IS NULL OR ((h.rank, h.character) = ($3, $4) AND h.forgotten IS NOT NULL)"""  # noqa: S608

_LIST_SETTLED = f"""
    SELECT s.key, s.statement_id, s.content FROM statements s
    WHERE s.owner_key = $1 AND s.line_id = $2 AND s.kind = '{KIND}' AND s.character = $3 AND s.content IS NOT NULL
        AND s.statement_id = ANY ($4)
        AND (s.archived OR EXISTS (
            SELECT FROM statements p WHERE p.owner_key = s.owner_key AND p.line_id = s.line_id AND p.kind = s.kind
                AND p.character = s.character AND p.key = s.key AND p.is_set
                AND (p.learnt_at, p.statement_id) > (s.learnt_at, s.statement_id) {ONE_LOOKUP_EACH}))
    ORDER BY s.learnt_at, s.statement_id"""  # noqa: S608


class Similar(NamedTuple):
    """The statements of a scope that are equal or similar to new sentences.

    Attributes:
        keys: The ids of their memories.
        equal_ids: The ids of the statements whose text equals a sentence (`Candidates.is_equal`).
        memories: The ids of all memories that have or had a text in the scope.

    """

    keys: Collection[str]
    equal_ids: Sequence[UUID]
    memories: Collection[str]


class ForgottenTexts(NamedTuple):
    """What must not be learnt again in a scope.

    Attributes:
        hashes: The hashes of all texts that were forgotten in the scope or in a nearer one, and of those that persons
            replaced in the scope.
        wider: The hashes of all texts that were forgotten in the other scopes that the line sees.
        texts: (memory id, text) of all forgotten texts that are still stored. A text that was deleted with its line is
            only among the hashes.

    """

    hashes: frozenset[bytes]
    wider: frozenset[bytes]
    texts: Sequence[tuple[UUID, str]]


async def find_similar(db_session: DbSession, scope: ScopeKey, candidates: Candidates) -> Similar:
    """Return the statements of a scope that are candidates, live or not. It reads all texts of the scope once."""
    keys, equal_ids, memories = set[str](), [], set[str]()
    cursor = db_session.raw.cursor(TEXTS, scope.owner_key, scope.line_id, scope.character, prefetch=_PREFETCHED_TEXTS)
    async for key, statement_id, content in cursor:
        memories.add(key)
        if candidates.has(content):
            keys.add(key)
            if candidates.is_equal(content):
                equal_ids.append(statement_id)
    return Similar(keys, equal_ids, memories)


async def list_compared(
    db_session: DbSession, scope: ScopeKey, line: Line, keeping: Keeping, keys: Collection[str]
) -> list[Memory]:
    """Return the memories with the ids `keys` that hold in one scope, as a line sees it.

    `Memory.archived` is true for a memory that a person put into the archive, and for one that is too weak. Whether a
    memory is among the strongest is not considered; `find_weakest` decides that.
    """
    limits = (keeping.half_life_days, keeping.least_order_key)
    rows = await db_session.raw.fetch(_LIST_COMPARED, *_where(scope), *line, list(keys), *limits)
    return [read_memory(row) for row in rows]


async def find_weakest(
    db_session: DbSession, scope: ScopeKey, line: Line, keeping: Keeping, keys: Collection[str], strongest: Memory
) -> tuple[float, str]:
    """Return the order key and the id of the memory at position `max_memories` of a scope, as a line sees it.

    Memories that a person pinned or brought back from the archive come first, then the others by strength; those that a
    person archived do not count. So a memory that no person pinned, archived or brought back is among the strongest if
    its order key and id are not less than these. If the scope has fewer than `max_memories` memories, the order key is
    negative infinity. It is infinity if none of the memories that the caller wants to check is among the strongest.

    `keys` are the ids of all memories of the scope. `strongest` is the strongest memory that the caller wants to check.
    Stronger memories, and those that a person pinned or brought back, come before it. As soon as `max_memories` such
    memories are found, no more are judged.
    """
    last = (strongest.order_key, str(strongest.memory_id))
    limits = (keeping.half_life_days, keeping.max_memories)
    values = (*_where(scope), *line, sorted(keys, reverse=True), *limits, *last)
    ((before, order_key, key),) = await db_session.raw.fetch(_FIND_WEAKEST, *values)
    if before >= keeping.max_memories:
        return math.inf, ""
    return (-math.inf, "") if key is None else (order_key, key)


async def list_forgotten(
    db_session: DbSession, scope: ScopeKey, line: Line, *, character: str | None
) -> ForgottenTexts:
    """Return what was forgotten in a scope, as a line sees it, and in the other scopes that the line sees.

    Of the scopes of the user with one character, it is that with `character`.
    """
    rows = await db_session.raw.fetch(_LIST_FORGOTTEN, *_where(scope), *line, character)
    near, wider = (
        frozenset(one for row in rows if row["is_near"] is is_near for one in row["forgotten"] or ())
        for is_near in (True, False)
    )
    texts = [(UUID(row["key"]), content) for row in rows for content in row["contents"] or ()]
    return ForgottenTexts(near, wider, texts)


async def list_settled(
    db_session: DbSession, scope: ScopeKey, statement_ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, str]]:
    """Return (memory id, statement id, text) of texts about which persons have decided, oldest first, live or not.

    These are the texts of memories that a person put into the archive, and those that a person replaced or forgot.
    Only those of the statements with the ids `statement_ids` are returned.
    """
    where = (scope.owner_key, scope.line_id, scope.character, list(statement_ids))
    rows = await db_session.raw.fetch(_LIST_SETTLED, *where)
    return [(UUID(row["key"]), row["statement_id"], row["content"]) for row in rows]


def _where(scope: ScopeKey) -> tuple[UUID, UUID, int, str]:
    return scope.owner_key, scope.line_id, scope.rank, scope.character
