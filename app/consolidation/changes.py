"""Schedules ranges of messages to be read again after their messages changed.

The new text of a message can contain other facts, so a work item is scheduled that reads the range again. Facts and
memories that are still in the range are recognised and not stored twice. A fact or memory whose messages have another
text now is hidden by `app/knowledge`, without a work item.
"""

from collections.abc import Sequence

import asyncpg
import orjson

from app.chats.eligibility import Filters
from app.chats.events import LineTruncated, MessagesChanged, SettingsChanged
from app.chats.ranges import Range, is_any_inside
from app.chats.scheduling import schedule, unschedule
from app.consolidation import queries
from app.consolidation.handlers import NAME, count_again, find_open
from app.consolidation.models import Consolidation
from app.consolidation.ranges import RANGE, key_of
from app.consolidation.regeneration import AGAIN, cancel_again, leave_through, list_left
from app.consolidation.settings import ConsolidationSettings
from app.kit.db import DbSession
from app.kit.work_queue import NewWork
from app.layers.derived import DerivedRow, Rehashed, rehash, reschedule, schedule_unscheduled
from app.layers.turns import can_alter_turns


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Schedule changed ranges; if a change of messages can alter the turns of the open range, count them again."""
    head = event.head
    cursor = head.cursors.get(NAME)
    if cursor is None:
        return
    filling = find_open(cursor)
    if filling and any(can_alter_turns(before, after) for before, after in event.pairs):
        cursor["period"] = (await count_again(db_session, head, filling.first_seq, head.head_seq)).to_json()
    enabled = ConsolidationSettings.of(head.settings).enabled
    touched = await queries.list_touched(db_session, head.line, [after.seq for _, after in event.pairs])
    changed = [one for one in await rehash(db_session, head, [_derived(row) for row in touched]) if one.has_changed]
    if changed:
        hashes = [(one.row.first_seq, one.current_hash) for one in changed]
        await queries.update_hashes(db_session, head.line, hashes)
        others = await _schedule_asked(db_session, event, changed) if enabled else changed
        await reschedule(db_session, head, NAME, others, enabled=enabled, now=event.now, settle_s=event.settle_s)
    await _settle_again(db_session, event)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete the ranges that end at or after `event.from_seq`; what is left of their messages is open again."""
    head, from_seq = event.head, event.from_seq
    cursor = head.cursors.get(NAME)
    if cursor is None:
        return
    due = [row["first_seq"] for row in await queries.list_due(db_session, head.line, NAME, from_seq)]
    gone = [*await queries.truncate(db_session, head.line, from_seq), *due]
    if gone:
        await unschedule(db_session, head, NAME, [key_of(first_seq) for first_seq in gone])
    await leave_through(db_session, head, min([from_seq, *gone]) - 1, now=event.now)
    if filling := find_open(cursor):
        first_seq = min([filling.first_seq, from_seq, *gone])
        cursor["period"] = (await count_again(db_session, head, first_seq, from_seq - 1)).to_json()


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """If the layer is on, schedule the ranges that changed while it was off.

    If it is off, cancel the requests of people to read ranges again (`regeneration.py`).
    """
    head = event.head
    if NAME not in head.cursors:
        return
    if not ConsolidationSettings.of(head.settings).enabled:
        await cancel_again(db_session, head)
        return
    column, now, settle_s = Consolidation.first_seq, event.now, event.settle_s
    await schedule_unscheduled(db_session, head, NAME, column, prefix=RANGE, now=now, settle_s=settle_s)


async def _schedule_asked(
    db_session: DbSession, event: MessagesChanged, changed: Sequence[Rehashed[asyncpg.Record]]
) -> list[Rehashed[asyncpg.Record]]:
    """Schedule the changed ranges that a person asked to read again, failed ones too; return the other changed ranges.

    If the item of such a range has failed, or is not scheduled yet, `reschedule` would schedule it without the mark
    AGAIN in its payload, so that the person's request would be lost. If a range has its former messages again, its item
    stays as it is.
    """
    items_of = await queries.list_asked(db_session, event.head.line, NAME, AGAIN, [one.row.key for one in changed])
    left = await list_left(db_session, event.head)
    asked = [one for one in changed if one.row.key in items_of or _is_in(left, one.row.first_seq)]
    items = [NewWork(one.row.key, one.row.first_seq, {AGAIN: True}) for one in asked if not one.is_valid]
    if items:
        await schedule(db_session, event.head, NAME, items, now=event.now, settle_s=event.settle_s)
    return [one for one in changed if one not in asked]


def _is_in(spans: Sequence[Range], seq: int) -> bool:
    return any(first_seq <= seq <= last_seq for first_seq, last_seq in spans)


async def _settle_again(db_session: DbSession, event: MessagesChanged) -> None:
    """Restart the settle time of ranges that were never read and contain changed messages."""
    head, seqs = event.head, event.changed_seqs
    if not seqs:
        return
    items = [
        NewWork(key_of(row["first_seq"]), row["first_seq"], orjson.loads(row["payload"]))
        for row in await queries.list_due(db_session, head.line, NAME, seqs[0])
        if is_any_inside(seqs, row["first_seq"], row["last_seq"])
    ]
    if items:
        await schedule(db_session, head, NAME, items, now=event.now, settle_s=event.settle_s)


def _derived(row: asyncpg.Record) -> DerivedRow[asyncpg.Record]:
    return DerivedRow(
        of=row,
        key=key_of(row["first_seq"]),
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        filters=Filters.from_json(orjson.loads(row["filters"])),
        source_hash=row["source_hash"],
        current_hash=row["current_hash"],
    )
