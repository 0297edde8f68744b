"""The one statement of a context: the chat's row, the history from its anchor with its edges, what is pinned."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.context.segments import Entry
from app.kit.db import Connection, DbSession

_ENTRIES = """
    SELECT json_agg(json_build_array(m.seq, m.message_id, m.role, m.name, m.content, m.tokens, m.sent_at,
        m.tool_calls, m.tool_call_id) ORDER BY m.seq)
    FROM messages m
    WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.deleted_at IS NULL AND m.kind IS NULL"""

_HISTORY = _ENTRIES + " AND m.seq >= c.anchor_seq AND m.hidden_by IS NULL"

# What scenes hide is out of the history wherever it stands, and a person's pin holds all the same. `m.pinned` bare,
# as the partial index has it: for a chat without pinned messages that is one look into an index that lacks its key.
_PINNED = f"""{_ENTRIES} AND m.pinned AND NOT m.blank
    AND (m.hidden_by = 'scenes' OR (m.hidden_by IS NULL AND m.seq < c.anchor_seq))"""

_CONTEXT = f"""
    SELECT c.line_id, c.user_id, c.head_seq, c.anchor_seq, c.last_cut::text AS last_cut,
        c.characters::text AS characters, c.user_persona, c.system_prompt, c.settings::text AS settings, c.time_zone,
        c.memo_window::text AS memo_window, c.shown::text AS shown, ({_HISTORY})::text AS history,
        ({_PINNED})::text AS pinned, ARRAY(
            SELECT b.last_seq + 1 FROM memos b
            WHERE b.chat_key = c.chat_key AND b.line_id = c.line_id AND b.first_seq >= (
                SELECT coalesce(max(a.first_seq), 0) FROM memos a
                WHERE a.chat_key = c.chat_key AND a.line_id = c.line_id AND a.first_seq <= c.anchor_seq)
        ) AS batch_edges
    FROM chats c WHERE c.chat_key = $1 AND """  # noqa: S608 - constants only

OF_CURRENT = _CONTEXT + "c.standing = 'current'"
_OF_LINE = _CONTEXT + "c.line_id = $2"

_PINNED_OF_LINE = f"SELECT ({_PINNED})::text FROM chats c WHERE c.chat_key = $1 AND c.line_id = $2"  # noqa: S608


async def find_context(connection: Connection, chat_key: UUID, line_id: UUID | None) -> asyncpg.Record | None:
    """Everything that a context is made of, or None if there is no such chat or line."""
    arguments: tuple[Any, ...] = (chat_key,) if line_id is None else (chat_key, line_id)
    return await connection.fetchrow(OF_CURRENT if line_id is None else _OF_LINE, *arguments)


async def list_pinned(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Sequence[Entry]:
    """The pinned messages that are not in the history, in seq order."""
    return read_entries(await db_session.raw.fetchval(_PINNED_OF_LINE, chat_key, line_id))


def read_entries(stored: str | None) -> Sequence[Entry]:
    """Messages as the statement brings them; None where there are none."""
    if stored is None:
        return ()
    return [
        Entry(seq, message_id, role, name, text, tokens, datetime.fromisoformat(sent_at), calls, call_id)
        for seq, message_id, role, name, text, tokens, sent_at, calls, call_id in orjson.loads(stored)
    ]
