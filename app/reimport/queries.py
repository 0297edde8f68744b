"""SQL of a re-import: reads a whole line, changes many messages at once, copies the data of moved messages."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from app.chats.head import Head, NewMessage
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH

_EXISTING = """
    SELECT seq, message_id, role, name, kind, content, tokens, blank, importance, tool_calls::text AS tool_calls,
        tool_call_id, metadata::text AS metadata, sent_at, identity, digest, excluded, hidden_by,
        selected_swipe, deleted_at IS NOT NULL AS deleted
    FROM messages WHERE chat_key = $1 AND line_id = $2 ORDER BY seq"""

_SOFT_DELETE = """
    UPDATE messages SET deleted_at = $4
    WHERE chat_key = $1 AND line_id = $2 AND seq = ANY($3) AND deleted_at IS NULL"""

_KEEP_REVISIONS = f"""
    INSERT INTO revisions (chat_key, line_id, seq, number, swipe, role, name, content, replaced_at)
    SELECT $1, $2, m.seq, 1 + coalesce((
            SELECT max(number) FROM revisions r WHERE r.chat_key = $1 AND r.line_id = $2 AND r.seq = m.seq
        ), 0), m.selected_swipe, m.role, m.name, m.content, $7
    FROM unnest($3::int[], $4::text[], $5::text[], $6::text[]) AS n (seq, role, name, content) CROSS JOIN LATERAL (
        SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = n.seq {ONE_LOOKUP_EACH}) AS m
    WHERE (m.role, m.name, m.content) IS DISTINCT FROM (n.role, n.name, n.content)"""  # noqa: S608

_REWRITE = f"""
    UPDATE messages m SET role = n.role, name = n.name, kind = n.kind, content = n.content, tokens = n.tokens,
        blank = n.blank, importance = n.importance, tool_calls = n.tool_calls::jsonb, tool_call_id = n.tool_call_id,
        metadata = n.metadata::jsonb, sent_at = n.sent_at, digest = n.digest, deleted_at = NULL,
        edited_at = CASE WHEN (m.role, m.name, m.content) IS DISTINCT FROM (n.role, n.name, n.content)
            THEN $4 ELSE m.edited_at END
    FROM (
        SELECT g.*, here.row_ref FROM unnest($3::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
            $10::bool[], $11::float8[], $12::text[], $13::text[], $14::text[], $15::timestamptz[], $16::bytea[])
            AS g (seq, role, name, kind, content, tokens, blank, importance, tool_calls, tool_call_id, metadata,
            sent_at, digest)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = g.seq
            {ONE_LOOKUP_EACH}) AS here
    ) AS n WHERE m.ctid = n.row_ref"""  # noqa: S608

_SELECT_SWIPES = f"""
    WITH chosen AS (
        SELECT s.content, s.swipe_index, s.ctid AS swipe_ref, m.content AS former_content,
            m.selected_swipe AS former_index, m.ctid AS row_ref
        FROM unnest($3::int[], $4::int[]) AS n (seq, swipe_index) CROSS JOIN LATERAL (
            SELECT *, ctid FROM swipes
            WHERE chat_key = $1 AND line_id = $2 AND seq = n.seq AND swipe_index = n.swipe_index {ONE_LOOKUP_EACH}) AS s
        CROSS JOIN LATERAL (
            SELECT *, ctid FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = n.seq {ONE_LOOKUP_EACH}) AS m
    ), put_aside AS (
        UPDATE swipes s SET content = c.former_content, swipe_index = c.former_index
        FROM chosen c WHERE s.ctid = c.swipe_ref
    )
    UPDATE messages m SET content = c.content, selected_swipe = c.swipe_index
    FROM chosen c WHERE m.ctid = c.row_ref"""  # noqa: S608

_MOVED = "unnest($3::int[], $4::int[]) AS moved (old_seq, new_seq)"

_COPY_MARKS = f"""
    UPDATE messages m SET identity = n.identity, excluded = n.excluded, pinned = n.pinned, hidden_by = n.hidden_by,
        visibility_pinned = n.visibility_pinned, selected_swipe = n.selected_swipe, edited_at = n.edited_at
    FROM (
        SELECT o.*, here.row_ref FROM {_MOVED} CROSS JOIN LATERAL (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $5 AND seq = old_seq {ONE_LOOKUP_EACH}) AS o
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = new_seq
            {ONE_LOOKUP_EACH}) AS here
    ) AS n WHERE m.ctid = n.row_ref"""  # noqa: S608 - constants only

_COPY_SWIPES = f"""
    INSERT INTO swipes (chat_key, line_id, seq, swipe_index, content)
    SELECT $1, $2, new_seq, s.swipe_index, s.content FROM {_MOVED} CROSS JOIN LATERAL (
        SELECT * FROM swipes WHERE chat_key = $1 AND line_id = $5 AND seq = old_seq
        {ONE_LOOKUP_EACH}) AS s"""  # noqa: S608

_COPY_REVISIONS = f"""
    INSERT INTO revisions (chat_key, line_id, seq, number, swipe, role, name, content, replaced_at)
    SELECT $1, $2, new_seq, r.number, r.swipe, r.role, r.name, r.content, r.replaced_at
    FROM {_MOVED} CROSS JOIN LATERAL (
        SELECT * FROM revisions WHERE chat_key = $1 AND line_id = $5 AND seq = old_seq
        {ONE_LOOKUP_EACH}) AS r"""  # noqa: S608

_COPY_SOURCES = f"""
    INSERT INTO source_lines (chat_key, line_id, seq, number, source)
    SELECT $1, $2, new_seq, s.number, s.source FROM {_MOVED} CROSS JOIN LATERAL (
        SELECT * FROM source_lines WHERE chat_key = $1 AND line_id = $5 AND seq = old_seq
        {ONE_LOOKUP_EACH}) AS s"""  # noqa: S608


async def list_existing(db_session: DbSession, head: Head) -> list[asyncpg.Record]:
    """Return the line's messages, including deleted ones, with the columns that a re-import compares, in seq order."""
    return await db_session.raw.fetch(_EXISTING, *head.line)


async def soft_delete(db_session: DbSession, head: Head, seqs: Sequence[int], now: datetime) -> None:
    """Soft-delete messages."""
    await db_session.raw.execute(_SOFT_DELETE, *head.line, list(seqs), now)


async def select_swipes(db_session: DbSession, head: Head, chosen: Sequence[tuple[int, int]]) -> None:
    """Select unselected swipes, given as (seq, swipe_index), one per message; `rewrite` then sets all other columns.

    A swipe that is selected already is ignored.
    """
    if chosen:
        await db_session.raw.execute(_SELECT_SWIPES, *head.line, *zip(*chosen, strict=True))


async def rewrite(db_session: DbSession, head: Head, messages: Sequence[NewMessage], now: datetime) -> None:
    """Replace the messages at the seqs of `messages`, restoring deleted ones; former texts are kept as revisions."""
    line, seqs = head.line, [m.seq for m in messages]
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


async def bring_along(db_session: DbSession, head: Head, from_line_id: UUID, moved: Sequence[tuple[int, int]]) -> None:
    """Copy marks, swipes, revisions and source lines (`SourceLine`) of moved messages from another line.

    Marks are the columns that `_COPY_MARKS` copies, such as `excluded`, `pinned` and `hidden_by`. `insert_messages`
    leaves most of them at their defaults. `moved` has two seqs for each message: on the other line, and on this one.
    """
    seqs = list(zip(*moved, strict=True))
    for statement in (_COPY_MARKS, _COPY_SWIPES, _COPY_REVISIONS, _COPY_SOURCES) if moved else ():
        await db_session.raw.execute(statement, *head.line, *seqs, from_line_id)
