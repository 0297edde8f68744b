"""SQL of changes to messages: recounts turns, hides ranges, cuts off the end of a line, reads swipes and revisions."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import asyncpg
from sqlalchemy import ColumnElement, and_, func, select

from app.chats.head import Head, RangeMessage
from app.chats.models import Message, Revision, Swipe
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages.reads import RANGE_COLUMNS
from app.messages.rules import SPEAKS

_OF_LINE = "chat_key = $1 AND line_id = $2"

_SPEAKS = f"{_OF_LINE} AND {SPEAKS}"

_TURNS = f"""
    SELECT count(*) FILTER (WHERE role = 'assistant' AND former = 'user')::int FROM (
        SELECT role, lag(role) OVER (ORDER BY seq) AS former FROM messages
        WHERE {_SPEAKS} AND seq BETWEEN
            coalesce((SELECT seq FROM messages WHERE {_SPEAKS} AND seq < $3 ORDER BY seq DESC LIMIT 1), $3)
            AND coalesce((SELECT seq FROM messages WHERE {_SPEAKS} AND seq > $4 ORDER BY seq LIMIT 1), $4)
    ) AS spoken"""  # noqa: S608 - constants only

_LAST_SPEAKER = f"SELECT role FROM messages WHERE {_SPEAKS} ORDER BY seq DESC LIMIT 1"  # noqa: S608

_LEFT_FROM = f"""
    SELECT {RANGE_COLUMNS} FROM messages WHERE {_OF_LINE} AND seq >= $3 AND deleted_at IS NULL
    ORDER BY seq"""  # noqa: S608

_CUT_OFF = f"UPDATE messages SET deleted_at = $4 WHERE {_OF_LINE} AND seq >= $3 AND deleted_at IS NULL"  # noqa: S608

_WANTED = f"""unnest($3::int[], $4::int[], $5::text[]) AS r (first_seq, last_seq, wanted) CROSS JOIN LATERAL (
        SELECT *, ctid AS row_ref FROM messages
        WHERE {_OF_LINE} AND seq BETWEEN r.first_seq AND r.last_seq AND deleted_at IS NULL
            AND hidden_by IS DISTINCT FROM r.wanted {ONE_LOOKUP_EACH}
    ) AS m"""  # noqa: S608

_SEEN_OTHERWISE = f"""
    SELECT {RANGE_COLUMNS}, wanted FROM {_WANTED} ORDER BY seq"""  # noqa: S608

# If a person un-hides a message, scenes do not hide it again, no matter who had hidden it. `_WANTED` has no rows for
# messages that are visible already, so un-hiding them has no effect.
_HIDE = f"""
    UPDATE messages SET hidden_by = n.wanted, visibility_pinned = n.wanted IS NULL
    FROM (SELECT row_ref, wanted FROM {_WANTED}) AS n
    WHERE messages.ctid = n.row_ref"""  # noqa: S608

# Two branches, so that the first one reads the index of visible messages and not all messages of a long chat.
_HIDE_BY_SCENES = f"""
    UPDATE messages SET hidden_by = n.wanted FROM (
        SELECT m.row_ref, 'scenes' AS wanted FROM unnest($3::int[], $4::int[]) AS r (first_seq, last_seq)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages
            WHERE {_OF_LINE} AND seq BETWEEN r.first_seq AND r.last_seq AND deleted_at IS NULL AND hidden_by IS NULL
                AND NOT visibility_pinned {ONE_LOOKUP_EACH}) AS m
        UNION ALL
        SELECT m.row_ref, NULL FROM unnest($5::int[], $6::int[]) AS r (first_seq, last_seq)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages
            WHERE {_OF_LINE} AND seq BETWEEN r.first_seq AND r.last_seq AND deleted_at IS NULL
                AND hidden_by = 'scenes' {ONE_LOOKUP_EACH}) AS m
    ) AS n WHERE messages.ctid = n.row_ref
    RETURNING {RANGE_COLUMNS}"""  # noqa: S608

_SWIPES = f"SELECT seq, swipe_index, content FROM swipes WHERE {_OF_LINE} AND seq = ANY($3) ORDER BY seq, swipe_index"  # noqa: S608

Visibility = tuple[int, int, str | None]
"""A range of seqs (inclusive) and its value of `hidden_by`; None un-hides it."""


@asynccontextmanager
async def recounting_turns(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> AsyncIterator[None]:
    """Update `turn_count` and `awaits_reply` of `head` after the `with` block.

    The block may change only messages of the range (inclusive).
    """
    around = (*head.line, first_seq, last_seq)
    former: int = await db_session.raw.fetchval(_TURNS, *around)
    yield
    head.turn_count += await db_session.raw.fetchval(_TURNS, *around) - former
    head.awaits_reply = await db_session.raw.fetchval(_LAST_SPEAKER, *head.line) == "user"


async def find_message_or_tombstone(
    db_session: DbSession, chat_key: UUID, line_id: UUID, message_id: str
) -> Message | None:
    """Return a message by the caller's id, even if it is deleted, or None."""
    query = select(Message).where(
        Message.chat_key == chat_key, Message.line_id == line_id, Message.message_id == message_id
    )
    return (await db_session.execute(query)).scalar_one_or_none()


async def list_left_from(db_session: DbSession, head: Head, from_seq: int) -> list[RangeMessage]:
    """Return the messages from `from_seq` on that are not deleted."""
    rows = await db_session.raw.fetch(_LEFT_FROM, *head.line, from_seq)
    return [RangeMessage(*row) for row in rows]


async def truncate(db_session: DbSession, head: Head, from_seq: int, now: datetime) -> None:
    """Soft-delete the messages from `from_seq` on."""
    await db_session.raw.execute(_CUT_OFF, *head.line, from_seq, now)


async def hide(
    db_session: DbSession, head: Head, ranges: Sequence[Visibility]
) -> list[tuple[RangeMessage, RangeMessage]]:
    """Hide and un-hide ranges that do not overlap; return each message that changed, before and after."""
    arguments = (*head.line, *zip(*ranges, strict=True))
    rows = await db_session.raw.fetch(_SEEN_OTHERWISE, *arguments)
    if rows:
        await db_session.raw.execute(_HIDE, *arguments)
    seen = [(RangeMessage(*list(row)[:-1]), row["wanted"]) for row in rows]
    return [(message, message._replace(hidden_by=wanted)) for message, wanted in seen]


async def hide_by_scenes(
    db_session: DbSession, head: Head, hidden: Sequence[tuple[int, int]], shown: Sequence[tuple[int, int]]
) -> list[tuple[RangeMessage, RangeMessage]]:
    """Hide the ranges `hidden` (inclusive) on behalf of scenes and un-hide `shown`.

    Return each message that changed, before and after. Messages that a person hid or keeps visible do not change.
    """
    ends = [[seqs[end] for seqs in ranges] for ranges in (hidden, shown) for end in (0, 1)]
    rows = await db_session.raw.fetch(_HIDE_BY_SCENES, *head.line, *ends)
    changed = sorted((RangeMessage(*row) for row in rows), key=lambda message: message.seq)
    return [(message._replace(hidden_by=None if message.hidden_by else "scenes"), message) for message in changed]


async def list_swipes(
    db_session: DbSession, chat_key: UUID, line_id: UUID, seqs: Sequence[int]
) -> list[asyncpg.Record]:
    """Return the unselected alternatives of messages: (seq, swipe_index, content), in this order."""
    return await db_session.raw.fetch(_SWIPES, chat_key, line_id, list(seqs))


async def count_swipes(db_session: DbSession, message: Message) -> int:
    """Return how many alternatives a message has besides the selected one."""
    query = select(func.count()).where(
        Swipe.chat_key == message.chat_key, Swipe.line_id == message.line_id, Swipe.seq == message.seq
    )
    return (await db_session.execute(query)).scalar_one()


async def find_swipe(db_session: DbSession, message: Message, swipe_index: int) -> Swipe | None:
    """Return an unselected alternative of a message, or None."""
    return await db_session.get(Swipe, (message.chat_key, message.line_id, message.seq, swipe_index))


async def next_revision(db_session: DbSession, message: Message) -> int:
    """Return the number of a message's next revision; the first is 1."""
    query = select(func.coalesce(func.max(Revision.number), 0) + 1).where(
        Revision.chat_key == message.chat_key, Revision.line_id == message.line_id, Revision.seq == message.seq
    )
    return (await db_session.execute(query)).scalar_one()


async def list_revisions(
    db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int, *, before: int | None, limit: int
) -> Sequence[Revision]:
    """Return the revisions of a message, newest first; only those before the number `before`, if it is given."""
    query = select(Revision).where(_of_message(chat_key, line_id, seq, before))
    return (await db_session.execute(query.order_by(Revision.number.desc()).limit(limit))).scalars().all()


async def list_revision_sizes(
    db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int, *, before: int | None, limit: int
) -> Sequence[int]:
    """Return the sizes in bytes of the texts that `list_revisions` returns, in its order, without reading the texts."""
    query = select(func.octet_length(Revision.content)).where(_of_message(chat_key, line_id, seq, before))
    return (await db_session.execute(query.order_by(Revision.number.desc()).limit(limit))).scalars().all()


def _of_message(chat_key: UUID, line_id: UUID, seq: int, before: int | None) -> ColumnElement[bool]:
    of_message = and_(Revision.chat_key == chat_key, Revision.line_id == line_id, Revision.seq == seq)
    return of_message if before is None else and_(of_message, Revision.number < before)
