"""Updates diaries when messages change: schedules new texts for stale entries and for the folds that cover them.

Entries that a person wrote are not made from messages, so a change of messages does not affect them. Entries that a
character wrote with its tool are bound to a reply: `bound.py` hides and shows them when the reply changes. A truncation
before such an entry deletes it, unless a person edited or keeps it: in the remaining story, the character has not
written it.

A *period* is a range of messages with a fixed number of turns. After each period, the service schedules an entry for
each character that spoke in it and did not write itself. An entry is *unwritten* while it is only a work item.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.bindings import service as bindings
from app.chats.eligibility import Filters, is_eligible
from app.chats.events import LineTruncated, MessagesChanged, MessagesMoved, Pair, SettingsChanged
from app.chats.head import Head
from app.chats.ranges import is_any_inside
from app.chats.scheduling import schedule, unschedule
from app.diary import change_queries, queries
from app.diary.bound import leave_out_waiting
from app.diary.handlers import (
    ENTRY,
    NAME,
    WRITE,
    narrative_of,
    note_entries,
    note_outdated,
    reconcile_fold_work,
    writing_work,
)
from app.diary.models import DiaryEntry
from app.diary.naming import adopt_nameless
from app.diary.settings import DiarySettings
from app.kit.db import DbSession
from app.layers.derived import DerivedRow, Rehashed, rehash, reschedule, schedule_unscheduled
from app.layers.turns import OpenPeriod, can_alter_turns, can_end_turn, count_turns
from app.messages.reads import list_not_deleted
from app.narratives import service as narratives


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Schedule the unwritten and the stale entries about changed messages, and count the open period's turns again.

    Entries are dated by their messages, so they get another date if the time of a message changes.
    """
    head = event.head
    if NAME not in head.cursors:
        return
    if DiarySettings.of(head.settings).enabled:
        await _write_again(db_session, event)
    turned_seq = find_first_turned(event.pairs)
    if turned_seq is not None:
        begins_seq = await _reopen_unwritten(db_session, head, turned_seq)
        await _count_again(db_session, head, head.head_seq, at_most=begins_seq)
    touched = await change_queries.list_touched(db_session, head.line, [after.seq for _, after in event.pairs])
    rehashed = await rehash(db_session, head, [_derived(row) for row in touched])
    await _follow(db_session, event, [one for one in rehashed if one.has_changed])
    if event.redated:
        await _date_again(db_session, event, rehashed)


async def _follow(db_session: DbSession, event: MessagesChanged, changed: Sequence[Rehashed[asyncpg.Record]]) -> None:
    """Update the hashes of entries whose messages changed, schedule the stale ones, and update the folds over them."""
    if not changed:
        return
    head, now, settle_s = event.head, event.now, event.settle_s
    hashes = [(one.row.of["entry_id"], one.current_hash) for one in changed]
    await change_queries.update_hashes(db_session, head.line, hashes)
    enabled = DiarySettings.of(head.settings).enabled
    await reschedule(db_session, head, NAME, changed, enabled=enabled, now=now, settle_s=settle_s)
    for name, numbers in group_by_diary(changed).items():
        await note_entries(db_session, head, name, numbers, now=now, settle_s=settle_s)


async def _date_again(
    db_session: DbSession, event: MessagesChanged, touched: Sequence[Rehashed[asyncpg.Record]]
) -> None:
    """Date the entries of the service by their newest eligible message, and those of tools by their replies."""
    head, line = event.head, event.head.line
    about = [
        (one.row.of["entry_id"], message.seq)
        for one in touched
        for message in one.messages
        if is_eligible(message, one.row.filters)
    ]
    saved = await change_queries.list_saved(db_session, line, sorted(event.redated))
    replies = await bindings.list_positions(db_session, line, saved)
    about += [(entry_id, reply.at_seq) for entry_id, reply in replies.items()]
    if about:
        for character in sorted(await change_queries.update_dates(db_session, line, about)):
            note_outdated(head, character)


def find_first_turned(pairs: Sequence[Pair]) -> int | None:
    """Return the seq of the first message whose change can alter turns, or None. Pure.

    From this message on, periods may now end with other replies than before.
    """
    return next((after.seq for before, after in pairs if can_alter_turns(before, after)), None)


def group_by_diary(changed: Sequence[Rehashed[Any]]) -> dict[str, list[int]]:
    """Return the numbers of the entries that the service wrote, by character name, both sorted. Pure."""
    own = [one.row.of for one in changed if not one.row.keeps_text]
    names = sorted({row["character"] for row in own})
    return {name: [row["number"] for row in own if row["character"] == name] for name in names}


def _derived(row: asyncpg.Record) -> DerivedRow[asyncpg.Record]:
    return DerivedRow(
        of=row,
        key=f"{ENTRY}{row['entry_id']}",
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        filters=Filters.from_json(orjson.loads(row["filters"])),
        source_hash=row["source_hash"],
        current_hash=row["current_hash"],
        keeps_text=row["origin"] == "person",
    )


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """Schedule the entries and folds that became due while diaries were off, or because `diary.lines` is lower now.

    All cached texts are made again, because a new time zone changes their dates. If the chat now has a sole character,
    the unnamed diary becomes that character's.
    """
    head, now, settle_s = event.head, event.now, event.settle_s
    if NAME not in head.cursors and not DiarySettings.of(head.settings).is_shared:
        return
    line = head.line
    note_outdated(head)
    await adopt_nameless(db_session, head, now=now, settle_s=settle_s)
    if DiarySettings.of(head.settings).enabled:
        await schedule_unscheduled(
            db_session,
            head,
            NAME,
            DiaryEntry.entry_id,
            prefix=ENTRY,
            condition=DiaryEntry.deleted_at.is_(None),
            now=now,
            settle_s=settle_s,
        )
    for name in await queries.list_names(db_session, line):
        await reconcile_fold_work(db_session, head, name, now=now, settle_s=settle_s, again=False)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete the entries from the truncation on; those that a person wrote, edited or keeps move to the new head.

    Folds that cover any deleted or moved entry are dropped. The open period then begins at the lowest of these seqs:
    its own first seq, `from_seq`, and the first seqs of the periods whose entries are deleted or cancelled. Every diary
    is checked, even if none of its entries is deleted. For a fork at a message, for example, the event comes for a new
    line that ends before `from_seq`: it has no entries to delete, but its diary may lack the newest fold.
    """
    head, from_seq = event.head, event.from_seq
    if NAME not in head.cursors:
        return
    line = head.line
    reaching = await change_queries.list_reaching(db_session, line, from_seq)
    gone = await change_queries.truncate(db_session, line, from_seq)
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, from_seq)
    keys = [*(f"{ENTRY}{entry_id}" for entry_id in gone.entry_ids), *(row["key"] for row in writing)]
    await unschedule(db_session, head, NAME, keys)
    firsts = [*gone.first_seqs, *(row["first_seq"] for row in writing), from_seq]
    await _count_again(db_session, head, from_seq - 1, at_most=min(firsts))
    note_outdated(head)
    behind_all = head.cursors[NAME]["number"] + 1
    for name in sorted({*reaching, *await queries.list_names(db_session, line)}):
        number = reaching.get(name, behind_all)
        await narratives.truncate(
            db_session, line, narrative_of(name), number, begins_seq=from_seq - 1, former_line=event.former_line
        )
        await reconcile_fold_work(
            db_session, head, name, now=event.now, settle_s=event.settle_s, again=name in reaching
        )


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Copy the entries of characters and people after `kept_seq` from the old line, to the new seqs of their messages.

    A character's tool is not called again for messages that have only moved, so its entries move along with the replies
    that they are bound to, and are dated by them. An entry whose reply does not move is not copied. Entries of the
    service are written again.
    """
    head = event.head
    if NAME not in head.cursors:
        return
    line = head.line
    written = await change_queries.list_written_after(db_session, (line[0], event.from_line_id), event.kept_seq)
    positions = await _list_positions(db_session, event, written)
    if not positions:
        return
    names = await change_queries.copy_written(db_session, line, event.from_line_id, positions)
    replies = await bindings.list_positions(db_session, line, [entry_id for entry_id, *_ in positions])
    if replies:
        about = [(entry_id, reply.at_seq) for entry_id, reply in replies.items()]
        await change_queries.update_dates(db_session, line, about)
    for name in sorted(names):
        await reconcile_fold_work(db_session, head, name, now=event.now, settle_s=0)


async def _list_positions(
    db_session: DbSession, event: MessagesMoved, written: Sequence[asyncpg.Record]
) -> list[tuple[UUID, int, bool]]:
    """Return (entry_id, at_seq, hidden) of the entries that move along.

    An entry that depends on a reply follows its binding. An entry that a tool wrote before bindings existed has no
    binding, and moves like an entry of a person.
    """
    ids = [row["entry_id"] for row in written if row["depends"]]
    former = await bindings.list_positions(db_session, (event.head.chat_key, event.from_line_id), ids)
    positions = await bindings.list_positions(db_session, event.head.line, list(former))
    found = []
    for row in written:
        entry_id = row["entry_id"]
        if entry_id not in former:
            found.append((entry_id, event.seq_here(row["at_seq"]), False))
        elif entry_id in positions:
            found.append((entry_id, positions[entry_id].at_seq, not positions[entry_id].matches))
    return found


async def _reopen_unwritten(db_session: DbSession, head: Head, from_seq: int) -> int | None:
    """Reopen the last periods that lost their closing reply and have no entry; return the open period's first seq.

    A period has lost its closing reply if that message was deleted, or is no reply any more because its role or kind
    has changed. The unwritten entries of reopened periods are cancelled. If one of several characters already has its
    entry about a period, the period stays closed, so that periods do not overlap. Returns None if no period is open.

    A reply is often deleted to be generated again; the new reply then closes the reopened period. If the period stayed
    closed, the user's message would be in one period and the new reply in the next.
    """
    line, period = head.line, head.cursors[NAME].get("period")
    if not period:
        return None
    begins_seq, keys = OpenPeriod.from_json(period).first_seq, list[str]()
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, from_seq)
    if not writing:
        return begins_seq
    ends = sorted({row["last_seq"] for row in writing})
    found = await list_not_deleted(db_session, *line, [(end, end) for end in ends])
    closed = {message.seq for message in found if can_end_turn(message)}
    closed |= await change_queries.list_written_periods(db_session, line, ends)
    for row in sorted(writing, key=lambda row: (row["last_seq"], row["first_seq"]), reverse=True):
        if row["last_seq"] not in closed and row["last_seq"] + 1 == begins_seq:
            begins_seq = row["first_seq"]
        if row["first_seq"] == begins_seq:
            keys.append(row["key"])
    await unschedule(db_session, head, NAME, keys)
    return begins_seq


async def _write_again(db_session: DbSession, event: MessagesChanged) -> None:
    """Reschedule the unwritten entries about changed messages, including those that have failed for good.

    An entry that waits for the reply of an open call keeps its due time: its job reads the messages when it runs.
    """
    head, changed = event.head, event.changed_seqs
    if not changed:
        return
    items = []
    for row in await change_queries.list_writing(db_session, head.line, NAME, WRITE, changed[0]):
        if is_any_inside(changed, row["first_seq"], row["last_seq"]):
            character = row["key"].removeprefix(f"{WRITE}{row['first_seq']}:")
            items.append(writing_work(character, row["first_seq"], row["last_seq"], row["number"]))
    if items := await leave_out_waiting(db_session, head, items, now=event.now):
        await schedule(db_session, head, NAME, items, now=event.now, settle_s=event.settle_s)


async def _count_again(db_session: DbSession, head: Head, until_seq: int, *, at_most: int | None = None) -> None:
    """Count the turns of the open period again, up to `until_seq`; let the period begin at `at_most` or earlier."""
    cursor = head.cursors[NAME]
    if not cursor.get("period"):
        return
    filling = OpenPeriod.from_json(cursor["period"])
    first_seq = filling.first_seq if at_most is None else min(filling.first_seq, at_most)
    remaining = await list_not_deleted(db_session, *head.line, [(first_seq, until_seq)])
    cursor["period"] = count_turns(first_seq, remaining).to_json()
