"""Shows, hides and deletes the entries that characters wrote with their tool, when their replies arrive or change.

A call of the tool is *open* until the reply that it belongs to is appended. When the reply arrives, the call's entry
takes a new number and becomes the last one of its diary, unless a person has edited the entry. So a fold that was made
while the entry was hidden stays valid: it does not cover the new number. An entry that a person keeps is shown before
its reply arrives, so a fold can cover it already; the new number makes this fold stale.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.bindings.events import BindingsChanged, Bound
from app.bindings.rule import quote
from app.chats.characters import list_active, list_names
from app.chats.head import Head
from app.chats.scheduling import schedule, unschedule
from app.diary import change_queries, queries
from app.diary.handlers import NAME, WRITE, begin_period, note_entries, take_number, writing_work
from app.kit.db import DbSession
from app.kit.work_queue import NewWork
from app.lines.line_copy import Line

REPLY_WAIT_S = 600
"""The time in seconds for which an entry of the service waits for the reply of an open call."""


async def on_bindings(db_session: DbSession, event: BindingsChanged) -> None:
    """Delete entries whose calls were dropped, move entries to replies that arrived, hide entries or show them again.

    Folds become stale if they cover an entry that is hidden or shown again.
    """
    head, line = event.head, event.head.line
    if event.dropped:
        await _drop(db_session, event)
    changed: dict[str, list[int]] = defaultdict(list)
    if event.bound:
        for character, numbers in await _bind(db_session, head, event.bound):
            changed[character] += numbers
    if event.toggled:
        rows = [(one.binding_id, not one.matches) for one in event.toggled]
        for row in await change_queries.hide(db_session, line, rows):
            changed[row["character"]].append(row["number"])
    for character in sorted(changed):
        numbers = changed[character]
        await note_entries(db_session, head, character, numbers, now=event.now, settle_s=event.settle_s)


async def describe_writes(db_session: DbSession, line: Line, entry_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return, for the id of each entry, what its call of `save_memory` did: a sentence without its full stop."""
    found = await queries.list_contents(db_session, line, entry_ids)
    return {
        entry_id: f"Wrote {quote(content)} into the diary (entry {entry_id})" for entry_id, content in found.items()
    }


async def take_over(
    db_session: DbSession, head: Head, character: str, at_seq: int, *, turn_seq: int | None = None
) -> None:
    """Cancel the service's entry about the turns that include `at_seq`, because the character writes its own.

    The turns that an entry of the service is about are called a period. If a period ended with the reply at `at_seq`,
    the service's entry may be scheduled already. If the call came before the reply, an earlier message of the same turn
    can have ended a period, because a message that makes tool calls counts as a reply, too. So this function cancels
    each scheduled entry of the character that the service has not written yet, if it is about a message from `turn_seq`
    (as in `Bound`) to `at_seq`.

    If the chat has no other active character, a new period begins after the reply. If it has others, the open period
    goes on, because the service writes entries for them when the period ends.
    """
    first_seq = at_seq if turn_seq is None else min(turn_seq, at_seq)
    unwritten = await _list_unwritten(db_session, head, character, first_seq, at_seq)
    await unschedule(db_session, head, NAME, [item.key for item in unwritten])
    cast = (await queries.read_cast(db_session, head.line)).characters
    if set(list_names(list_active(cast))) <= {character}:
        begin_period(head, at_seq)


async def put_off(db_session: DbSession, head: Head, character: str, turn_seq: int, *, now: datetime) -> None:
    """Let the service's entry about the turns that include `turn_seq` wait for the reply of an open call.

    The entry is not cancelled yet, because the reply may still be discarded. It is cancelled when the reply arrives
    (`take_over`), and scheduled without the wait when the call is dropped. Further calls do not prolong the wait.
    """
    unwritten = await _list_unwritten(db_session, head, character, turn_seq, turn_seq)
    unwritten = await leave_out_waiting(db_session, head, unwritten, now=now)
    if unwritten:
        # `schedule` lets an existing item wait for at most MAX_WAIT_S (30 s), so the items are deleted first.
        await unschedule(db_session, head, NAME, [item.key for item in unwritten])
        await schedule(db_session, head, NAME, unwritten, now=now, settle_s=REPLY_WAIT_S)


async def leave_out_waiting(
    db_session: DbSession, head: Head, unwritten: Sequence[NewWork], *, now: datetime
) -> list[NewWork]:
    """Return those of the service's unwritten entries that do not wait for the reply of an open call.

    An entry is unwritten while it is only a work item (`changes.py`).
    """
    if not unwritten:
        return []
    keys = [item.key for item in unwritten]
    waiting = await change_queries.list_waiting(db_session, head.line, NAME, keys, now=now, wait_s=REPLY_WAIT_S)
    return [item for item in unwritten if item.key not in waiting]


async def _drop(db_session: DbSession, event: BindingsChanged) -> None:
    """Delete the entries of dropped calls, and schedule the service's entries that waited for the replies.

    Entries that a person edited or keeps are not deleted.
    """
    head, entry_ids = event.head, [one.binding_id for one in event.dropped]
    characters = await change_queries.list_characters(db_session, head.line, entry_ids)
    await change_queries.drop_open(db_session, head.line, entry_ids)
    for one in event.dropped:
        if (character := characters.get(one.binding_id)) is not None:
            unwritten = await _list_unwritten(db_session, head, character, one.turn_seq, one.turn_seq)
            if unwritten:
                await schedule(db_session, head, NAME, unwritten, now=event.now, settle_s=event.settle_s)


async def _bind(db_session: DbSession, head: Head, bound: Sequence[Bound]) -> list[tuple[str, Sequence[int]]]:
    """Place entries at the replies that have arrived; return the character, and the former and the new number.

    An entry that a person edited keeps its place. But like the others, it replaces the service's entry (`take_over`).
    """
    rows = [(one.binding_id, one.at_seq, take_number(head), one.sent_at, not one.matches) for one in bound]
    found = await change_queries.bind(db_session, head.line, rows)
    characters = await change_queries.list_characters(db_session, head.line, [one.binding_id for one in bound])
    for one in bound:
        if (character := characters.get(one.binding_id)) is not None:
            await take_over(db_session, head, character, one.at_seq, turn_seq=one.turn_seq)
    return [(row["character"], (row["former_number"], row["number"])) for row in found]


async def _list_unwritten(
    db_session: DbSession, head: Head, character: str, first_seq: int, last_seq: int
) -> list[NewWork]:
    """Return the work items of a character's unwritten entries about any message between two seqs (both inclusive)."""
    return [
        writing_work(character, row["first_seq"], row["last_seq"], row["number"])
        for row in await change_queries.list_writing(db_session, head.line, NAME, WRITE, first_seq)
        if row["first_seq"] <= last_seq and row["key"] == f"{WRITE}{row['first_seq']}:{character}"
    ]
