"""Schedules, at a person's request, the ranges that rules have read: the model is to read them, if there is one.

A transaction schedules at most MOST_AT_ONCE ranges. If there are more, one work item of the line, with the key REST,
holds the spans of seqs whose ranges are left to schedule, and its job (`again_job.py`) schedules the next ranges.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.ranges import Range
from app.chats.revision import record_nothing
from app.chats.scheduling import find_scheduled, get_scheduled, schedule, unschedule
from app.consolidation import queries
from app.consolidation.errors import ConsolidationOff
from app.consolidation.handlers import NAME
from app.consolidation.ranges import key_of, leave_out, merge_spans
from app.consolidation.settings import ConsolidationSettings
from app.kit.db import DbSession, defer
from app.kit.wire import MAX_SEQ
from app.kit.work_queue import NewWork

AGAIN = "again"
"""A field of the payload of a work item. Only work that a person requested has this field.

In the item of a range, its value is true: the range is read although its messages have not changed. In the item REST,
its value is the list of spans: pairs of a first and a last seq, both inclusive.
"""

REST = "again"
"""The key of the work item that holds what is left to schedule."""

MOST_AT_ONCE = 100
"""The most ranges that are scheduled in one transaction. It must be short, because it holds the chat's lock, and
appends of messages wait for this lock."""


class Again(NamedTuple):
    """How many ranges are read again, their first and last seq, and the work item of the first; 0 and None if none."""

    ranges: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    work_id: UUID | None = None


async def learn_again(
    db_session: DbSession, ref: ChatRef, *, first_seq: int, last_seq: int | None, now: datetime
) -> Again:
    """Schedule a second reading of the ranges that rules have read and that have a message between two seqs.

    Both seqs are inclusive; if `last_seq` is None, the end is that of the line. The first MOST_AT_ONCE of the ranges
    are scheduled at once, and the others by the job of the item REST. Raises ChatNotFound, and ConsolidationOff if the
    chat does not learn.
    """
    head = await lock_head(db_session, ref)
    if not ConsolidationSettings.of(head.settings).enabled:
        raise ConsolidationOff("This chat does not learn; set consolidation.enabled to true.")
    wanted = (first_seq, MAX_SEQ if last_seq is None else last_seq)
    ranges, first, last = await queries.count_read_by_rule(db_session, head.line, *wanted)
    if first is None or last is None:
        record_nothing(db_session, head.line)
        return Again()
    # The span ends with the last of these ranges. So it has no later ranges, which rules may read after this request.
    left = leave_out(await list_left(db_session, head), first, last)
    if not await schedule_again(db_session, head, [(first, last)], left=left, now=now):
        record_nothing(db_session, head.line)
    work = await get_scheduled(db_session, head, NAME, key_of(first))
    return Again(ranges, first, last, work.work_id)


async def schedule_again(
    db_session: DbSession, head: Head, spans: Sequence[Range], *, left: Sequence[Range] = (), now: datetime
) -> bool:
    """Schedule the first MOST_AT_ONCE ranges of `spans` that rules have read, and the item REST for the others.

    Returns whether this changed any work item. If a person has asked for a range before, the model's answer may be
    under way. So the item of such a range is scheduled again only if it waits for a retry or has failed. `spans` are in
    order. `left` are the spans that the item REST holds for earlier requests. `head` is the line's locked head.
    """
    ranges, rest = list[Range](), list(spans)
    while rest and len(ranges) < MOST_AT_ONCE:
        first_seq, last_seq = rest.pop(0)
        at_most = MOST_AT_ONCE - len(ranges) + 1
        found = await queries.list_read_by_rule(db_session, head.line, first_seq, last_seq, at_most)
        if len(found) == at_most:
            rest.insert(0, (found.pop()[0], last_seq))
        ranges += [one for one in found if one not in ranges]
    has_changed = await _leave(db_session, head, merge_spans([*rest, *left]), now=now)
    asked = await queries.list_asked(db_session, head.line, NAME, AGAIN, [key_of(first) for first, _ in ranges])
    items = [NewWork(key_of(first), first, {AGAIN: True}) for first, _ in ranges if not asked.get(key_of(first))]
    if items:
        await schedule(db_session, head, NAME, items, now=now, settle_s=0)
        defer(db_session, LayerChanged(head, NAME))
    return has_changed or bool(items)


async def leave_through(db_session: DbSession, head: Head, last_seq: int, *, now: datetime) -> None:
    """Remove the seqs after `last_seq` from the spans that are left to schedule: their ranges were cut off."""
    left = await list_left(db_session, head)
    kept = leave_out(left, last_seq + 1, MAX_SEQ)
    if kept != left:
        await _leave(db_session, head, kept, now=now)


async def cancel_again(db_session: DbSession, head: Head) -> None:
    """Delete the work that a person requested, because the chat no longer learns."""
    asked = await queries.list_asked(db_session, head.line, NAME, AGAIN)
    if asked:
        await unschedule(db_session, head, NAME, list(asked))


def read_spans(payload: dict[str, object] | None) -> list[Range]:
    """Return the spans of the item REST from its payload; none if it has no payload."""
    stored = (payload or {}).get(AGAIN)
    return [(first, last) for first, last in stored] if isinstance(stored, list) else []


async def list_left(db_session: DbSession, head: Head) -> list[Range]:
    """Return the spans that are left to schedule."""
    item = await find_scheduled(db_session, head, NAME, REST)
    return read_spans(item.payload) if item else []


async def _leave(db_session: DbSession, head: Head, spans: Sequence[Range], *, now: datetime) -> bool:
    """Replace the item REST by one that holds `spans`; return whether anything changed. Without spans it is deleted.

    The `at_seq` of the new item is the first seq of the first span.
    """
    item = await find_scheduled(db_session, head, NAME, REST)
    held = read_spans(item.payload) if item else []
    if held == spans and not (item and item.failed_at):
        return False
    if item:
        await unschedule(db_session, head, NAME, [REST])
    if spans:
        await schedule(db_session, head, NAME, [NewWork(REST, spans[0][0], {AGAIN: spans})], now=now, settle_s=0)
    return True
