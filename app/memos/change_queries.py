"""SQL of memos for messages that change, move or are truncated."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH, is_equal

_TOUCHED = """
    SELECT DISTINCT b.memo_id, b.first_seq, b.last_seq, b.first_message_id, b.filters::text AS filters, b.source_hash,
        b.current_hash, b.origin, b.deleted_at IS NOT NULL AS deleted
    FROM unnest($3::int[]) AS changed (seq) CROSS JOIN LATERAL (
        SELECT * FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq <= changed.seq
        ORDER BY first_seq DESC LIMIT 1
    ) AS b
    WHERE b.last_seq >= changed.seq ORDER BY b.first_seq"""

# Without `is_equal` and the ORDER BY the whole book may be read for each memo.
UPDATE_HASHES = f"""
    UPDATE memos SET current_hash = n.current_hash, first_message_id = n.first_message_id
    FROM (
        SELECT g.*, here.row_ref FROM unnest($3::uuid[], $4::bytea[], $5::text[])
            AS g (memo_id, current_hash, first_message_id)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM memos
            WHERE chat_key = $1 AND line_id = $2 AND {is_equal("memo_id", "g.memo_id")}
            ORDER BY memo_id LIMIT 1) AS here
    ) AS n WHERE memos.ctid = n.row_ref"""  # noqa: S608

_REACHING = """
    SELECT memo_id, first_seq, last_seq, size, filters::text AS filters FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND first_seq >= (
        SELECT coalesce(max(first_seq), 0) FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq < $3)
    ORDER BY first_seq"""

_WRITTEN_AFTER = """
    SELECT memo_id, sort_key / 2 AS seq FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND sort_key > 2 * $3::int + 1 AND deleted_at IS NULL
        AND origin = 'person'
    ORDER BY sort_key, number"""

_COPY_WRITTEN = f"""
    INSERT INTO memos (chat_key, line_id, memo_id, number, sort_key, status, origin, highlights, text, tokens, model,
        prompt_version, attempts, pinned, edited, created_at, generated_at)
    SELECT $1, $2, m.memo_id, m.number, n.sort_key, m.status, 'person', m.highlights, m.text, m.tokens, m.model,
        m.prompt_version, m.attempts, m.pinned, m.edited, m.created_at, m.generated_at
    FROM unnest($4::uuid[], $5::int[]) AS n (memo_id, sort_key) CROSS JOIN LATERAL (
        SELECT * FROM memos WHERE chat_key = $1 AND line_id = $3 AND memo_id = n.memo_id {ONE_LOOKUP_EACH}) AS m"""  # noqa: S608

# A memo that a person edited loses its batch and becomes a memo that covers no messages.
_KEEP_WRITTEN = """
    UPDATE memos SET sort_key = $4, first_seq = NULL, last_seq = NULL, first_message_id = NULL,
        size = NULL, filters = NULL, source_hash = NULL, current_hash = NULL
    WHERE chat_key = $1 AND line_id = $2 AND memo_id = ANY($3) AND origin = 'person' AND deleted_at IS NULL"""

_DELETE_BATCHES = """
    DELETE FROM memos WHERE chat_key = $1 AND line_id = $2 AND memo_id = ANY($3) AND first_seq IS NOT NULL"""

_MOVE_WRITTEN = """
    UPDATE memos SET sort_key = $3
    WHERE chat_key = $1 AND line_id = $2 AND sort_key > $3 AND first_seq IS NULL"""


_COUNT_BOOK = "SELECT count(*) FROM memos WHERE chat_key = $1 AND line_id = $2 AND deleted_at IS NULL"


async def list_touched(
    db_session: DbSession, chat_key: UUID, line_id: UUID, seqs: Sequence[int]
) -> list[asyncpg.Record]:
    """Return the batches that contain one of `seqs`, in order, including soft-deleted ones."""
    return await db_session.raw.fetch(_TOUCHED, chat_key, line_id, list(seqs))


async def update_hashes(
    db_session: DbSession, chat_key: UUID, line_id: UUID, rows: Sequence[tuple[UUID, bytes, str | None]]
) -> None:
    """Update the current hashes and first message ids; `rows` are (memo_id, current_hash, first_message_id)."""
    await db_session.raw.execute(UPDATE_HASHES, chat_key, line_id, *zip(*rows, strict=True))


async def list_reaching(db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int) -> list[asyncpg.Record]:
    """Return the batches that end at or after `from_seq`, in order, including soft-deleted ones."""
    return await db_session.raw.fetch(_REACHING, chat_key, line_id, from_seq)


async def delete_batches(
    db_session: DbSession, chat_key: UUID, line_id: UUID, memo_ids: Sequence[UUID], *, end_sort_key: int
) -> None:
    """Delete batches. A memo that a person edited is kept: it loses its batch and gets the sort key `end_sort_key`."""
    await db_session.raw.execute(_KEEP_WRITTEN, chat_key, line_id, list(memo_ids), end_sort_key)
    await db_session.raw.execute(_DELETE_BATCHES, chat_key, line_id, list(memo_ids))


async def list_written_after(db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int) -> list[asyncpg.Record]:
    """Return (memo_id, the memo's seq) of the memos after `seq` that people wrote or edited, in story order.

    The seq of a memo is the first seq of its batch. If the memo has no batch, it is the seq that the memo follows.
    """
    return await db_session.raw.fetch(_WRITTEN_AFTER, chat_key, line_id, seq)


async def copy_written(
    db_session: DbSession, chat_key: UUID, line_id: UUID, from_line_id: UUID, sort_keys: Sequence[tuple[UUID, int]]
) -> None:
    """Copy memos that people wrote or edited, without their batches, from the line `from_line_id` to `line_id`.

    `sort_keys` are the memos with their positions on the line `line_id`: (memo_id, sort_key).
    """
    await db_session.raw.execute(_COPY_WRITTEN, chat_key, line_id, from_line_id, *zip(*sort_keys, strict=True))


async def count_book(db_session: DbSession, chat_key: UUID, line_id: UUID) -> int:
    """Return the number of memos in the book."""
    count: int = await db_session.raw.fetchval(_COUNT_BOOK, chat_key, line_id)
    return count


async def move_written(db_session: DbSession, chat_key: UUID, line_id: UUID, *, end_sort_key: int) -> None:
    """Lower the sort keys of memos without a batch to at most `end_sort_key`."""
    await db_session.raw.execute(_MOVE_WRITTEN, chat_key, line_id, end_sort_key)
