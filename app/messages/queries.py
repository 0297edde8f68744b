"""SQL that stores and finds messages. Appends and re-imports use asyncpg; `find_message` uses SQLAlchemy."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg
from sqlalchemy import select

from app.chats.head import Head, NewMessage
from app.chats.models import Message
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH

APPEND = """
    WITH given AS (
        SELECT * FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::bool[],
            $11::float8[], $12::text[], $13::text[], $14::text[], $15::timestamptz[], $16::bytea[], $17::bytea[])
            WITH ORDINALITY AS g (message_id, role, name, kind, content, tokens, blank, importance, tool_calls,
                tool_call_id, metadata, sent_at, identity, digest, place)
    ), known AS (
        SELECT m.*, m.identity = given.identity AS same
        FROM given JOIN messages m ON m.chat_key = $1 AND m.line_id = $2 AND m.message_id = given.message_id
    ), added AS (
        INSERT INTO messages (chat_key, line_id, seq, message_id, role, name, kind, content, tokens, blank, importance,
            tool_calls, tool_call_id, metadata, sent_at, identity, digest)
        SELECT $1, $2, $3 + row_number() OVER (ORDER BY place), message_id, role, name, kind, content, tokens, blank,
            importance, tool_calls::jsonb, tool_call_id, metadata::jsonb, sent_at, identity, digest
        FROM given WHERE NOT EXISTS (SELECT FROM known WHERE known.message_id = given.message_id)
            AND NOT EXISTS (SELECT FROM known WHERE NOT same)
        RETURNING seq, message_id
    )
    SELECT message_id, seq, NULL::bool AS same, NULL AS role, NULL AS name, NULL AS content,
        NULL::timestamptz AS sent_at, NULL::int AS tokens FROM added
    UNION ALL SELECT message_id, seq, same, CASE WHEN deleted_at IS NULL THEN role END, name, content, sent_at, tokens
    FROM known"""

_ADD_SWIPES = """
    INSERT INTO swipes (chat_key, line_id, seq, swipe_index, content)
    SELECT $1, $2, n.* FROM unnest($3::int[], $4::int[], $5::text[]) AS n (seq, swipe_index, content)"""

_SELECT_SWIPES = f"""
    UPDATE messages m SET selected_swipe = n.swipe_index
    FROM (
        SELECT g.swipe_index, here.row_ref FROM unnest($3::int[], $4::int[]) AS g (seq, swipe_index)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = g.seq
            {ONE_LOOKUP_EACH}) AS here
    ) AS n WHERE m.ctid = n.row_ref"""  # noqa: S608 - constants only


async def insert_messages(db_session: DbSession, head: Head, messages: Sequence[NewMessage]) -> list[asyncpg.Record]:
    """Insert the messages whose ids are new, in order, after the newest message of the line.

    Return a row for each message that was inserted or is known. `same` is null for an inserted message. For a known
    message, `same` is whether it was appended with the same identity (the hash of role and text). The row of a known
    message has its current text and its time, and no role if it is deleted. If any known message has another identity,
    nothing is inserted.
    """
    return await db_session.raw.fetch(
        APPEND,
        head.chat_key,
        head.line_id,
        head.head_seq,
        [m.message_id for m in messages],
        [m.role for m in messages],
        [m.name for m in messages],
        [m.kind for m in messages],
        [m.content for m in messages],
        [m.tokens for m in messages],
        [m.blank for m in messages],
        [m.importance for m in messages],
        [m.tool_calls for m in messages],
        [m.tool_call_id for m in messages],
        [m.metadata for m in messages],
        [m.sent_at for m in messages],
        [m.identity for m in messages],
        [m.digest for m in messages],
    )


async def insert_given_swipes(db_session: DbSession, head: Head, messages: Sequence[NewMessage]) -> None:
    """Insert the unselected swipes of new messages, and set which swipe is selected; skip messages without swipes."""
    swipes = [
        (message.seq, index, text)
        for message in messages
        for index, text in enumerate(message.swipes)
        if index != message.selected_swipe
    ]
    await insert_swipes(db_session, head, swipes)
    selected = [(message.seq, message.selected_swipe) for message in messages if message.selected_swipe]
    if selected:
        await db_session.raw.execute(_SELECT_SWIPES, *head.line, *zip(*selected, strict=True))


async def insert_swipes(db_session: DbSession, head: Head, swipes: Sequence[tuple[int, int, str]]) -> None:
    """Insert unselected swipes, given as (seq, swipe_index, content)."""
    if swipes:
        await db_session.raw.execute(_ADD_SWIPES, *head.line, *zip(*swipes, strict=True))


async def find_message(db_session: DbSession, chat_key: UUID, line_id: UUID, message_id: str) -> Message | None:
    """Return a message by the caller's id; None if it does not exist or is deleted."""
    return (
        await db_session.execute(
            select(Message).where(
                Message.chat_key == chat_key,
                Message.line_id == line_id,
                Message.message_id == message_id,
                Message.deleted_at.is_(None),
            )
        )
    ).scalar_one_or_none()
