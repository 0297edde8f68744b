"""Moves the diary of a renamed character, or the unnamed diary, to another name.

A chat that names no characters has an *unnamed diary*, stored under the name "". Once the chat has exactly one active
character, the unnamed diary becomes that character's.

Entries keep their numbers, and the folded part moves along. If the new name has a diary already, the entries of both
diaries are merged in the order of their numbers, and folds that lack some of these entries are made again.
"""

from collections.abc import Sequence
from datetime import datetime

from app.chats.characters import find_sole
from app.chats.events import CharacterRenamed
from app.chats.head import Head
from app.chats.heads import find_cache, update_cache
from app.chats.revision import WORK, record
from app.chats.scheduling import schedule, unschedule
from app.diary import change_queries, queries
from app.diary.handlers import ENTRY, FOLD, NAME, WRITE, narrative_of, note_entries, note_outdated, writing_work
from app.kit.db import DbSession, defer
from app.kit.work_queue import WorkScheduled
from app.narratives import service as narratives


async def adopt_nameless(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Move the unnamed diary, and its scheduled work, to the chat's sole character, if the chat has one now."""
    line = head.line
    character = find_sole((await queries.read_cast(db_session, line)).characters)
    if character is None:
        return
    await _move_work(db_session, head, character, now=now, settle_s=settle_s)
    numbers = await change_queries.name_entries(db_session, line, character)
    if not numbers:
        return
    await narratives.rename_subject(db_session, line, narrative_of(""), narrative_of(character))
    everything = [1, head.cursors[NAME]["number"]]
    await note_entries(db_session, head, character, everything, now=now, settle_s=settle_s)


async def on_rename(db_session: DbSession, event: CharacterRenamed) -> None:
    """Move the diary of a renamed character, and rename its scheduled work."""
    head, former, name = event.head, event.former, event.name
    if NAME not in head.cursors:
        return
    line = head.line
    has_own = await change_queries.has_diary(db_session, line, name)
    rows = await change_queries.rename_entries(db_session, line, former, name)
    await narratives.rename_subject(db_session, line, narrative_of(former), narrative_of(name))
    is_joined = has_own and bool(rows)
    if not is_joined:
        await _rename_cached(db_session, head, former, name)
    note_outdated(head)
    if is_joined:
        await unschedule(db_session, head, NAME, [f"{FOLD}{former}", f"{FOLD}{name}"])
    await _rename_work(db_session, event, [f"{ENTRY}{row['entry_id']}" for row in rows])
    if is_joined:
        numbers = [row["number"] for row in rows]
        await note_entries(db_session, head, name, numbers, now=event.now, settle_s=event.settle_s)


async def _rename_cached(db_session: DbSession, head: Head, former: str, name: str) -> None:
    """Move the cached texts of a diary to another name, so that contexts keep the same texts until the next cut."""
    cached = await find_cache(db_session, *head.line, NAME)
    texts = cached.get("characters", {})
    if former in texts:
        texts[name] = texts.pop(former)
        await update_cache(db_session, *head.line, NAME, cached)


async def _rename_work(db_session: DbSession, event: CharacterRenamed, same: Sequence[str]) -> None:
    """Rename the work items of folds and of unwritten entries.

    Running attempts at these items, and at the items with the keys in `same`, lose their lease and begin again. A
    character that has left the chat may have had the new name. If that character has an unwritten entry about the same
    messages, the entry is cancelled, because two items would have the same key.
    """
    head = event.head
    record(db_session, head.line, WORK)
    writing = await change_queries.list_writing(db_session, head.line, NAME, WRITE, 0)
    prefixes = {
        f"{WRITE}{row['first_seq']}:" for row in writing if row["key"] == f"{WRITE}{row['first_seq']}:{event.former}"
    }
    await unschedule(db_session, head, NAME, [f"{prefix}{event.name}" for prefix in prefixes])
    moved = [(f"{prefix}{event.former}", f"{prefix}{event.name}") for prefix in (FOLD, *prefixes)]
    await change_queries.rename_work(db_session, head.line, NAME, [*moved, *((key, key) for key in same)])
    defer(db_session, WorkScheduled())


async def _move_work(db_session: DbSession, head: Head, character: str, *, now: datetime, settle_s: float) -> None:
    """Schedule the unwritten entries of the unnamed diary for the character, and cancel the unnamed diary's fold."""
    line = head.line
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, 0)
    unnamed = [row for row in writing if row["key"] == f"{WRITE}{row['first_seq']}:"]
    keys = [FOLD, *(row["key"] for row in unnamed)]
    await unschedule(db_session, head, NAME, keys)
    if unnamed:
        items = [writing_work(character, row["first_seq"], row["last_seq"], row["number"]) for row in unnamed]
        await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)
