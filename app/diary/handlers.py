"""Handles appends, caches the prompt text of diaries, and schedules folds; `changes.py` handles changed messages.

A line's cursor has three fields. `number` is the highest number of an entry. `period` is the open period, whose turns
lead to the next entry of the service. `outdated` lists the characters whose diaries have changed since they were
cached; true means all. The diaries of a line share the numbers, so no number is used twice. An entry of the service
gets its number when it is scheduled, so that entries are in story order, whichever is written first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.chats.events import MessagesAppended
from app.chats.head import Head
from app.chats.heads import find_cache, update_cache
from app.chats.scheduling import cancel_automatic, find_scheduled, schedule
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
"""The prefix of the work keys of folds: `fold:<character>`."""
WRITE = "write:"
"""The prefix of the work keys of new entries: `write:<first seq of the period>:<character>`."""
ENTRY = "entry:"
"""The prefix of the work keys of stale entries: `entry:<entry_id>`."""


@dataclass(frozen=True, slots=True)
class Diary:
    """The part of a diary that can be shown.

    Attributes:
        base: The latest valid version of the folded part; None if there is none.
        folded: Its text; empty if there is none.
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
    after = [message for message in event.fresh if message.seq >= filling.first_seq]
    formed, filling = form_periods(filling, after, every_turns)
    cursor["period"] = filling.to_json()
    if formed:
        await _schedule_entries(db_session, head, formed, now=event.now, settle_s=event.settle_s)


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Store the prompt text of each diary that has changed on the line's row; usually none has."""
    outdated = head.cursors.get(NAME, {}).pop("outdated", None)
    if not outdated:
        return
    line = head.line
    if outdated is True:
        names, included = await queries.list_names(db_session, line), {}
    else:
        names, included = outdated, (await find_cache(db_session, *line, NAME)).get("characters", {})
    time_zone = (await queries.read_cast(db_session, line)).time_zone
    for name in names:
        diary = await read_diary(db_session, head, name)
        shown = _show(diary, time_zone, DiarySettings.of(head.settings).lines)
        if shown:
            included[name] = shown
        else:
            included.pop(name, None)
    await update_cache(db_session, *line, NAME, {"characters": included} if included else None)


async def read_diary(db_session: DbSession, head: Head, character: str) -> Diary:
    """Return the part of a diary that can be shown; if diaries are off, the entries that its character or people wrote.

    Reads at most as many entries as the diary may show lines, because an entry has at least one.
    """
    line, settings = head.line, DiarySettings.of(head.settings)
    base, folded = None, ""
    if settings.enabled:
        base = (await narratives.read_chain(db_session, line, narrative_of(character))).latest_valid()
    if base:
        folded = await narratives.find_text(db_session.raw, line, narrative_of(character), base.version) or ""
    entries = await queries.list_newest(
        db_session,
        line,
        character,
        after_number=base.last_unit if base else 0,
        limit=settings.lines,
        by_service=settings.enabled,
    )
    return Diary(base, folded, entries)


def find_last_folded(diary: Diary, limit: int) -> int | None:
    """Return the number of the last entry to fold now, or None if the diary is short enough."""
    # The date does not affect the number of lines, so it is left out.
    lines = [(entry.number, count_lines(word_entry(entry.content, ""))) for entry in diary.entries]
    return find_fold(count_lines(diary.folded), lines, limit)


async def reconcile_fold_work(
    db_session: DbSession, head: Head, character: str, *, now: datetime, settle_s: float, again: bool = True
) -> None:
    """Schedule a fold if the diary is too long, or cancel the scheduled one; mark the diary's cached text as outdated.

    A fold that is already scheduled waits again, because the entries that it folds may have changed. With `again` false
    it does not: a new entry at the end of the diary does not change them.
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
    """Update the hashes of the folds that cover changed entries, and schedule a fold if one is due.

    `numbers` are those of the entries that were added, changed or deleted.
    """
    line = head.line
    steps = await narratives.list_steps(db_session, line, NAME, min(numbers), max(numbers), subject=character)
    hashes = []
    for step in steps:
        entries = await queries.list_step(db_session, line, character, step.first_unit, step.last_unit)
        hashes.append((character, step.version, hash_of(entries)))
    await narratives.update_hashes(db_session, line, NAME, hashes)
    await reconcile_fold_work(db_session, head, character, now=now, settle_s=settle_s)


def note_outdated(head: Head, character: str | None = None) -> None:
    """Mark the cached text of a diary, or of all diaries, as outdated until `refresh_cache` runs."""
    cursor = head.cursors.setdefault(NAME, {"number": 0})
    former = cursor.get("outdated") or []
    if character is None or former is True:
        cursor["outdated"] = True
    elif character not in former:
        cursor["outdated"] = [*former, character]


def take_number(head: Head) -> int:
    """Return the number of the next entry, and store on the head that it is used."""
    cursor = head.cursors.setdefault(NAME, {"number": 0})
    cursor["number"] += 1
    return int(cursor["number"])


def begin_period(head: Head, at_seq: int) -> None:
    """Begin a new period after a message: the turns up to it do not count for the service's next entry.

    Nothing changes for a message before the open period.
    """
    cursor = head.cursors.get(NAME)
    period = cursor.get("period") if cursor else None
    if cursor and period and at_seq >= OpenPeriod.from_json(period).first_seq:
        cursor["period"] = OpenPeriod(at_seq + 1).to_json()


def writing_work(character: str, first_seq: int, last_seq: int, number: int) -> work_queue.NewWork:
    """Return the work item of an entry that the service writes about the messages of a period, both inclusive."""
    payload = {"first_seq": first_seq, "last_seq": last_seq, "number": number}
    return work_queue.NewWork(key=f"{WRITE}{first_seq}:{character}", at_seq=first_seq, payload=payload)


def hash_of(entries: Sequence[Written]) -> bytes:
    """Return the hash of the numbers and texts of entries."""
    return step_hash((entry.number, entry.content) for entry in entries)


def narrative_of(character: str) -> Narrative:
    """Return the narrative that holds the folded part of a character's diary."""
    return Narrative(NAME, character)


def _show(diary: Diary, time_zone: str, limit: int) -> dict[str, Any] | None:
    """Return the diary as it is cached on the line's row, or None if it is empty."""
    entries = [word_entry(entry.content, word_date(entry.dated_at, time_zone)) for entry in diary.entries]
    excerpt = cut_to_lines(diary.folded, entries, limit)
    text = word_diary(excerpt)
    if not text:
        return None
    version = diary.base.version if diary.base and excerpt.folded else None
    included = diary.entries[len(diary.entries) - len(excerpt.entries) :]
    folded = [] if version is None else [folded_source(version)]
    return {
        "text": text,
        "tokens": count_tokens(text),
        "sources": [*folded, *(f"diary:{entry.entry_id}" for entry in included)],
        "version": version,
    }


async def _schedule_entries(
    db_session: DbSession, head: Head, periods: Sequence[Period], *, now: datetime, settle_s: float
) -> None:
    """Schedule an entry for each character that spoke in a period, unless the character wrote one itself in it."""
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
    """Return the name of a version of the folded part in the sources of a context."""
    return f"diary:folded:{version}"
