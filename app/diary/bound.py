"""Shows, hides and deletes the entries that characters wrote with their tool, when their replies arrive or change.

A call of the tool is *open* until the reply that it belongs to is appended. An entry takes a new number when its reply
arrives. So it is then the last of its diary, and no fold covers an entry that may never be shown.
"""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from app.bindings.events import BindingsChanged, Bound
from app.bindings.rule import quote
from app.chats.characters import list_active, list_names
from app.chats.head import Head
from app.chats.scheduling import unschedule
from app.diary import change_queries, queries
from app.diary.handlers import NAME, WRITE, begin_period, note_entries, take_number
from app.kit.db import DbSession
from app.lines.line_copy import Line


async def on_bindings(db_session: DbSession, event: BindingsChanged) -> None:
    """Update entries whose replies changed; folds that cover an entry that is hidden or shown again become stale."""
    head, line = event.head, event.head.line
    if event.dropped:
        await change_queries.drop_open(db_session, line, [one.binding_id for one in event.dropped])
    changed: dict[str, list[int]] = defaultdict(list)
    if event.bound:
        for character, number in await _bind(db_session, head, event.bound):
            changed[character].append(number)
    if event.toggled:
        rows = [(one.binding_id, not one.matches) for one in event.toggled]
        for row in await change_queries.hide(db_session, line, rows):
            changed[row["character"]].append(row["number"])
    for character in sorted(changed):
        numbers = changed[character]
        await note_entries(db_session, head, character, numbers, now=event.now, settle_s=event.settle_s)


async def describe_writes(db_session: DbSession, line: Line, entry_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return what each call of `save_memory` wrote, by its id: a sentence without its full stop."""
    found = await queries.list_contents(db_session, line, entry_ids)
    return {
        entry_id: f"Wrote {quote(content)} into the diary (entry {entry_id})" for entry_id, content in found.items()
    }


async def take_over(db_session: DbSession, head: Head, character: str, at_seq: int, *, is_open: bool = False) -> None:
    """Let an entry that the character writes itself replace the service's entry about the turns that include `at_seq`.

    The service's entry can already be scheduled, because the reply, or the message that makes the call, may have
    completed the turns. The turns that lead to the service's next entry are a period. A new period begins only when the
    reply has arrived: while the call is open, the reply may still be discarded. If the chat has other active
    characters, the period goes on, because their entries about it are still due.
    """
    writing = await change_queries.list_writing(db_session, head.line, NAME, WRITE, at_seq)
    keys = [row["key"] for row in writing if row["first_seq"] <= at_seq]
    own = [key for key in keys if key.removeprefix(WRITE).partition(":")[2] == character]
    await unschedule(db_session, head, NAME, own)
    cast = (await queries.read_cast(db_session, head.line)).characters
    if not is_open and set(list_names(list_active(cast))) <= {character}:
        begin_period(head, at_seq)


async def _bind(db_session: DbSession, head: Head, bound: Sequence[Bound]) -> list[tuple[str, int]]:
    """Place entries at the replies that have arrived; return the character and number of each."""
    rows = [(one.binding_id, one.at_seq, take_number(head), one.sent_at, not one.matches) for one in bound]
    found = await change_queries.bind(db_session, head.line, rows)
    for row in found:
        await take_over(db_session, head, row["character"], row["at_seq"])
    return [(row["character"], row["number"]) for row in found]
