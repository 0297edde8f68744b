"""SQL of the memo book."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy import Select, String, and_, cast, or_, select, tuple_, update

from app.kit.db import Connection, DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.kit.work_queue import WorkItem
from app.memos.models import Memo
from app.messages.rules import write_is_eligible

_SHOWN = """
    deleted_at IS NULL AND status = 'ready' AND (first_seq IS NULL OR first_seq < $3)
    AND (origin = 'person' OR ($4 AND source_hash IS NOT DISTINCT FROM current_hash))"""

DOCUMENTS = """
    SELECT 'memo:' || m.memo_id, m.text, coalesce(m.first_seq, 0), coalesce(m.last_seq, m.sort_key / 2),
        NULL::text, NULL::float8
    FROM memos m
    WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.deleted_at IS NULL AND m.status = 'ready'
        AND (m.origin = 'person' OR m.source_hash IS NOT DISTINCT FROM m.current_hash)"""

_BOOK_COLUMNS = """memo_id, number, first_seq, last_seq, text, tokens, origin, edited,
    source_hash IS DISTINCT FROM current_hash AS stale"""

_DATED = f"""
    SELECT b.*, sent.first_sent_at, sent.last_sent_at FROM chosen b CROSS JOIN LATERAL (
        SELECT min(m.sent_at) AS first_sent_at, max(m.sent_at) AS last_sent_at FROM (
            SELECT * FROM messages
            WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN b.first_seq AND b.last_seq ORDER BY seq
            {ONE_LOOKUP_EACH}
        ) AS m WHERE {write_is_eligible("m", "b.filters")}
    ) AS sent ORDER BY b.sort_key, b.number"""  # noqa: S608 - constants only

_WINDOW = f"""
    WITH chosen AS (
        SELECT {_BOOK_COLUMNS}, sort_key, filters FROM memos
        WHERE chat_key = $1 AND line_id = $2 AND NOT pinned AND {_SHOWN}
        ORDER BY sort_key DESC, number DESC LIMIT $5
    ) {_DATED}"""  # noqa: S608 - constants only

_PINNED = f"""
    WITH chosen AS (
        SELECT {_BOOK_COLUMNS}, sort_key, filters FROM memos
        WHERE chat_key = $1 AND line_id = $2 AND pinned AND {_SHOWN}
    ) {_DATED}"""  # noqa: S608 - constants only

_GAPS = """
    SELECT first_seq, least(last_seq, $3 - 1) AS last_seq FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND first_seq < $3 AND sort_key >= $4 AND deleted_at IS NULL
        AND (status = 'pending' OR (origin <> 'person' AND source_hash IS DISTINCT FROM current_hash))
    ORDER BY first_seq"""

_INSERT_BATCHES = """
    INSERT INTO memos (chat_key, line_id, memo_id, number, sort_key, first_seq, last_seq, first_message_id, origin,
        size, filters, current_hash, created_at)
    SELECT $1, $2, b.memo_id, b.number, 2 * b.first_seq, b.first_seq, b.last_seq, b.first_message_id, 'model',
        b.size, b.filters::jsonb, b.current_hash, $3
    FROM unnest($4::uuid[], $5::int[], $6::int[], $7::int[], $8::text[], $9::int[], $10::text[], $11::bytea[])
        AS b (memo_id, number, first_seq, last_seq, first_message_id, size, filters, current_hash)"""

_FIRST_UNSETTLED = """
    SELECT m.first_seq FROM memos m JOIN work w
        ON w.owner_key = m.chat_key AND w.line_id = m.line_id AND w.layer = $4 AND w.key = m.memo_id::text
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.last_seq >= $3 AND m.deleted_at IS NULL AND w.failed_at IS NULL
        AND m.first_seq >= (
            SELECT coalesce(max(first_seq), 0) FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq <= $3)
    ORDER BY m.first_seq LIMIT 1"""

_LAST_BATCH = """
    SELECT last_seq FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq IS NOT NULL
    ORDER BY first_seq DESC LIMIT 1"""

_RANGES = """
    SELECT first_seq, last_seq FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND first_seq <= $4 AND last_seq >= $3
    ORDER BY first_seq"""

_EDGES = """
    SELECT last_seq + 1 AS edge FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND first_seq >= (
        SELECT coalesce(max(first_seq), 0) FROM memos WHERE chat_key = $1 AND line_id = $2 AND first_seq < $3)
    ORDER BY first_seq"""

_BATCH = """
    SELECT first_seq, last_seq, filters::text AS filters FROM memos
    WHERE chat_key = $1 AND line_id = $2 AND memo_id = $3 AND deleted_at IS NULL"""


async def insert_batches(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, now: datetime, rows: Sequence[dict[str, Any]]
) -> None:
    """Insert a pending memo for each of `rows`."""
    await db_session.raw.execute(
        _INSERT_BATCHES,
        chat_key,
        line_id,
        now,
        [row["memo_id"] for row in rows],
        [row["number"] for row in rows],
        [row["first_seq"] for row in rows],
        [row["last_seq"] for row in rows],
        [row["first_message_id"] for row in rows],
        [row["size"] for row in rows],
        [orjson.dumps(row["filters"]).decode() for row in rows],
        [row["current_hash"] for row in rows],
    )


async def list_window(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, anchor_seq: int, enabled: bool, limit: int
) -> list[dict[str, Any]]:
    """Return the last `limit` memos that are not pinned and can be in the prompt, in story order.

    Memos of batches that begin at or after the anchor are left out. Unless `enabled`, only memos that a person wrote or
    edited are returned. `list_pinned` returns the rest of the window. `first_sent_at` and `last_sent_at` are the
    earliest and the latest time at which an eligible message of the batch was sent, or None.
    """
    rows = await db_session.raw.fetch(_WINDOW, chat_key, line_id, anchor_seq, enabled, limit)
    return [dict(row) for row in rows]


async def list_pinned(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, anchor_seq: int, enabled: bool
) -> list[dict[str, Any]]:
    """Return the pinned memos of the window in story order; `list_window` returns the others."""
    return [dict(row) for row in await db_session.raw.fetch(_PINNED, chat_key, line_id, anchor_seq, enabled)]


async def list_gaps(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, anchor_seq: int, from_sort_key: int
) -> list[tuple[int, int]]:
    """Return the ranges before the anchor whose memo is pending, or is stale and was not written or edited by a person.

    Only memos whose sort key is at least `from_sort_key` are considered.
    """
    rows = await db_session.raw.fetch(_GAPS, chat_key, line_id, anchor_seq, from_sort_key)
    return [(row["first_seq"], row["last_seq"]) for row in rows]


async def find_first_unsettled(
    db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int, layer: str
) -> int | None:
    """Return the first seq of the first batch that ends at or after `from_seq` and whose memo has unfinished work.

    Failed work does not count. Returns None if there is no such batch.
    """
    first: int | None = await db_session.raw.fetchval(_FIRST_UNSETTLED, chat_key, line_id, from_seq, layer)
    return first


async def find_last_batch_end(db_session: DbSession, chat_key: UUID, line_id: UUID) -> int | None:
    """Return the last seq of the last batch, or None if there is none."""
    last: int | None = await db_session.raw.fetchval(_LAST_BATCH, chat_key, line_id)
    return last


async def list_batch_edges(db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int) -> list[int]:
    """Return the seq after each batch, starting with the last batch that begins before `from_seq`."""
    return [row["edge"] for row in await db_session.raw.fetch(_EDGES, chat_key, line_id, from_seq)]


async def list_batch_ranges(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> list[tuple[int, int]]:
    """Return the ranges of the batches that overlap a range (inclusive), in order, even if a memo is soft-deleted."""
    rows = await db_session.raw.fetch(_RANGES, chat_key, line_id, first_seq, last_seq)
    return [(row["first_seq"], row["last_seq"]) for row in rows]


async def find_batch(connection: Connection, chat_key: UUID, line_id: UUID, memo_id: UUID) -> asyncpg.Record | None:
    """Return the range and the eligibility filters of a memo's batch, or None if the memo is gone or soft-deleted."""
    return await connection.fetchrow(_BATCH, chat_key, line_id, memo_id)


async def list_book(
    db_session: DbSession,
    chat_key: UUID,
    line_id: UUID,
    *,
    layer: str,
    after: tuple[int, int] | None,
    limit: int,
) -> Sequence[tuple[Memo, WorkItem | None]]:
    """Return memos in story order, each with its work item."""
    query = _with_work(chat_key, line_id, layer).where(Memo.deleted_at.is_(None))
    if after:
        query = query.where(tuple_(Memo.sort_key, Memo.number) > after)
    rows = await db_session.execute(query.order_by(Memo.sort_key, Memo.number).limit(limit))
    return [(memo, work) for memo, work in rows]


async def find_memo(
    db_session: DbSession, chat_key: UUID, line_id: UUID, memo_id: UUID, *, layer: str
) -> tuple[Memo, WorkItem | None] | None:
    """Return a memo, even a soft-deleted one, with its work item; None if there is no such memo."""
    row = (await db_session.execute(_with_work(chat_key, line_id, layer).where(Memo.memo_id == memo_id))).one_or_none()
    return None if row is None else (row[0], row[1])


async def update_memo(
    db_session: DbSession, chat_key: UUID, line_id: UUID, memo_id: UUID, values: dict[str, Any]
) -> None:
    """Update a memo."""
    await db_session.execute(
        update(Memo).where(Memo.chat_key == chat_key, Memo.line_id == line_id, Memo.memo_id == memo_id).values(**values)
    )


async def list_overlapping(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int, *, layer: str
) -> Sequence[tuple[Memo, WorkItem | None]]:
    """Return the memos whose batches overlap the range (inclusive), in order, with their work items.

    Soft-deleted memos are left out.
    """
    first_begins = (
        select(Memo.first_seq)
        .where(Memo.chat_key == chat_key, Memo.line_id == line_id, Memo.first_seq <= first_seq)
        .order_by(Memo.first_seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    rows = await db_session.execute(
        _with_work(chat_key, line_id, layer)
        .where(
            Memo.deleted_at.is_(None),
            or_(and_(Memo.first_seq >= first_seq, Memo.first_seq <= last_seq), Memo.first_seq == first_begins),
            Memo.last_seq >= first_seq,
        )
        .order_by(Memo.first_seq)
    )
    return [(memo, work) for memo, work in rows]


def _with_work(chat_key: UUID, line_id: UUID, layer: str) -> Select[Memo, WorkItem]:
    return (
        select(Memo, WorkItem)
        .outerjoin(
            WorkItem,
            and_(
                WorkItem.owner_key == Memo.chat_key,
                WorkItem.line_id == Memo.line_id,
                WorkItem.layer == layer,
                WorkItem.key == cast(Memo.memo_id, String),
            ),
        )
        .where(Memo.chat_key == chat_key, Memo.line_id == line_id)
    )
