"""Reads the messages of a line, for all packages that need them.

Messages from the anchor on are sent word for word in contexts. Scenes can hide messages from contexts (auto-hide).
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy import select

from app.chats.head import Head, RangeMessage, Sent
from app.chats.models import Message
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages.calls import drop_unsent
from app.messages.rules import HAS_TURN_ROLE, IS_NOT_DELETED, IS_SENT, IS_SENT_OR_SCENE_HIDDEN

RANGE_COLUMNS = "seq, message_id, role, name, kind, tokens, blank, excluded, hidden_by, deleted_at IS NOT NULL, digest"
"""The fields of a RangeMessage."""


_RANGE = f"""
    SELECT {RANGE_COLUMNS} FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq"""  # noqa: S608 - constants only


# `ONE_LOOKUP_EACH` explains the ORDER BY.
NOT_DELETED = f"""
    SELECT {RANGE_COLUMNS} FROM unnest($3::int[], $4::int[]) AS r (first_seq, last_seq) CROSS JOIN LATERAL (
        SELECT * FROM messages
        WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN r.first_seq AND r.last_seq AND deleted_at IS NULL
        ORDER BY seq {ONE_LOOKUP_EACH}
    ) AS m ORDER BY seq"""  # noqa: S608


_AWAITED_REPLY = f"""
    SELECT role = 'user' FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND seq < $3 AND {HAS_TURN_ROLE} AND (role = 'assistant' OR {IS_NOT_DELETED})
    ORDER BY seq DESC LIMIT 1"""  # noqa: S608


_SHAPE_OF_ALL = """
    SELECT seq, role, tool_calls::text AS tool_calls, tool_call_id, tokens FROM messages
    WHERE chat_key = $1 AND line_id = $2"""


_SHAPE = f"{_SHAPE_OF_ALL} AND {IS_SENT}"


_HISTORY_SHAPE = _SHAPE + " AND seq >= $3 ORDER BY seq"


_SENT_AFTER = _SHAPE + " AND seq > $3 ORDER BY seq LIMIT $4"


_NOT_HIDDEN_BY_SCENES = """
    WITH next AS (
        SELECT coalesce(min(seq), $4::int) AS seq FROM messages
        WHERE chat_key = $1 AND line_id = $2 AND seq >= $3 AND deleted_at IS NULL
            AND hidden_by IS DISTINCT FROM 'scenes')
    SELECT next.seq FROM next WHERE EXISTS (
        SELECT FROM messages m
        WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq >= $3 AND m.seq < next.seq AND m.deleted_at IS NULL)"""


_SUMMARISABLE_AFTER = f"{_SHAPE_OF_ALL} AND {IS_SENT_OR_SCENE_HIDDEN} AND seq > $3 ORDER BY seq LIMIT $4"


_NEWEST_SUMMARISABLE = f"{_SHAPE_OF_ALL} AND {IS_SENT_OR_SCENE_HIDDEN} ORDER BY seq DESC LIMIT $3"


_NEWEST_SENT_AT = f"""
    SELECT sent_at FROM messages WHERE chat_key = $1 AND line_id = $2 AND {IS_SENT} ORDER BY seq DESC LIMIT 1"""  # noqa: S608


_NEWEST_SHAPE = _SHAPE + " ORDER BY seq DESC LIMIT $3"


# PostgreSQL stores a long text outside the row, and knows its length without reading it.
_SIZES = """
    SELECT octet_length(m.content) + coalesce(pg_column_size(m.tool_calls), 0) + (
        SELECT coalesce(sum(octet_length(s.content)), 0)::bigint FROM swipes s
        WHERE s.chat_key = $1 AND s.line_id = $2 AND s.seq = m.seq) AS bytes
    FROM messages m
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.deleted_at IS NULL AND m.seq > $3
        AND ($4::int IS NULL OR m.seq < $4)
    ORDER BY m.seq {direction} LIMIT $5"""

_SPEAKERS = """
    SELECT name FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND role = 'assistant' AND name IS NOT NULL AND name NOT IN ('.', '..')
        AND deleted_at IS NULL AND (content <> '' OR tool_calls IS NOT NULL)
    GROUP BY name ORDER BY min(seq) LIMIT $3"""


_USER_NAME = f"""
    SELECT name FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND role = 'user' AND name IS NOT NULL AND {IS_NOT_DELETED}
    ORDER BY seq LIMIT 1"""  # noqa: S608


async def list_speakers(db_session: DbSession, chat_key: UUID, line_id: UUID, limit: int) -> list[str]:
    """Return the names under which characters speak, in the order of their first messages."""
    return [row["name"] for row in await db_session.raw.fetch(_SPEAKERS, chat_key, line_id, limit)]


async def find_user_name(db_session: DbSession, chat_key: UUID, line_id: UUID) -> str | None:
    """Return the name in the earliest of the user's messages that have a name, or None."""
    name: str | None = await db_session.raw.fetchval(_USER_NAME, chat_key, line_id)
    return name


async def list_history_shape(db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int) -> list[Sent]:
    """Return the messages that are sent if the history begins at `from_seq`, without their texts, in seq order."""
    rows = await db_session.raw.fetch(_HISTORY_SHAPE, chat_key, line_id, from_seq)
    return drop_unsent([_sent(row) for row in rows])


async def count_sent(db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int) -> int:
    """Return how many messages are sent if the history begins at `from_seq`."""
    return len(await list_history_shape(db_session, chat_key, line_id, from_seq))


async def find_newest_sent_at(db_session: DbSession, chat_key: UUID, line_id: UUID) -> datetime | None:
    """Return the `sent_at` of the newest message that the history can contain, or None if a line has none."""
    found: datetime | None = await db_session.raw.fetchval(_NEWEST_SENT_AT, chat_key, line_id)
    return found


async def list_sent_after(
    db_session: DbSession, chat_key: UUID, line_id: UUID, after_seq: int, limit: int
) -> list[Sent]:
    """Return the first `limit` messages after a seq that can be sent, in seq order; the anchor does not matter."""
    return [_sent(row) for row in await db_session.raw.fetch(_SENT_AFTER, chat_key, line_id, after_seq, limit)]


async def skip_hidden_by_scenes(db_session: DbSession, head: Head, from_seq: int) -> int | None:
    """If scenes hide the first message from `from_seq` on, return the seq of the next message that they do not hide.

    Return the seq after the newest message if scenes hide all messages from `from_seq` on. Return None if scenes do not
    hide the first message from `from_seq` on, or if there is no message. Deleted messages do not count.
    """
    found: int | None = await db_session.raw.fetchval(_NOT_HIDDEN_BY_SCENES, *head.line, from_seq, head.head_seq + 1)
    return found


async def list_summarisable_after(
    db_session: DbSession, chat_key: UUID, line_id: UUID, after_seq: int, limit: int
) -> list[Sent]:
    """Return the first `limit` messages after a seq that can be sent or that only scenes hide, in seq order."""
    return [_sent(row) for row in await db_session.raw.fetch(_SUMMARISABLE_AFTER, chat_key, line_id, after_seq, limit)]


async def list_newest_summarisable(db_session: DbSession, chat_key: UUID, line_id: UUID, limit: int) -> list[Sent]:
    """Return the newest `limit` messages that can be sent or that only scenes hide, in seq order.

    Messages that only make tool calls are among them, even without a result (`drop_unsent`).
    """
    rows = await db_session.raw.fetch(_NEWEST_SUMMARISABLE, chat_key, line_id, limit)
    return [_sent(row) for row in reversed(rows)]


async def list_newest_shape(db_session: DbSession, chat_key: UUID, line_id: UUID, limit: int) -> list[Sent]:
    """Return the newest `limit` messages that can be sent, in seq order; the anchor does not matter.

    Messages that only make tool calls are among them, even without a result (`drop_unsent`).
    """
    rows = await db_session.raw.fetch(_NEWEST_SHAPE, chat_key, line_id, limit)
    return [_sent(row) for row in reversed(rows)]


async def list_messages(
    db_session: DbSession,
    chat_key: UUID,
    line_id: UUID,
    *,
    after_seq: int,
    before_seq: int | None,
    limit: int,
    newest: bool,
) -> Sequence[Message]:
    """Return up to `limit` messages between two seqs (both exclusive), in seq order: the last ones if `newest`."""
    query = select(Message).where(
        Message.chat_key == chat_key,
        Message.line_id == line_id,
        Message.deleted_at.is_(None),
        Message.seq > after_seq,
    )
    if before_seq is not None:
        query = query.where(Message.seq < before_seq)
    ordered = query.order_by(Message.seq.desc() if newest else Message.seq).limit(limit)
    rows = (await db_session.execute(ordered)).scalars().all()
    return rows[::-1] if newest else rows


async def list_sizes(
    db_session: DbSession,
    chat_key: UUID,
    line_id: UUID,
    *,
    after_seq: int,
    before_seq: int | None,
    limit: int,
    newest: bool,
) -> list[int]:
    """Return the size in bytes of each message between two seqs (both exclusive): its text, tool calls and swipes.

    The sizes are in the order of seqs, or in the reverse order if `newest`. The texts are not read.
    """
    statement = _SIZES.format(direction="DESC" if newest else "ASC")
    rows = await db_session.raw.fetch(statement, chat_key, line_id, after_seq, before_seq, limit)
    return [row["bytes"] for row in rows]


async def list_range(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> list[RangeMessage]:
    """Return the messages of a range (inclusive), even deleted ones; see RangeMessage for their fields."""
    rows = await db_session.raw.fetch(_RANGE, chat_key, line_id, first_seq, last_seq)
    return [RangeMessage(*row) for row in rows]


async def list_not_deleted(
    db_session: DbSession, chat_key: UUID, line_id: UUID, ranges: Sequence[tuple[int, int]]
) -> list[RangeMessage]:
    """Return the same as `list_range` for ranges that do not overlap, without deleted messages, in seq order."""
    firsts, lasts = [first for first, _ in ranges], [last for _, last in ranges]
    return [RangeMessage(*row) for row in await db_session.raw.fetch(NOT_DELETED, chat_key, line_id, firsts, lasts)]


async def awaited_reply(db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int) -> bool:
    """Return whether the user awaited a reply just before `seq`. Even a deleted reply ended the wait."""
    return bool(await db_session.raw.fetchval(_AWAITED_REPLY, chat_key, line_id, seq))


def _sent(row: asyncpg.Record) -> Sent:
    return Sent(
        seq=row["seq"],
        is_user=row["role"] == "user",
        calls=tuple(call.get("id", "") for call in orjson.loads(row["tool_calls"])) if row["tool_calls"] else (),
        answers=row["tool_call_id"] if row["role"] == "tool" else None,
        only_calls=row["tool_calls"] is not None and row["tokens"] == 0,
    )
