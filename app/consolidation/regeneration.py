"""Schedules, at a person's request, the ranges that rules have read: the model is to read them, if there is one."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.ranges import Range
from app.chats.revision import record_nothing
from app.chats.scheduling import get_scheduled, schedule
from app.consolidation import queries
from app.consolidation.errors import ConsolidationOff
from app.consolidation.handlers import NAME
from app.consolidation.ranges import key_of
from app.consolidation.settings import ConsolidationSettings
from app.kit.db import DbSession, defer
from app.kit.wire import MAX_SEQ
from app.kit.work_queue import NewWork

AGAIN = "again"
"""The field of a work item's payload: the range is read although its messages have not changed."""


FOLLOWING = "following"
"""The field of a work item's payload: what is read again after this range, as a list of [first seq, last seq]."""

MOST_AT_ONCE = 100
"""The most ranges that are scheduled in one transaction, so that it stays short: messages wait for the chat's lock."""


class Again(NamedTuple):
    """How many ranges are read again, their first and last seq, and the work item of the first; 0 and None if none."""

    ranges: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    work_id: UUID | None = None


async def learn_again(
    db_session: DbSession, ref: ChatRef, *, first_seq: int, last_seq: int | None, now: datetime
) -> Again:
    """Have the ranges read again that rules have read and that have a message between two seqs (both inclusive).

    The first MOST_AT_ONCE of them are scheduled at once, and the others by the job that reads the first range. If
    `last_seq` is None, the end is that of the line. Raises ChatNotFound, and ConsolidationOff if the chat does not
    learn.
    """
    head = await lock_head(db_session, ref)
    if not ConsolidationSettings.of(head.settings).enabled:
        raise ConsolidationOff("This chat does not learn; set consolidation.enabled to true.")
    span = (first_seq, MAX_SEQ if last_seq is None else last_seq)
    ranges, first, last = await queries.count_read_by_rule(db_session, head.line, *span)
    if first is None:
        record_nothing(db_session, head.line)
        return Again()
    await schedule_again(db_session, head, [span], now=now)
    work = await get_scheduled(db_session, head, NAME, key_of(first))
    return Again(ranges, first, last, work.work_id)


async def schedule_again(db_session: DbSession, head: Head, spans: Iterable[Sequence[int]], *, now: datetime) -> None:
    """Schedule the first MOST_AT_ONCE ranges of `spans` that rules have read; the first of them has the rest to follow.

    Each span is a first and a last seq, both inclusive. The first range is the last one of them to be claimed if it is
    before the history of the contexts (`kit.work_queue.claim`), so that few items are due at a time. `head` is that of
    the line, locked.
    """
    rows, rest = list[Range](), [(first, last) for first, last in spans]
    while rest and not rows:
        first_seq, last_seq = rest.pop(0)
        rows = await queries.list_read_by_rule(db_session, head.line, first_seq, last_seq, MOST_AT_ONCE + 1)
        if len(rows) > MOST_AT_ONCE:
            rest.insert(0, (rows.pop()[0], last_seq))
    if not rows:
        return
    keys = [key_of(first) for first, _ in rows]
    following = await queries.list_following(db_session, head.line, NAME, FOLLOWING, keys)
    following[keys[0]] = [*rest, *(span for span in following.get(keys[0], []) if span not in rest)]
    items = [
        NewWork(key, first, {AGAIN: True} | ({FOLLOWING: found} if (found := following.get(key)) else {}))
        for key, (first, _) in zip(keys, rows, strict=True)
    ]
    await schedule(db_session, head, NAME, items, now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
