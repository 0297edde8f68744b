"""SQL of the messages that a layer summarises."""

from uuid import UUID

import asyncpg

from app.kit.db import Connection

_SOURCE = """
    SELECT c.characters::text AS characters, c.user_id, c.user_name, c.user_persona, c.language, c.time_zone, (
        SELECT json_agg(json_build_object('seq', seq, 'message_id', message_id, 'role', role, 'name', name,
            'kind', kind, 'content', content,
            'tokens', tokens, 'blank', blank, 'excluded', excluded, 'hidden_by', hidden_by,
            'deleted', false, 'digest', encode(digest, 'hex'), 'sent_at', sent_at,
            'importance', importance) ORDER BY seq)
        FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN $3 AND $4 AND deleted_at IS NULL
    )::text AS messages
    FROM chats c WHERE chat_key = $1 AND line_id = $2"""


async def find_source(
    connection: Connection, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> asyncpg.Record | None:
    """Return the messages of a range (inclusive) and the fields of the chat that prompts need, in one statement.

    Returns None if the line is gone.
    """
    return await connection.fetchrow(_SOURCE, chat_key, line_id, first_seq, last_seq)
