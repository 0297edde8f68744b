"""What diaries do at an append, and what is due of a diary; what they do when messages change is in `changes.py`.

A line's cursor holds `number`, the highest that an entry was given, `period`, the turns that fill for the next entry of
the service, and `outdated`, whose diaries have changed since they were shown last: true for all. Entries of all diaries
share the numbers, so none is ever given twice. The service's has its number from the moment it is due, so that entries
stand in the order of the story, whichever is made first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.chats.events import MessagesAppended
from app.chats.scheduling import cancel_automatic, find_scheduled, schedule
from app.chats.service import Head, find_cache, update_cache
from app.diary import queries
from app.diary.folding import find_fold, step_hash
from app.diary.periods import OpenPeriod, Period, choose_writers, form_periods
from app.diary.queries import Written
from app.diary.settings import DiarySettings
from app.diary.wording import count_lines, cut_to_lines, word_date, word_diary, word_entry
from app.kit import work_queue
from app.kit.db import DbSession
from app.kit.tokens import count_tokens
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import Narrative

NAME = "diary"

FOLD = "fold:"
"""Due work is keyed by what is to be done: a diary folded, by the character's name;"""
WRITE = "write:"
"""an entry written, by the first message of its period and the name;"""
ENTRY = "entry:"
"""one written anew, by its id."""


@dataclass(frozen=True, slots=True)
class Diary:
    """The part of a diary that can be shown.

    Attributes:
        base: The newest version of what was folded that is true.
        folded: Its text; empty without one.
        entries: The newest entries that are not folded, in order.

    """

    base: Link | None
    folded: str
    entries: Sequence[Written]


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Form the periods that the new messages complete, and schedule the service's entries about them."""
    head = event.head
    settings = DiarySettings.of(head.settings)
    every_turns = settings.auto_write_turns if settings.enabled else None
    cursor = head.cursors.get(NAME)
    if every_turns is None:
        if cursor:
            cursor.pop("period", None)
        return
    cursor = head.cursors.setdefault(NAME, {"number": 0})
    stored = cursor.get("period")
    filling = OpenPeriod.from_json(stored) if stored else OpenPeriod(event.former_head_seq + 1)
    formed, filling = form_periods(filling, event.fresh, every_turns)
    cursor["period"] = filling.to_json()
    if formed:
        await _schedule_entries(db_session, head, formed, now=event.now, settle_s=event.settle_s)


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Write on the chat's row what goes into a character's prompt of each diary that has changed; mostly none has."""
    outdated = head.cursors.get(NAME, {}).pop("outdated", None)
    if not outdated:
        return
    line = head.line
    if outdated is True:
        names, told = await queries.list_names(db_session, line), {}
    else:
        names, told = outdated, (await find_cache(db_session, *line, NAME)).get("characters", {})
    time_zone = (await queries.read_cast(db_session, line)).time_zone
    for name in names:
        diary = await read_diary(db_session, head, name)
        shown = _show(diary, time_zone, DiarySettings.of(head.settings).lines)
        if shown:
            told[name] = shown
        else:
            told.pop(name, None)
    await update_cache(db_session, *line, NAME, {"characters": told} if told else None)


async def read_diary(db_session: DbSession, head: Head, character: str) -> Diary:
    """What can be shown of a diary; where diaries are off, what its character or a person wrote.

    As many entries as the diary may have lines are more than enough.
    """
    line, settings = head.line, DiarySettings.of(head.settings)
    base, folded = None, ""
    if settings.enabled:
        base = (await narratives.read_chain(db_session, line, narrative_of(character))).newest_true()
    if base:
        folded = await narratives.find_text(db_session.raw, line, narrative_of(character), base.version) or ""
    entries = await queries.list_newest(
        db_session,
        line,
        character,
        after_number=base.last_place if base else 0,
        limit=settings.lines,
        by_service=settings.enabled,
    )
    return Diary(base, folded, entries)


def find_last_folded(diary: Diary, limit: int) -> int | None:
    """The number of the last entry that is to be folded now, or None while the diary is short enough."""
    # The day takes as many characters in every zone, so lines can be counted without knowing it.
    lines = [(entry.number, count_lines(word_entry(entry.content, ""))) for entry in diary.entries]
    return find_fold(count_lines(diary.folded), lines, limit)


async def judge(
    db_session: DbSession, head: Head, character: str, *, now: datetime, settle_s: float, again: bool = True
) -> None:
    """Make a fold due if the diary is too long as it stands, or forget one that is due no more.

    One that is due waits again, as what it folds may have changed; not so with `again` false: a new entry at the end
    of the diary changes nothing of it. Whatever changes a diary has it judged, so from here on it is shown anew.
    """
    note_outdated(head, character)
    key = f"{FOLD}{character}"
    enabled = DiarySettings.of(head.settings).enabled
    diary = await read_diary(db_session, head, character) if enabled else None
    if diary is None or find_last_folded(diary, DiarySettings.of(head.settings).lines) is None:
        await cancel_automatic(db_session, head, NAME, [key])
        return
    work = None if again else await find_scheduled(db_session, head, NAME, key)
    if work is None or work.failed_at is not None:
        item = work_queue.NewWork(key=key, at_seq=diary.entries[0].at_seq)
        await schedule(db_session, head, NAME, [item], now=now, settle_s=settle_s)


async def note_entries(
    db_session: DbSession, head: Head, character: str, numbers: Sequence[int], *, now: datetime, settle_s: float
) -> None:
    """Entries say something else, or nothing any more: rewrite the hashes of the steps that hold them, judge anew."""
    line = head.line
    steps = await narratives.list_steps(db_session, line, NAME, min(numbers), max(numbers), subject=character)
    hashes = []
    for step in steps:
        entries = await queries.list_step(db_session, line, character, step.first_place, step.last_place)
        hashes.append((character, step.version, hash_of(entries)))
    await narratives.update_hashes(db_session, line, NAME, hashes)
    await judge(db_session, head, character, now=now, settle_s=settle_s)


def note_outdated(head: Head, character: str | None = None) -> None:
    """Have a diary be shown anew, or all of them; the head remembers it until that is done."""
    cursor = head.cursors.setdefault(NAME, {"number": 0})
    former = cursor.get("outdated") or []
    if character is None or former is True:
        cursor["outdated"] = True
    elif character not in former:
        cursor["outdated"] = [*former, character]


def take_number(head: Head) -> int:
    """The number of the next entry; the head remembers that it is given."""
    cursor = head.cursors.setdefault(NAME, {"number": 0})
    cursor["number"] += 1
    return int(cursor["number"])


def begin_period(head: Head) -> None:
    """Count the turns up to the service's next entry anew from here."""
    cursor = head.cursors.get(NAME)
    if cursor and cursor.get("period"):
        cursor["period"] = OpenPeriod(head.head_seq + 1).to_json()


def writing_work(character: str, first_seq: int, last_seq: int, number: int) -> work_queue.NewWork:
    """An entry of the service that is to be written about the messages of a period, both inclusive."""
    payload = {"first_seq": first_seq, "last_seq": last_seq, "number": number}
    return work_queue.NewWork(key=f"{WRITE}{first_seq}:{character}", at_seq=first_seq, payload=payload)


def hash_of(entries: Sequence[Written]) -> bytes:
    """What entries say, as a digest."""
    return step_hash((entry.number, entry.content) for entry in entries)


def narrative_of(character: str) -> Narrative:
    """What was folded of a character's diary."""
    return Narrative(NAME, character)


def _show(diary: Diary, time_zone: str, limit: int) -> dict[str, Any] | None:
    """The diary as the chat's row holds it; None for an empty one."""
    worded = [word_entry(entry.content, word_date(entry.dated_at, time_zone)) for entry in diary.entries]
    excerpt = cut_to_lines(diary.folded, worded, limit)
    text = word_diary(excerpt)
    if not text:
        return None
    version = diary.base.version if diary.base and excerpt.folded else None
    told = diary.entries[len(diary.entries) - len(excerpt.entries) :]
    folded = [] if version is None else [folded_source(version)]
    return {
        "text": text,
        "tokens": count_tokens(text),
        "sources": [*folded, *(f"diary:{entry.entry_id}" for entry in told)],
        "version": version,
    }


async def _schedule_entries(
    db_session: DbSession, head: Head, periods: Sequence[Period], *, now: datetime, settle_s: float
) -> None:
    """An entry for each character that spoke in a period, unless it wrote one itself meanwhile."""
    line = head.line
    characters = (await queries.read_cast(db_session, line)).characters
    items = [
        writing_work(name, turns.first_seq, turns.last_seq, take_number(head))
        for turns in await queries.list_turns(db_session, line, periods)
        for name in choose_writers(characters, turns.speakers)
        if name not in turns.wrote
    ]
    if items:
        await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)


def folded_source(version: int) -> str:
    """How the sources of a context name a version of what was folded."""
    return f"diary:folded:{version}"
