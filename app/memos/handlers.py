"""Handles appends and renames, says where the history may be cut, and stores the memo window.

`changes.py` handles changed messages. The history in a context begins at the anchor, a seq, and a cut moves the anchor.
The window is the memos that go into the prompt: the last ones and the pinned ones, without memos whose batch begins in
the history. A gap is a range before the anchor whose memo is missing.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters, hash_eligible, is_eligible
from app.chats.events import CharacterRenamed, MessagesAppended
from app.chats.head import Head, NewMessage
from app.chats.heads import read_head, update_cache
from app.chats.ranges import inside_of
from app.chats.revision import record
from app.chats.scheduling import schedule
from app.kit import work_queue
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.kit.wire import MAX_SEQ
from app.memos import queries
from app.memos.batches import Batch, BatchMessage, OpenBatch, form_batches
from app.memos.models import NAME, Memo
from app.memos.settings import MemoSettings
from app.memos.window import Calendar, make_window
from app.messages.range_reads import find_sent_at_and_zone
from app.messages.reads import list_not_deleted, list_range


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Form the batches that the new messages fill, and schedule their memos."""
    head = event.head
    settings = MemoSettings.of(head.settings)
    if not settings.enabled:
        head.cursors.pop(NAME, None)
        return
    stored = head.cursors.get(NAME)
    formed, open_batch = await _catch_up(db_session, event, OpenBatch.from_json(stored)) if stored else ([], None)
    batches, open_batch = form_batches(open_batch, event.fresh, size=settings.every_messages, filters=head.filters)
    batches = [*formed, *batches]
    head.cursors[NAME] = open_batch.to_json() if open_batch else None
    if batches:
        await insert_batches(db_session, head, batches, event.fresh, now=event.now, settle_s=event.settle_s)
        record(db_session, head.line, NAME)  # contexts depend on where batches end
        if batches[0].first_seq < head.anchor_seq:  # a forced cut fell inside this batch while it filled
            await refresh_cache(db_session, head)


async def on_rename(_db_session: DbSession, event: CharacterRenamed) -> None:
    """Rename a disabled character in the filters of the open batch."""
    if stored := event.head.cursors.get(NAME):
        batch = OpenBatch.from_json(stored)
        filters = batch.filters.renamed(event.former, event.name)
        event.head.cursors[NAME] = replace(batch, filters=filters).to_json()


async def covered_through(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Return the last seq before the first batch whose memo is due, or the end of the last batch if none is due.

    Due memos of batches that end before `from_seq` are ignored. A memo whose work item has failed for good is not due.
    Returns None if memos are off.
    """
    if not MemoSettings.of(head.settings).enabled:
        return None
    unsettled = await queries.find_first_unsettled(db_session, *head.line, from_seq, NAME)
    if unsettled is not None:
        return unsettled - 1
    return await queries.find_last_batch_end(db_session, *head.line) or 0


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """Return the seq after each batch, starting with the last batch that begins before `from_seq`."""
    return await queries.list_batch_edges(db_session, *head.line, from_seq)


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Store the memo window on the line's row."""
    await update_cache(db_session, *head.line, NAME, await read_window(db_session, head))


async def read_window(db_session: DbSession, head: Head) -> dict[str, Any]:
    """Return the window as JSON, read from the tables: the last memos, the pinned ones, and the gaps."""
    settings = MemoSettings.of(head.settings)
    line, anchor_seq = head.line, head.anchor_seq
    memos = await queries.list_window(
        db_session, *line, anchor_seq=anchor_seq, enabled=settings.enabled, limit=settings.window
    )
    pinned = await queries.list_pinned(db_session, *line, anchor_seq=anchor_seq, enabled=settings.enabled)
    calendar = Calendar(*(await find_sent_at_and_zone(db_session, *line, anchor_seq) or (None, "UTC")))
    if not settings.enabled:
        return make_window(memos, pinned, (), calendar)
    gaps: list[tuple[int, int]] = []
    if settings.window:
        # A window that is not full reaches back to the start of the book, so every missing memo there is a gap.
        from_sort_key = memos[0]["sort_key"] if len(memos) >= settings.window else 0
        gaps = await queries.list_gaps(db_session, *line, anchor_seq=anchor_seq, from_sort_key=from_sort_key)
    filling = head.cursors.get(NAME)
    if filling and filling["first_seq"] < anchor_seq:  # a forced cut fell inside this batch, which has no memo yet
        gaps.append((filling["first_seq"], anchor_seq - 1))
    return make_window(memos, pinned, gaps, calendar)


async def list_coverage(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return the batches that overlap a range of messages and, if memos are on, the one that is filling."""
    found = await queries.list_overlapping(db_session, chat_key, line_id, first_seq, last_seq, layer=NAME)
    covers = [
        Coverage(
            memo.first_seq or 0,
            memo.last_seq or 0,
            "memo",
            str(memo.memo_id),
            _state(memo, work),
            Filters.from_json(memo.filters or {}),
            expires=True,
        )
        for memo, work in found
    ]
    head = await read_head(db_session, chat_key, line_id)
    stored = head.cursors.get(NAME) if head else None
    if head and stored and MemoSettings.of(head.settings).enabled:
        filling = OpenBatch.from_json(stored)
        covers.append(Coverage(filling.first_seq, MAX_SEQ, "memo", None, "pending", filling.filters, expires=True))
    return covers


def _state(memo: Memo, work: work_queue.WorkItem | None) -> Literal["pending", "failed", "empty", "made"]:
    """Return the state of a memo.

    A stale memo has no work item if memos were off when its messages changed. Such a memo keeps its former state.
    """
    is_stale = memo.source_hash != memo.current_hash and memo.origin != "person"
    if memo.status == "pending" or (is_stale and work is not None):
        return "failed" if work is not None and work.failed_at is not None else "pending"
    return "empty" if memo.status == "empty" else "made"


async def _catch_up(
    db_session: DbSession, event: MessagesAppended, open_batch: OpenBatch
) -> tuple[list[Batch], OpenBatch | None]:
    """Bring the stored open batch up to date before the new messages are added.

    - If it has enough messages already, because messages changed or memos were switched on late, batches are formed
      from its first seq on, with its own size and filters.
    - If it has no eligible message and the settings have changed, it takes the current settings and its older messages
      are counted again.
    - Otherwise it is returned unchanged.

    Return the batches that are full now, and the one that is still filling.
    """
    size, filters = MemoSettings.of(event.head.settings).every_messages, event.head.filters
    if open_batch.count > 0:
        if open_batch.count < open_batch.size:
            return [], open_batch
        size, filters = open_batch.size, open_batch.filters
    elif (open_batch.size, open_batch.filters) == (size, filters):
        return [], open_batch
    head, emptied = event.head, OpenBatch(open_batch.first_seq, size, filters)
    older = await list_range(db_session, *head.line, emptied.first_seq, event.former_head_seq)
    return form_batches(emptied, older, size=size, filters=filters)


async def insert_batches(
    db_session: DbSession,
    head: Head,
    batches: Sequence[Batch],
    fresh: Sequence[NewMessage] = (),
    *,
    now: datetime,
    settle_s: float,
) -> list[UUID]:
    """Insert batches (one or more, in order), each with at least one eligible message, and schedule their memos.

    `fresh` are the newest messages of the line. If the batches contain only these, no messages are read.

    Return the ids of the memos.
    """
    first_seq = batches[0].first_seq
    messages: Sequence[BatchMessage] = fresh
    if not fresh or first_seq < fresh[0].seq:
        messages = await list_not_deleted(db_session, *head.line, [(first_seq, batches[-1].last_seq)])
    rows: list[dict[str, Any]] = []
    head.memo_count += len(batches)
    for batch in batches:
        inside = inside_of(messages, batch.first_seq, batch.last_seq)
        eligible = [message for message in inside if is_eligible(message, batch.filters)]
        head.memo_number += 1
        rows.append(
            {
                "memo_id": uuid7(),
                "number": head.memo_number,
                "first_seq": batch.first_seq,
                "last_seq": batch.last_seq,
                "first_message_id": eligible[0].message_id,
                "size": batch.size,
                "filters": batch.filters.to_json(),
                "current_hash": hash_eligible(inside, batch.filters),
            }
        )
    await queries.insert_batches(db_session, *head.line, now=now, rows=rows)
    items = [work_queue.NewWork(key=str(row["memo_id"]), at_seq=row["first_seq"]) for row in rows]
    await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)
    return [row["memo_id"] for row in rows]
