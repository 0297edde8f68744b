"""The one statement of a context: the chat's row, the history from its anchor, the edges in it."""

from typing import Any
from uuid import UUID

import asyncpg

from app.kit.db import Connection

_CONTEXT = """
    SELECT c.line_id, c.user_id, c.head_seq, c.anchor_seq, c.last_cut::text AS last_cut,
        c.characters::text AS characters, c.user_persona, c.system_prompt, c.settings::text AS settings, c.time_zone,
        c.memo_window::text AS memo_window, (
            SELECT json_agg(json_build_array(m.seq, m.message_id, m.role, m.name, m.content, m.tokens, m.sent_at,
                m.tool_calls, m.tool_call_id) ORDER BY m.seq)
            FROM messages m
            WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.seq >= c.anchor_seq
                AND m.deleted_at IS NULL AND m.hidden_by IS NULL AND m.kind IS NULL
        )::text AS history, ARRAY(
            SELECT b.last_seq + 1 FROM memos b
            WHERE b.chat_key = c.chat_key AND b.line_id = c.line_id AND b.first_seq >= (
                SELECT coalesce(max(a.first_seq), 0) FROM memos a
                WHERE a.chat_key = c.chat_key AND a.line_id = c.line_id AND a.first_seq <= c.anchor_seq)
        ) AS batch_edges
    FROM chats c WHERE c.chat_key = $1 AND """

_OF_CURRENT = _CONTEXT + "c.standing = 'current'"
_OF_LINE = _CONTEXT + "c.line_id = $2"


async def find_context(connection: Connection, chat_key: UUID, line_id: UUID | None) -> asyncpg.Record | None:
    """Everything that a context is made of, or None if there is no such chat or line."""
    arguments: tuple[Any, ...] = (chat_key,) if line_id is None else (chat_key, line_id)
    return await connection.fetchrow(_OF_CURRENT if line_id is None else _OF_LINE, *arguments)
