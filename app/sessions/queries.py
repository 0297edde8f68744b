"""SQL that reads and writes sessions."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from app.chats.events import SessionReason
from app.chats.head import Head
from app.kit.db import DbSession

_LISTED = """
    SELECT s.number, s.session_id, s.first_seq, s.reason, s.began_at,
        following.first_seq - 1 AS last_seq, following.began_at AS ended_at
    FROM sessions s LEFT JOIN sessions following
        ON following.chat_key = s.chat_key AND following.line_id = s.line_id AND following.number = s.number + 1
    WHERE s.chat_key = $1 AND s.line_id = $2 AND s.number > $3 ORDER BY s.number LIMIT $4"""

# The row of the first session is inserted with the first break. After a truncation it can exist without another row.
_INSERT = """
    INSERT INTO sessions (chat_key, line_id, number, session_id, first_seq, reason, began_at)
    SELECT chat_key, line_id, 1, $3::uuid, 1, 'first', created_at FROM chats
    WHERE chat_key = $1 AND line_id = $2 AND $4
    UNION ALL
    SELECT $1::uuid, $2::uuid, new.* FROM unnest($5::int[], $6::uuid[], $7::int[], $8::text[], $9::timestamptz[]) AS new
    ON CONFLICT (chat_key, line_id, number) DO NOTHING"""

_DELETE_FROM = "DELETE FROM sessions WHERE chat_key = $1 AND line_id = $2 AND first_seq >= $3 AND number > 1"

_NEWEST = """
    SELECT number, session_id, first_seq FROM sessions
    WHERE chat_key = $1 AND line_id = $2 ORDER BY number DESC LIMIT 1"""

_BEGUN_AFTER = """
    SELECT session_id, first_seq, reason, began_at FROM sessions
    WHERE chat_key = $1 AND line_id = $2 AND first_seq > $3 AND number > 1 ORDER BY number"""

_AT = """
    SELECT (
        SELECT s.session_id FROM sessions s
        WHERE s.chat_key = p.chat_key AND s.line_id = p.line_id AND s.first_seq <= p.seq
        ORDER BY s.number DESC LIMIT 1) AS session_id
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) WITH ORDINALITY AS p (chat_key, line_id, seq, at) ORDER BY p.at"""

_UNDIVIDED = """
    SELECT c.chat_key, c.line_id, c.settings::text AS settings, (c.cursors -> $3)::text AS stored
    FROM unnest($1::uuid[], $2::uuid[]) AS p (chat_key, line_id)
    JOIN chats c ON c.chat_key = p.chat_key AND c.line_id = p.line_id"""


class NewSession(NamedTuple):
    """A session to insert."""

    number: int
    session_id: UUID
    first_seq: int
    reason: SessionReason
    began_at: datetime


async def list_sessions(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, after_number: int, limit: int
) -> list[asyncpg.Record]:
    """Return the sessions with a number greater than `after_number`, in order, each with its end.

    A line without a break has no rows, so the result is empty.
    """
    return await db_session.raw.fetch(_LISTED, chat_key, line_id, after_number, limit)


async def insert_sessions(
    db_session: DbSession, head: Head, sessions: Sequence[NewSession], *, first_id: UUID | None
) -> None:
    """Insert sessions; if `first_id` is given, also insert the line's first session, unless it has a row already."""
    columns = [list(column) for column in zip(*sessions, strict=True)]
    await db_session.raw.execute(_INSERT, *head.line, first_id, first_id is not None, *columns)


async def delete_from(db_session: DbSession, head: Head, from_seq: int) -> bool:
    """Delete the sessions that begin at or after `from_seq`, except the first one; return whether there were any."""
    status = await db_session.raw.execute(_DELETE_FROM, *head.line, from_seq)
    return status != "DELETE 0"


async def find_newest(db_session: DbSession, head: Head) -> asyncpg.Record | None:
    """Return the last session of the line, or None if it has no rows."""
    return await db_session.raw.fetchrow(_NEWEST, *head.line)


async def list_begun_after(db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int) -> list[asyncpg.Record]:
    """Return the sessions of a line that begin after `seq`, in order, without the first one."""
    return await db_session.raw.fetch(_BEGUN_AFTER, chat_key, line_id, seq)


async def list_ids_at(db_session: DbSession, positions: Sequence[tuple[UUID, UUID, int]]) -> list[UUID | None]:
    """Return the id of the session at each of `positions` (chat key, line id, seq); None for lines without rows."""
    rows = await db_session.raw.fetch(_AT, *([one[column] for one in positions] for column in range(3)))
    return [row["session_id"] for row in rows]


async def list_undivided(
    db_session: DbSession, lines: Sequence[tuple[UUID, UUID]], name: str
) -> list[tuple[tuple[UUID, UUID], str, str | None]]:
    """Return the settings and the cursor `name` of lines, as JSON texts."""
    rows = await db_session.raw.fetch(_UNDIVIDED, [key for key, _ in lines], [line_id for _, line_id in lines], name)
    return [((row["chat_key"], row["line_id"]), row["settings"], row["stored"]) for row in rows]
