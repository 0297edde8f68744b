"""Reads messages with their texts: ranges to be summarised or written to a file, and the messages before a seq."""

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import orjson

from app.chats.eligibility import Filters
from app.kit.db import Connection, DbSession
from app.messages.rules import IS_NOT_DELETED, IS_OF_STORY, write_is_eligible

_PREFETCHED_MESSAGES = 50
"""How many messages of a stream are in memory at once; a message can have some hundred kilobytes."""

_SOURCE = f"""
    SELECT c.characters::text AS characters, c.user_name, c.user_persona, c.language, c.time_zone, (
        SELECT json_agg(json_build_object('seq', seq, 'message_id', message_id, 'role', role, 'name', name,
            'kind', kind, 'content', content,
            'tokens', tokens, 'blank', blank, 'excluded', excluded, 'hidden_by', hidden_by,
            'deleted', false, 'digest', encode(digest, 'hex'), 'sent_at', sent_at,
            'importance', importance) ORDER BY seq)
        FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN $3 AND $4 AND {IS_NOT_DELETED}
    )::text AS messages
    FROM chats c WHERE chat_key = $1 AND line_id = $2"""  # noqa: S608 - constants only

_STORY_BEFORE = f"""
    SELECT seq, role, name, content FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND seq < $3 AND {IS_NOT_DELETED} AND NOT blank AND kind IS NULL
        AND {IS_OF_STORY}
    ORDER BY seq DESC LIMIT $4"""  # noqa: S608

_ELIGIBLE_BEFORE = f"""
    SELECT m.seq, m.role, m.name, m.content FROM messages m CROSS JOIN (SELECT $5::jsonb AS filters) b
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq < $3 AND m.seq >= $3 - $6
        AND {write_is_eligible("m", "b.filters")}
    ORDER BY m.seq DESC LIMIT $4"""  # noqa: S608

_RANGE = f"""
    SELECT seq, message_id, role, name, kind, content, sent_at, hidden_by, excluded, tool_call_id,
        tool_calls::text AS tool_calls, metadata::text AS metadata
    FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN $3 AND $4 AND {IS_NOT_DELETED}
    ORDER BY seq"""  # noqa: S608


async def find_source(
    connection: Connection, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> asyncpg.Record | None:
    """Return the messages of a range (inclusive) and the fields of the chat that prompts need, in one statement.

    `messages` is JSON, without deleted messages. Returns None if the line is gone.
    """
    return await connection.fetchrow(_SOURCE, chat_key, line_id, first_seq, last_seq)


async def list_story_before(
    connection: Connection, chat_key: UUID, line_id: UUID, *, before_seq: int, limit: int
) -> list[asyncpg.Record]:
    """Return (seq, role, name, content) of the last `limit` messages of the story before a seq, in order.

    Deleted and blank messages, thoughts, and messages of the system and of tools are left out, but not hidden
    messages.
    """
    rows = await connection.fetch(_STORY_BEFORE, chat_key, line_id, before_seq, limit)
    return rows[::-1]


async def list_eligible_before(
    connection: Connection,
    chat_key: UUID,
    line_id: UUID,
    *,
    before_seq: int,
    limit: int,
    filters: Filters,
    most_searched: int,
) -> list[asyncpg.Record]:
    """Return (seq, role, name, content) of the last `limit` eligible messages before a seq, in order.

    Only the last `most_searched` seqs before `before_seq` are searched.
    """
    stored = orjson.dumps(filters.to_json()).decode()
    rows = await connection.fetch(_ELIGIBLE_BEFORE, chat_key, line_id, before_seq, limit, stored, most_searched)
    return rows[::-1]


async def stream_range(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> AsyncIterator[asyncpg.Record]:
    """Yield the messages of a range (inclusive), without deleted ones, in order, a few in memory at a time."""
    bounds = (chat_key, line_id, first_seq, last_seq)
    async for row in db_session.raw.cursor(_RANGE, *bounds, prefetch=_PREFETCHED_MESSAGES):
        yield row
