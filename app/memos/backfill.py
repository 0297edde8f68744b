"""Makes the memos of messages that were said while memos were off."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.eligibility import Filters
from app.chats.events import LayerChanged
from app.chats.head import Head, RangeMessage
from app.chats.ranges import Range, inside_of
from app.chats.revision import record_nothing
from app.chats.scheduling import get_scheduled
from app.kit.db import DbSession, defer
from app.memos import queries
from app.memos.batches import Batch, OpenBatch, form_batches
from app.memos.errors import MemosOff
from app.memos.handlers import insert_batches
from app.memos.models import NAME
from app.memos.settings import MemoSettings
from app.messages.reads import list_not_deleted


class Backfilled(NamedTuple):
    """The new batches of a backfill, in order, and the work item of the first; () and None if there are none."""

    batches: Sequence[Batch] = ()
    work_id: UUID | None = None


async def backfill(
    db_session: DbSession, ref: ChatRef, *, first_seq: int, last_seq: int | None, now: datetime
) -> Backfilled:
    """Form batches of the messages of a range (inclusive) that no batch covers, and schedule their memos.

    The current settings apply. If `last_seq` is None, the range goes to the end of the line. The open batch is left to
    fill with the next appends. But if memos were switched on late, it can already have enough messages for one or more
    full batches. Those that overlap the range are then formed, with the size and the filters of the open batch, and so
    are those before them, even if they end before `first_seq`, so that no message is skipped. The messages after them
    stay in the open batch.

    If every eligible message is in a batch already, there are no new batches. Raises ChatNotFound, and MemosOff if the
    chat's memos are switched off.
    """
    head = await lock_head(db_session, ref)
    settings = MemoSettings.of(head.settings)
    if not settings.enabled:
        raise MemosOff("This chat's memos are switched off; set memos.enabled to true to make them.")
    stored = head.cursors.get(NAME)
    open_batch = OpenBatch.from_json(stored) if stored else None
    end = open_batch.first_seq - 1 if open_batch else head.head_seq
    wanted = (first_seq, end if last_seq is None else min(last_seq, end))
    gaps = list_uncovered(await queries.list_batch_ranges(db_session, *head.line, *wanted), wanted)
    messages = await list_not_deleted(db_session, *head.line, gaps) if gaps else []
    batches = [
        batch
        for first, last in gaps
        for batch in fill_gap(
            (first, last), inside_of(messages, first, last), size=settings.every_messages, filters=head.filters
        )
    ]
    if open_batch is not None:
        filled = await _list_full(db_session, head, open_batch, (first_seq, last_seq))
        if filled:
            head.cursors[NAME] = take_full(open_batch, filled).to_json()
            batches += filled
    if not batches:
        record_nothing(db_session, head.line)
        return Backfilled()
    memo_ids = await insert_batches(db_session, head, batches, now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return Backfilled(batches, (await get_scheduled(db_session, head, NAME, str(memo_ids[0]))).work_id)


async def _list_full(
    db_session: DbSession, head: Head, open_batch: OpenBatch, wanted: tuple[int, int | None]
) -> list[Batch]:
    """Return the full batches of the open batch, up to the last one that overlaps `wanted`; [] if none overlaps it."""
    first_seq, last_seq = wanted
    if open_batch.count < open_batch.size or (last_seq is not None and last_seq < open_batch.first_seq):
        return []
    messages = await list_not_deleted(db_session, *head.line, [(open_batch.first_seq, head.head_seq)])
    filled = [one for one in list_full(open_batch, messages) if last_seq is None or one.first_seq <= last_seq]
    return filled if filled and filled[-1].last_seq >= first_seq else []


def list_full(open_batch: OpenBatch, messages: Iterable[RangeMessage]) -> list[Batch]:
    """Return the full batches that the open batch holds, if `messages` are all of its messages. Pure."""
    size, filters = open_batch.size, open_batch.filters
    return form_batches(replace(open_batch, count=0), messages, size=size, filters=filters)[0]


def take_full(open_batch: OpenBatch, filled: Sequence[Batch]) -> OpenBatch:
    """Return what stays open after `filled`, the first full batches of the open batch, were formed. Pure."""
    left = open_batch.count - open_batch.size * len(filled)
    return replace(open_batch, first_seq=filled[-1].last_seq + 1, count=left)


def list_uncovered(covered: Iterable[Range], wanted: Range) -> list[Range]:
    """Return the parts of `wanted` outside the ranges `covered`, which are in order and do not overlap. Pure."""
    first_seq, last_seq = wanted
    uncovered = []
    for first, last in covered:
        if first > first_seq:
            uncovered.append((first_seq, min(first - 1, last_seq)))
        first_seq = max(first_seq, last + 1)
    if first_seq <= last_seq:
        uncovered.append((first_seq, last_seq))
    return uncovered


def fill_gap(gap: Range, messages: Sequence[RangeMessage], *, size: int, filters: Filters) -> list[Batch]:
    """Return the batches that cover a gap; the last one has fewer than `size` eligible messages if they run out. Pure.

    A gap without an eligible message gets no batch.
    """
    first_seq, last_seq = gap
    batches, rest = form_batches(OpenBatch(first_seq, size, filters), messages, size=size, filters=filters)
    if rest is not None and rest.count:
        batches.append(Batch(rest.first_seq, last_seq, size, filters))
    return batches
