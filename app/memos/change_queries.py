"""SQL of memos whose messages change."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from app.kit.db import DbSession

_TOUCHED = """
    SELECT DISTINCT b.memo_id, b.first_seq, b.last_seq, b.first_message_id, b.filters::text AS filters, b.source_hash,
        b.current_hash, b.edited, b.deleted_at IS NOT NULL AS deleted
    FROM unnest($3::int[]) AS changed (seq) CROSS JOIN LATERAL (
        SELECT * FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq <= changed.seq
        ORDER BY first_seq DESC LIMIT 1
    ) AS b
    WHERE b.last_seq >= changed.seq ORDER BY b.first_seq"""

_UPDATE_HASHES = """
    UPDATE memos SET current_hash = n.current_hash, first_message_id = n.first_message_id
    FROM unnest($3::uuid[], $4::bytea[], $5::text[]) AS n (memo_id, current_hash, first_message_id)
    WHERE memos.chat_key = $1 AND memos.line_id = $2 AND memos.memo_id = n.memo_id"""

_REACHING = """
    SELECT memo_id, first_seq, last_seq, size, filters::text AS filters FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND first_seq >= (
        SELECT coalesce(max(first_seq), 0) FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq < $3)
    ORDER BY first_seq"""

# What a person edited has lost its batch: from here on it is a memory of theirs.
_KEEP_EDITED = """
    UPDATE memos SET place = $4, origin = 'person', first_seq = NULL, last_seq = NULL, first_message_id = NULL,
        size = NULL, filters = NULL, source_hash = NULL, current_hash = NULL
    WHERE chat_key = $1 AND line_id = $2 AND memo_id = ANY($3) AND edited AND deleted_at IS NULL"""

_DELETE_BATCHES = """
    DELETE FROM memos WHERE chat_key = $1 AND line_id = $2 AND memo_id = ANY($3) AND first_seq IS NOT NULL"""

_MOVE_WRITTEN = """
    UPDATE memos SET place = $3
    WHERE chat_key = $1 AND line_id = $2 AND place > $3 AND first_seq IS NULL"""


async def list_touched(
    db_session: DbSession, chat_key: UUID, line_id: UUID, seqs: Sequence[int]
) -> list[asyncpg.Record]:
    """The batches that hold one of `seqs`, in their order, deleted ones too."""
    return await db_session.raw.fetch(_TOUCHED, chat_key, line_id, list(seqs))


async def update_hashes(
    db_session: DbSession, chat_key: UUID, line_id: UUID, rows: Sequence[tuple[UUID, bytes, str]]
) -> None:
    """Say what batches say now; `rows` are (memo_id, current_hash, first_message_id)."""
    await db_session.raw.execute(_UPDATE_HASHES, chat_key, line_id, *zip(*rows, strict=True))


async def list_reaching(db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int) -> list[asyncpg.Record]:
    """The batches that hold a seq from `from_seq` on, in their order, deleted ones too."""
    return await db_session.raw.fetch(_REACHING, chat_key, line_id, from_seq)


async def delete_batches(
    db_session: DbSession, chat_key: UUID, line_id: UUID, memo_ids: Sequence[UUID], *, head_place: int
) -> None:
    """Delete batches; what a person edited becomes a memory without one, at `head_place`."""
    await db_session.raw.execute(_KEEP_EDITED, chat_key, line_id, list(memo_ids), head_place)
    await db_session.raw.execute(_DELETE_BATCHES, chat_key, line_id, list(memo_ids))


async def move_written(db_session: DbSession, chat_key: UUID, line_id: UUID, *, head_place: int) -> None:
    """Have no memory that a person wrote stand behind `head_place`."""
    await db_session.raw.execute(_MOVE_WRITTEN, chat_key, line_id, head_place)
