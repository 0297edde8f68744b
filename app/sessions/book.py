"""Commands on sessions: list them, read one, end the open one by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg
import orjson

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import SessionReason
from app.chats.models import ChatLine
from app.chats.revision import record_nothing
from app.chats.service import get_line
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.messages.range_reads import count_in_ranges
from app.sessions import queries
from app.sessions.errors import SessionNotFound
from app.sessions.handlers import end_by_hand
from app.sessions.open_session import NAME, OpenSession
from app.sessions.settings import SessionSettings

MOST_COUNTED = 1_000
"""The most messages of a session that are counted, so that a list does not take longer for longer sessions."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as it is listed.

    Attributes:
        session_id: Its id.
        number: Its number, from 1.
        first_seq: The seq at which it begins.
        last_seq: The seq at which it ended, inclusive; None while it is open.
        reason: Why it began.
        messages: How many messages it has; None above MOST_COUNTED.
        began_at: When it began.
        ended_at: When it ended; None while it is open.

    """

    session_id: UUID
    number: int
    first_seq: int
    last_seq: int | None
    reason: SessionReason
    messages: int | None
    began_at: datetime
    ended_at: datetime | None


async def list_sessions(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, after_number: int, limit: int
) -> list[Listed]:
    """Return the sessions with a number greater than `after_number`, in story order.

    Raises ChatNotFound, LineNotFound.
    """
    chat = await get_line(db_session, ref, line)
    return await _list(db_session, chat, after_number=after_number, limit=limit)


async def get_session(db_session: DbSession, ref: ChatRef, number: int, *, line: UUID | None = None) -> Listed:
    """Return one session. Raises ChatNotFound, LineNotFound, SessionNotFound."""
    chat = await get_line(db_session, ref, line)
    found = await _list(db_session, chat, after_number=number - 1, limit=1)
    if not found:
        raise SessionNotFound(f"There is no session {number} on this line.")
    return found[0]


async def find_ids(db_session: DbSession, positions: Sequence[tuple[UUID, UUID, int]]) -> list[UUID | None]:
    """Return the id of the session at each of `positions`, given as (key of the chat, id of the line, seq).

    The id is None if the line never had a break and its sessions are switched off.
    """
    if not positions:
        return []
    found = await queries.list_ids_at(db_session, positions)
    undivided = {position[:2] for position, session_id in zip(positions, found, strict=True) if session_id is None}
    only = await _find_only_ids(db_session, sorted(undivided)) if undivided else {}
    return [session_id or only.get(position[:2]) for position, session_id in zip(positions, found, strict=True)]


async def end_session(db_session: DbSession, ref: ChatRef, *, now: datetime) -> tuple[bool, Listed]:
    """End the open session; return whether that changed anything, and the session that is open now.

    A session without messages stays open. Raises ChatNotFound.
    """
    head = await lock_head(db_session, ref)
    ended = await end_by_hand(db_session, head, now=now)
    if ended is None:
        record_nothing(db_session, head.line)
        return False, await get_session(db_session, ref, OpenSession.of(head).number)
    defer(db_session, ended)
    await db_session.run_deferred()
    return True, await get_session(db_session, ref, ended.number + 1)


async def _list(db_session: DbSession, chat: ChatLine, *, after_number: int, limit: int) -> list[Listed]:
    line = (chat.chat_key, chat.line_id)
    rows: Sequence[asyncpg.Record] = await queries.list_sessions(
        db_session, *line, after_number=after_number, limit=limit
    )
    if not rows:
        return [await _only_session(db_session, chat)] if after_number == 0 else []
    ranges = [(row["first_seq"], row["last_seq"] or chat.head_seq) for row in rows]
    counts = await count_in_ranges(db_session, *line, ranges, most=MOST_COUNTED)
    return [
        Listed(
            session_id=row["session_id"],
            number=row["number"],
            first_seq=row["first_seq"],
            last_seq=row["last_seq"],
            reason=row["reason"],
            messages=counts[row["first_seq"]],
            began_at=row["began_at"],
            ended_at=row["ended_at"],
        )
        for row in rows
    ]


async def _only_session(db_session: DbSession, chat: ChatLine) -> Listed:
    """Return the only session of a line that never had a break; the session has no row."""
    only = OpenSession.from_json(chat.chat_key, chat.cursors.get(NAME))
    line = (chat.chat_key, chat.line_id)
    counts = await count_in_ranges(db_session, *line, [(1, chat.head_seq)], most=MOST_COUNTED)
    return Listed(
        session_id=only.session_id,
        number=1,
        first_seq=1,
        last_seq=None,
        reason="first",
        messages=counts[1],
        began_at=chat.created_at,
        ended_at=None,
    )


async def _find_only_ids(db_session: DbSession, lines: Sequence[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], UUID]:
    """Return the id of the only session of each line whose sessions are switched on."""
    return {
        line: OpenSession.from_json(line[0], orjson.loads(stored) if stored else None).session_id
        for line, settings, stored in await queries.list_undivided(db_session, lines, NAME)
        if SessionSettings.of(effective(orjson.loads(settings))).enabled
    }
