"""SQL of statements and teachings (`models.py`); `liveness.py` decides which statements are live."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
from sqlalchemy import func, insert, select

from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.kit.planner import NOT_BY_INDEX, ONE_LOOKUP_EACH
from app.knowledge.known import Known, Rating
from app.knowledge.liveness import (
    IS_ON_CURRENT_LINE,
    OWNER_GIVEN,
    OWNERS_OF_CHAT,
    keep_to_chat,
    write_history,
    write_is_live,
    write_keys,
    write_log,
    write_newest,
    write_ratings,
)
from app.knowledge.models import Statement, Teaching
from app.knowledge.scopes import ScopeKey

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

KINDS = ("fact", "block", "memory")

_COPIED = [column.name for column in Statement.__table__.columns if column.name != "owner_key"]

_IN_CHAT = write_is_live(chat="c.chat_key", line="c.line_id", before="NULL::int")
_IN_CHAT_WITH_OPEN = write_is_live(chat="c.chat_key", line="c.line_id", before="NULL::int", with_open=True)
_IN_CHAT_WITH_CALLS = f"(s.statement_id = $4 OR {_IN_CHAT_WITH_OPEN})"
_ON_LINE = write_is_live(chat="$1::uuid", line="$2::uuid", before="NULL::int")
_ANYWHERE = write_is_live(chat="NULL::uuid", line="NULL::uuid", before="NULL::int")


def _of_chat(query: str) -> tuple[str, str]:
    """Return two queries: for all scopes that a line sees, and for the chat alone. The bool `only_chat` selects one."""
    found = f"SELECT n.* FROM chats c CROSS JOIN LATERAL ({query}) AS n WHERE c.chat_key = $1 AND c.line_id = $2"  # noqa: S608
    return found, keep_to_chat(found)


_NEWEST_OF_CHAT = {kind: _of_chat(write_newest(OWNERS_OF_CHAT, _IN_CHAT, kind)) for kind in KINDS}
_NEWEST = {kind: write_newest(OWNER_GIVEN, _ANYWHERE, kind) for kind in KINDS}
_HISTORY_OF_CHAT = {kind: _of_chat(write_history(OWNERS_OF_CHAT, _IN_CHAT, kind, key="$3")) for kind in KINDS}
_HISTORY_OF_CHAT_WITH_CALLS = {
    kind: _of_chat(write_history(OWNERS_OF_CHAT, _IN_CHAT_WITH_CALLS, kind, key="$3")) for kind in KINDS
}
_HISTORY = {kind: write_history(OWNER_GIVEN, _ANYWHERE, kind, key="$5") for kind in KINDS}

_RATINGS_OF_CHAT = _of_chat(write_ratings(OWNERS_OF_CHAT, ids="$3::uuid[]"))
_RATINGS = write_ratings(OWNER_GIVEN, ids="$5::uuid[]")

_LOG_OF_CHAT = {kind: _of_chat(write_log(OWNERS_OF_CHAT, _IN_CHAT, kind)) for kind in KINDS}
_LOG_OF_CHAT_WITH_OPEN = {kind: _of_chat(write_log(OWNERS_OF_CHAT, _IN_CHAT_WITH_OPEN, kind)) for kind in KINDS}
_LOG = {kind: write_log(OWNER_GIVEN, _ANYWHERE, kind) for kind in KINDS}

# Stores the replies that calls were bound to: `first_seq` is the seq of the reply.
_BIND = """
    UPDATE teachings t SET first_seq = n.first_seq, hidden = n.hidden
    FROM unnest($3::uuid[], $4::int[], $5::boolean[]) AS n (teaching_id, first_seq, hidden)
    WHERE t.chat_key = $1 AND t.line_id = $2 AND t.teaching_id = n.teaching_id
    RETURNING t.wide_key"""

_HIDE = """
    UPDATE teachings t SET hidden = n.hidden
    FROM unnest($3::uuid[], $4::boolean[]) AS n (teaching_id, hidden)
    WHERE t.chat_key = $1 AND t.line_id = $2 AND t.teaching_id = n.teaching_id
    RETURNING t.wide_key"""

_DROP = """
    DELETE FROM teachings WHERE chat_key = $1 AND line_id = $2 AND teaching_id = ANY($3) RETURNING wide_key"""

_TRUNCATE = "DELETE FROM teachings WHERE chat_key = $1 AND line_id = $2 AND first_seq >= $3 RETURNING wide_key"

_MOVE = """
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, hidden)
    SELECT $1, $2, t.teaching_id, t.layer, t.statement_id, t.wide_key, n.first_seq, n.hidden
    FROM unnest($4::uuid[], $5::int[], $6::boolean[]) AS n (teaching_id, first_seq, hidden)
    JOIN teachings t ON t.chat_key = $1 AND t.line_id = $3 AND t.teaching_id = n.teaching_id"""

_LIST_MOVED = """
    SELECT teaching_id FROM teachings
    WHERE chat_key = $1 AND line_id = $2 AND first_seq > $3 AND text_hash IS NULL"""

# The fork gets the statements that a person set, because these are live on all lines. It also gets the statements whose
# teachings were copied to its own line.
_COPY_OF_CHAT = f"""
    INSERT INTO statements (owner_key, {", ".join(_COPIED)}) SELECT $2, {", ".join(_COPIED)} FROM statements s
    WHERE s.owner_key = $1 AND s.line_id = '{CHAT_WIDE}' AND (s.is_set OR EXISTS (
        SELECT FROM teachings t
        WHERE t.chat_key = $2 AND t.line_id = $3 AND t.statement_id = s.statement_id AND t.wide_key IS NULL))"""  # noqa: S608

_WIDE_KEYS = "SELECT DISTINCT wide_key FROM teachings WHERE chat_key = $1 AND wide_key IS NOT NULL"

_COUNT_KEYS = {
    kind: f"SELECT count(*)::int FROM (SELECT FROM ({write_keys(OWNER_GIVEN, kind)}) AS k LIMIT $5) AS k"  # noqa: S608
    for kind in KINDS
}
_COUNT_HELD = {
    kind: f"SELECT count(*)::int FROM (SELECT FROM ({_NEWEST[kind]}) AS n WHERE n.content IS NOT NULL LIMIT $5) AS n"  # noqa: S608
    for kind in KINDS
}

_HAS_KEY = """
    SELECT EXISTS (SELECT FROM statements
        WHERE owner_key = $1 AND line_id = $2 AND kind = $3 AND character = $4 AND key = $5)"""

_HAS_VALUE = {kind: f"SELECT h.content IS NOT NULL FROM ({_HISTORY[kind]}) AS h LIMIT 1" for kind in KINDS}  # noqa: S608

_NEWEST_ID = """
    SELECT statement_id FROM statements
    WHERE owner_key = $1 AND line_id = $2 AND kind = $3 AND character = $4 AND key = $5
    ORDER BY learnt_at DESC, statement_id DESC LIMIT 1"""

_TAUGHT_BY = f"""h.owner_key = coalesce(o.wide_key, o.chat_key) AND h.statement_id = o.statement_id
        AND h.line_id = CASE WHEN o.wide_key IS NULL THEN '{CHAT_WIDE}' ELSE '{NO_LINE}' END::uuid"""

# What was learnt from each message of a range, without facts whose key has a newer live statement, and without memories
# that were forgotten. `s` are the newer statements of the key.
_LEARNT = f"""
    SELECT DISTINCT ON (o.first_seq) o.first_seq, h.key, h.statement_id
    FROM teachings o JOIN statements h ON {_TAUGHT_BY}
    WHERE o.chat_key = $1 AND o.line_id = $2 AND o.first_seq BETWEEN $3 AND $4 AND NOT o.hidden AND h.kind = $5
        AND h.content IS NOT NULL AND NOT EXISTS (
            SELECT FROM statements s WHERE s.owner_key = h.owner_key AND s.line_id = h.line_id AND s.kind = h.kind
                AND s.character = h.character AND s.key = h.key
                AND (s.learnt_at, s.statement_id) > (h.learnt_at, h.statement_id)
                AND (h.kind = 'fact' OR s.content IS NULL) AND {_ON_LINE} {ONE_LOOKUP_EACH})
    ORDER BY o.first_seq, h.importance DESC NULLS LAST, h.learnt_at DESC, h.statement_id DESC"""  # noqa: S608

_POSITIONS = f"""
    SELECT DISTINCT ON (t.statement_id) t.statement_id, t.chat_key, t.line_id, t.first_seq
    FROM teachings t
    WHERE t.statement_id = ANY($3) AND NOT t.hidden AND CASE WHEN t.chat_key = $1 THEN t.line_id = $2
        ELSE (t.wide_key IS NOT NULL) {NOT_BY_INDEX} AND {IS_ON_CURRENT_LINE} END
    ORDER BY t.statement_id, t.chat_key IS NOT DISTINCT FROM $1 DESC, t.first_seq DESC, t.chat_key"""  # noqa: S608

_WRITTEN = f"""
    SELECT o.teaching_id, h.kind, h.key, h.content, h.operation, h.pattern
    FROM teachings o JOIN statements h ON {_TAUGHT_BY}
    WHERE o.chat_key = $1 AND o.line_id = $2 AND o.teaching_id = ANY($3)"""  # noqa: S608


class Written(NamedTuple):
    """What a statement says. Each field is the column of the same name."""

    kind: str
    key: str
    content: str | None
    operation: str | None
    pattern: str | None


async def list_newest(db_session: DbSession, scope: ScopeKey, kind: str) -> list[Known]:
    """Return the newest live statement of each key in one scope, as the current lines of all chats see it."""
    return _known(await db_session.raw.fetch(_NEWEST[kind], *_where(scope)))


async def list_newest_of_chat(db_session: DbSession, line: Line, kind: str, *, only_chat: bool) -> list[Known]:
    """Return the newest live statement of each key in each scope that a line sees, or in the chat itself."""
    return _known(await db_session.raw.fetch(_NEWEST_OF_CHAT[kind][only_chat], *line))


async def list_history(db_session: DbSession, scope: ScopeKey, kind: str, key: str) -> list[Known]:
    """Return the live statements of a key in one scope, newest first."""
    return _known(await db_session.raw.fetch(_HISTORY[kind], *_where(scope), key))


async def list_history_of_chat(
    db_session: DbSession, line: Line, kind: str, key: str, *, only_chat: bool, with_call: UUID | None = None
) -> list[Known]:
    """Return the live statements of a key in each scope that a line sees, or in the chat itself, newest first.

    With `with_call`, the statement with this id counts as live, and so do those of calls whose replies are still to
    come.
    """
    if with_call is not None:
        query = _HISTORY_OF_CHAT_WITH_CALLS[kind][only_chat]
        return _known(await db_session.raw.fetch(query, *line, key, with_call))
    return _known(await db_session.raw.fetch(_HISTORY_OF_CHAT[kind][only_chat], *line, key))


async def list_log(db_session: DbSession, scope: ScopeKey, kind: str) -> list[Known]:
    """Return the live operations of each key in one scope, from the newest live `replace` on."""
    return _known(await db_session.raw.fetch(_LOG[kind], *_where(scope)))


async def list_log_of_chat(
    db_session: DbSession, line: Line, kind: str, *, with_open: bool, only_chat: bool
) -> list[Known]:
    """Return the live operations of each key in each scope that a line sees, from the newest live `replace` on.

    `with_open` includes the operations of calls whose replies are still to come. With `only_chat`, only the chat itself
    is read.
    """
    queries = _LOG_OF_CHAT_WITH_OPEN if with_open else _LOG_OF_CHAT
    return _known(await db_session.raw.fetch(queries[kind][only_chat], *line))


async def list_ratings(db_session: DbSession, scope: ScopeKey, statement_ids: Sequence[UUID]) -> dict[UUID, Rating]:
    """Return the ratings of statements in one scope, by statement id."""
    return _ratings(await db_session.raw.fetch(_RATINGS, *_where(scope), list(statement_ids)))


async def list_ratings_of_chat(
    db_session: DbSession, line: Line, statement_ids: Sequence[UUID], *, only_chat: bool
) -> dict[UUID, Rating]:
    """Return the ratings of statements, by statement id, in the scopes that a line sees or only in the chat itself."""
    return _ratings(await db_session.raw.fetch(_RATINGS_OF_CHAT[only_chat], *line, list(statement_ids)))


async def insert_statement(db_session: DbSession, statement: Statement) -> None:
    """Insert a statement with its own `learnt_at`."""
    await db_session.execute(insert(Statement).values(_values_of(statement)))


async def insert_newest(db_session: DbSession, statement: Statement) -> None:
    """Insert a statement. If the newest statement of its key is not older, date the new one just after it.

    So a later statement of a person or a tool is newer, even if the clocks of several processes differ.
    """
    newest = select(func.max(Statement.learnt_at) + timedelta(microseconds=1)).where(
        Statement.owner_key == statement.owner_key,
        Statement.line_id == statement.line_id,
        Statement.kind == statement.kind,
        Statement.character == statement.character,
        Statement.key == statement.key,
    )
    learnt_at = func.greatest(statement.learnt_at, newest.scalar_subquery())
    await db_session.execute(insert(Statement).values({**_values_of(statement), "learnt_at": learnt_at}))


def _values_of(statement: Statement) -> dict[str, Any]:
    return {column.name: getattr(statement, column.name) for column in Statement.__table__.columns}


async def insert_teaching(db_session: DbSession, teaching: Teaching) -> None:
    """Insert a teaching."""
    values = {column.name: getattr(teaching, column.name) for column in Teaching.__table__.columns}
    await db_session.execute(insert(Teaching).values(values))


async def bind(db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, int, bool]]) -> list[UUID]:
    """Set `first_seq` and `hidden` of each (teaching_id, first_seq, hidden). Return the `wide_key`s, without null."""
    return _wide(await db_session.raw.fetch(_BIND, *line, *zip(*rows, strict=True)))


async def hide(db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, bool]]) -> list[UUID]:
    """Hide or show teachings: (teaching_id, hidden). Return the `wide_key`s, without null."""
    return _wide(await db_session.raw.fetch(_HIDE, *line, *zip(*rows, strict=True)))


async def drop(db_session: DbSession, line: Line, teaching_ids: Sequence[UUID]) -> list[UUID]:
    """Delete teachings. Return the `wide_key`s, without null."""
    return _wide(await db_session.raw.fetch(_DROP, *line, list(teaching_ids)))


async def truncate(db_session: DbSession, line: Line, from_seq: int) -> list[UUID]:
    """Delete the teachings from a seq (inclusive) on. Return the `wide_key`s, without null."""
    return _wide(await db_session.raw.fetch(_TRUNCATE, *line, from_seq))


async def list_after(db_session: DbSession, line: Line, seq: int) -> list[UUID]:
    """Return the ids of the teachings of tools after a seq."""
    return [row["teaching_id"] for row in await db_session.raw.fetch(_LIST_MOVED, *line, seq)]


async def move(db_session: DbSession, line: Line, from_line_id: UUID, rows: Sequence[tuple[UUID, int, bool]]) -> None:
    """Copy teachings from another line of the chat to this line: (teaching_id, new first_seq, new hidden)."""
    if rows:
        await db_session.raw.execute(_MOVE, *line, from_line_id, *zip(*rows, strict=True))


async def copy_of_chat(db_session: DbSession, chat_key: UUID, target: Line) -> None:
    """Copy the statements of a chat to its fork: those that a person set, and those whose teachings the fork has."""
    await db_session.raw.execute(_COPY_OF_CHAT, chat_key, *target)


async def list_wide_keys(db_session: DbSession, chat_key: UUID) -> list[UUID]:
    """Return the keys of the users and tenants that any line of a chat taught something about."""
    return _wide(await db_session.raw.fetch(_WIDE_KEYS, chat_key))


async def count_keys(db_session: DbSession, scope: ScopeKey, kind: str, at_most: int) -> int:
    """Return how many keys have statements in a scope, live or not; no more than `at_most` are counted."""
    count: int = await db_session.raw.fetchval(_COUNT_KEYS[kind], *_where(scope), at_most)
    return count


async def count_held(db_session: DbSession, scope: ScopeKey, kind: str, at_most: int) -> int:
    """Return how many keys have a value in a scope; no more than `at_most` are counted."""
    count: int = await db_session.raw.fetchval(_COUNT_HELD[kind], *_where(scope), at_most)
    return count


async def has_key(db_session: DbSession, scope: ScopeKey, kind: str, key: str) -> bool:
    """Return whether a key has any statement in a scope, live or not."""
    where = (scope.owner_key, scope.line_id, kind, scope.character, key)
    return bool(await db_session.raw.fetchval(_HAS_KEY, *where))


async def has_value(db_session: DbSession, scope: ScopeKey, kind: str, key: str) -> bool:
    """Return whether a key has a value in a scope: whether its newest live statement has one."""
    return bool(await db_session.raw.fetchval(_HAS_VALUE[kind], *_where(scope), key))


async def find_newest_id(db_session: DbSession, scope: ScopeKey, kind: str, key: str) -> UUID | None:
    """Return the id of the newest statement about a key in a scope, live or not; None if there is none."""
    where = (scope.owner_key, scope.line_id, kind, scope.character, key)
    found: UUID | None = await db_session.raw.fetchval(_NEWEST_ID, *where)
    return found


async def list_written(db_session: DbSession, line: Line, teaching_ids: Sequence[UUID]) -> dict[UUID, Written]:
    """Return the statement of each of these teachings of a line."""
    rows = await db_session.raw.fetch(_WRITTEN, *line, list(teaching_ids))
    return {teaching_id: Written(*values) for teaching_id, *values in rows}


async def list_positions(
    db_session: DbSession, line: Line | None, statement_ids: Sequence[UUID]
) -> dict[UUID, tuple[UUID, UUID, int]]:
    """Return the newest position at which each statement was taught: a chat's key, its line, and a seq.

    If `line` taught the statement, the position is on `line`, otherwise on the current line of another chat.
    """
    chat_key, line_id = line or (None, None)
    rows = await db_session.raw.fetch(_POSITIONS, chat_key, line_id, list(statement_ids))
    return {row["statement_id"]: (row["chat_key"], row["line_id"], row["first_seq"]) for row in rows}


async def list_learnt(
    db_session: DbSession, line: Line, kind: str, first_seq: int, last_seq: int
) -> list[tuple[int, str, UUID]]:
    """Return (seq, key, statement id) of the most important statement of a kind that each message taught.

    Facts that a newer statement replaced or took away, and memories that were forgotten, are left out.
    """
    rows = await db_session.raw.fetch(_LEARNT, *line, first_seq, last_seq, kind)
    return [(row["first_seq"], row["key"], row["statement_id"]) for row in rows]


def _where(scope: ScopeKey) -> tuple[UUID, UUID, int, str]:
    return scope.owner_key, scope.line_id, scope.rank, scope.character


def _known(rows: Sequence[asyncpg.Record]) -> list[Known]:
    return [Known(*row) for row in rows]


def _ratings(rows: Sequence[asyncpg.Record]) -> dict[UUID, Rating]:
    return {row["statement_id"]: Rating(row["category"], row["importance"], tuple(row["tags"] or ())) for row in rows}


def _wide(rows: Sequence[asyncpg.Record]) -> list[UUID]:
    return [row["wide_key"] for row in rows if row["wide_key"] is not None]
