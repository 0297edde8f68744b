"""How diaries stay true to messages that change: the service's entries are written anew, folds made again.

What a character wrote by its tool, or a person, was never made from messages: it stays, whatever becomes of them; but
where the line is cut off before it, the character has not written it in this course of the story.
"""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
import orjson

from app.chats.changes import Change, Move, Shortening, says_otherwise
from app.chats.due_work import delete_due, forget_unasked, make_due
from app.chats.eligibility import Filters
from app.chats.ranges import inside_of, is_any_inside
from app.chats.service import Head, hash_eligible, list_living
from app.diary import change_queries, queries
from app.diary.layer import (
    ENTRY,
    NAME,
    WRITE,
    judge,
    narrative_of,
    note_entries,
    note_outdated,
    writing_due,
)
from app.diary.naming import adopt_nameless
from app.diary.periods import OpenPeriod, count_turns
from app.kit import due
from app.kit.db import DbSession
from app.narratives import service as narratives


async def note_change(db_session: DbSession, change: Change, *, settle_s: float) -> None:
    """Rewrite the hashes of the entries that were written from changed messages; those that have gone stale are due."""
    head = change.head
    if NAME not in head.cursors:
        return
    if head.settings.diary.enabled:
        await _write_again(db_session, change, settle_s=settle_s)
    deleted = [after.seq for before, after in change.pairs if before.deleted != after.deleted]
    if deleted:
        begins_seq = await _reopen_unwritten(db_session, head, deleted[0])
        await _count_again(db_session, head, head.head_seq, at_most=begins_seq)
    line = head.line
    touched = await change_queries.list_touched(db_session, line, [after.seq for _, after in change.pairs])
    changed = [(row, says) for row, says in await _read_again(db_session, head, touched) if says != row["current_hash"]]
    if not changed:
        return
    await change_queries.update_hashes(db_session, line, [(row["entry_id"], says) for row, says in changed])
    unwritten = [(row, says) for row, says in changed if not row["edited"]]
    stale = [_entry_due(row) for row, says in unwritten if says != row["source_hash"]]
    mended = [f"{ENTRY}{row['entry_id']}" for row, says in unwritten if says == row["source_hash"]]
    if mended:
        await forget_unasked(db_session, head, NAME, mended)
    if stale and head.settings.diary.enabled:
        await make_due(db_session, head, NAME, stale, now=change.now, settle_s=settle_s)
    for name in sorted({row["character"] for row, _ in unwritten}):
        numbers = [row["number"] for row, _ in unwritten if row["character"] == name]
        await note_entries(db_session, head, name, numbers, now=change.now, settle_s=settle_s)


async def catch_up(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Make due what was neither folded nor written anew while diaries were switched off, or had room for more lines.

    The chat may also have got another time zone, so that all days are others, or a name for its character.
    """
    if NAME not in head.cursors:
        return
    line = head.line
    note_outdated(head)
    await adopt_nameless(db_session, head, now=now, settle_s=settle_s)
    if head.settings.diary.enabled:
        stale = [_entry_due(row) for row in await change_queries.list_unnoticed(db_session, line, NAME, ENTRY)]
        if stale:
            await make_due(db_session, head, NAME, stale, now=now, settle_s=settle_s)
    for name in await queries.list_names(db_session, line):
        await judge(db_session, head, name, now=now, settle_s=settle_s, again=False)


async def reopen(db_session: DbSession, cut_off: Shortening, *, settle_s: float) -> None:
    """Forget what was written from where the line was cut off on; what a person wrote or edited moves to the new head.

    Folds that tell of any of it go, and the period that the cut goes through fills again from its start. A copy of the
    line that ends here never had the later entries, nor maybe the current fold; so no diary is left out.
    """
    head, from_seq = cut_off.head, cut_off.from_seq
    if NAME not in head.cursors:
        return
    line = head.line
    reaching = await change_queries.list_reaching(db_session, line, from_seq)
    gone = await change_queries.cut_off(db_session, line, from_seq)
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, from_seq)
    keys = [*(f"{ENTRY}{entry_id}" for entry_id in gone.entry_ids), *(row["key"] for row in writing)]
    await delete_due(db_session, head, NAME, keys)
    firsts = [*gone.first_seqs, *(row["first_seq"] for row in writing), from_seq]
    await _count_again(db_session, head, from_seq - 1, at_most=min(firsts))
    note_outdated(head)
    behind_all = head.cursors[NAME]["number"] + 1
    for name in sorted({*reaching, *await queries.list_names(db_session, line)}):
        number = reaching.get(name, behind_all)
        await narratives.cut_off(db_session, line, narrative_of(name), number, begins_seq=from_seq - 1)
        await judge(db_session, head, name, now=cut_off.now, settle_s=settle_s, again=name in reaching)


async def bring_along(db_session: DbSession, move: Move) -> None:
    """Take over what characters and people wrote behind the messages that kept their places, to where these stand now.

    A character's tool is not called again for messages that have only moved, so its entries go with them; the
    service's are written anew.
    """
    head = move.head
    if NAME not in head.cursors:
        return
    line = head.line
    written = await change_queries.list_written_after(db_session, (line[0], move.from_line_id), move.kept_seq)
    if written:
        places = [(row["entry_id"], move.seq_here(row["at_seq"])) for row in written]
        names = await change_queries.copy_written(db_session, line, move.from_line_id, places)
        for name in sorted(names):
            await judge(db_session, head, name, now=move.now, settle_s=0)


async def _reopen_unwritten(db_session: DbSession, head: Head, from_seq: int) -> int | None:
    """Forget what is still to be written about the last periods whose closing reply is gone; returns where they begin.

    A reply that is deleted to be made anew closes its period again when it comes; without this its question would be
    in one period and the new reply in the next.
    """
    line, period = head.line, head.cursors[NAME].get("period")
    if not period:
        return None
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, from_seq)
    ends = sorted({(row["last_seq"], row["last_seq"]) for row in writing})
    closed = {message.seq for message in await list_living(db_session, *line, ends)} if ends else set()
    begins_seq, keys = OpenPeriod.from_json(period).first_seq, []
    for row in sorted(writing, key=lambda row: (row["last_seq"], row["first_seq"]), reverse=True):
        if row["last_seq"] not in closed and row["last_seq"] + 1 == begins_seq:
            begins_seq = row["first_seq"]
        if row["first_seq"] == begins_seq:
            keys.append(row["key"])
    await delete_due(db_session, head, NAME, keys)
    return begins_seq


async def _write_again(db_session: DbSession, change: Change, *, settle_s: float) -> None:
    """Have entries that are still to be written about changed messages wait again, also those that failed for good."""
    head = change.head
    changed = [pair[1].seq for pair in change.pairs if says_otherwise(pair)]
    if not changed:
        return
    items = []
    for row in await change_queries.list_writing(db_session, head.line, NAME, WRITE, changed[0]):
        if is_any_inside(changed, row["first_seq"], row["last_seq"]):
            character = row["key"].removeprefix(f"{WRITE}{row['first_seq']}:")
            items.append(writing_due(character, row["first_seq"], row["last_seq"], row["number"]))
    if items:
        await make_due(db_session, head, NAME, items, now=change.now, settle_s=settle_s)


async def _count_again(db_session: DbSession, head: Head, until_seq: int, *, at_most: int | None = None) -> None:
    """Count the turns of the period that fills by its messages up to `until_seq`; it begins `at_most` there."""
    cursor = head.cursors[NAME]
    if not cursor.get("period"):
        return
    filling = OpenPeriod.from_json(cursor["period"])
    first_seq = filling.first_seq if at_most is None else min(filling.first_seq, at_most)
    living = await list_living(db_session, *head.line, [(first_seq, until_seq)])
    cursor["period"] = count_turns(first_seq, living).to_json()


async def _read_again(
    db_session: DbSession, head: Head, touched: Sequence[asyncpg.Record]
) -> list[tuple[asyncpg.Record, bytes]]:
    """What the messages of each entry say now, as a digest."""
    ranges = sorted({(row["first_seq"], row["last_seq"]) for row in touched})
    living = await list_living(db_session, *head.line, ranges) if ranges else []
    found = []
    for row in touched:
        filters = Filters.from_json(orjson.loads(row["filters"]))
        found.append((row, hash_eligible(inside_of(living, row["first_seq"], row["last_seq"]), filters)))
    return found


def _entry_due(row: asyncpg.Record) -> due.Due:
    return due.Due(key=f"{ENTRY}{row['entry_id']}", at_seq=row["at_seq"])
