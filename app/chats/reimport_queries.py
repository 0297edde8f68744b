"""SQL of a re-import: the whole line as it stands, many messages changed at once, what moved ones bring along."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from app.chats.head import Head, NewMessage
from app.kit.db import DbSession

_STANDING = """
    SELECT seq, message_id, role, name, kind, content, tokens, blank, importance, tool_calls::text AS tool_calls,
        tool_call_id, metadata::text AS metadata, sent_at, digest, excluded, hidden_by,
        deleted_at IS NOT NULL AS deleted
    FROM messages WHERE chat_key = $1 AND line_id = $2 ORDER BY seq"""

_BURY = """
    UPDATE messages SET deleted_at = $4
    WHERE chat_key = $1 AND line_id = $2 AND seq = ANY($3) AND deleted_at IS NULL"""

_KEEP_REVISIONS = """
    INSERT INTO revisions (chat_key, line_id, seq, number, swipe, role, name, content, replaced_at)
    SELECT $1, $2, m.seq, 1 + coalesce((
            SELECT max(number) FROM revisions r WHERE r.chat_key = $1 AND r.line_id = $2 AND r.seq = m.seq
        ), 0), m.selected_swipe, m.role, m.name, m.content, $7
    FROM unnest($3::int[], $4::text[], $5::text[], $6::text[]) AS n (seq, role, name, content)
    JOIN messages m ON m.chat_key = $1 AND m.line_id = $2 AND m.seq = n.seq
    WHERE (m.role, m.name, m.content) IS DISTINCT FROM (n.role, n.name, n.content)"""

_REWRITE = """
    UPDATE messages m SET role = n.role, name = n.name, kind = n.kind, content = n.content, tokens = n.tokens,
        blank = n.blank, importance = n.importance, tool_calls = n.tool_calls::jsonb, tool_call_id = n.tool_call_id,
        metadata = n.metadata::jsonb, sent_at = n.sent_at, digest = n.digest, deleted_at = NULL,
        edited_at = CASE WHEN (m.role, m.name, m.content) IS DISTINCT FROM (n.role, n.name, n.content)
            THEN $4 ELSE m.edited_at END
    FROM unnest($3::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::bool[], $11::float8[],
        $12::text[], $13::text[], $14::text[], $15::timestamptz[], $16::bytea[]) AS n (seq, role, name, kind, content,
        tokens, blank, importance, tool_calls, tool_call_id, metadata, sent_at, digest)
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq = n.seq"""

_MOVED = """
    FROM messages n JOIN messages o ON o.chat_key = $1 AND o.line_id = $3 AND o.message_id = n.message_id
    WHERE n.chat_key = $1 AND n.line_id = $2 AND n.seq > $4"""

_BRING_MARKS = f"""
    UPDATE messages m SET identity = moved.identity, excluded = moved.excluded, pinned = moved.pinned,
        hidden_by = moved.hidden_by, selected_swipe = moved.selected_swipe, edited_at = moved.edited_at
    FROM (SELECT n.seq AS at_seq, o.* {_MOVED}) AS moved
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq = moved.at_seq
    RETURNING m.seq, m.excluded, m.hidden_by"""  # noqa: S608 - constants only

_BRING_SWIPES = f"""
    INSERT INTO swipes (chat_key, line_id, seq, place, content)
    SELECT $1, $2, moved.at_seq, s.place, s.content FROM (SELECT n.seq AS at_seq, o.seq {_MOVED}) AS moved
    JOIN swipes s ON s.chat_key = $1 AND s.line_id = $3 AND s.seq = moved.seq"""  # noqa: S608

_BRING_REVISIONS = f"""
    INSERT INTO revisions (chat_key, line_id, seq, number, swipe, role, name, content, replaced_at)
    SELECT $1, $2, moved.at_seq, r.number, r.swipe, r.role, r.name, r.content, r.replaced_at
    FROM (SELECT n.seq AS at_seq, o.seq {_MOVED}) AS moved
    JOIN revisions r ON r.chat_key = $1 AND r.line_id = $3 AND r.seq = moved.seq"""  # noqa: S608


async def list_standing(db_session: DbSession, head: Head) -> list[asyncpg.Record]:
    """Everything that a re-import may change of the line's messages, tombstones too, in seq order."""
    return await db_session.raw.fetch(_STANDING, head.chat_key, head.line_id)


async def bury(db_session: DbSession, head: Head, seqs: Sequence[int], now: datetime) -> None:
    """Leave tombstones."""
    await db_session.raw.execute(_BURY, head.chat_key, head.line_id, list(seqs), now)


async def rewrite(db_session: DbSession, head: Head, messages: Sequence[NewMessage], now: datetime) -> None:
    """Have the messages at the seqs of `messages` be these, tombstones too; what they said before is kept."""
    line, seqs = (head.chat_key, head.line_id), [m.seq for m in messages]
    said = ([m.role for m in messages], [m.name for m in messages], [m.content for m in messages])
    await db_session.raw.execute(_KEEP_REVISIONS, *line, seqs, *said, now)
    await db_session.raw.execute(
        _REWRITE,
        *line,
        seqs,
        now,
        said[0],
        said[1],
        [m.kind for m in messages],
        said[2],
        [m.tokens for m in messages],
        [m.blank for m in messages],
        [m.importance for m in messages],
        [m.tool_calls for m in messages],
        [m.tool_call_id for m in messages],
        [m.metadata for m in messages],
        [m.sent_at for m in messages],
        [m.digest for m in messages],
    )


async def bring_along(
    db_session: DbSession, head: Head, from_line_id: UUID, after_seq: int
) -> dict[int, tuple[bool, str | None]]:
    """Give messages after a seq the marks, swipes and revisions that they have on another line, by their ids.

    Returns (excluded, hidden_by) of each, by its seq here.
    """
    arguments = (head.chat_key, head.line_id, from_line_id, after_seq)
    rows = await db_session.raw.fetch(_BRING_MARKS, *arguments)
    await db_session.raw.execute(_BRING_SWIPES, *arguments)
    await db_session.raw.execute(_BRING_REVISIONS, *arguments)
    return {row["seq"]: (row["excluded"], row["hidden_by"]) for row in rows}
