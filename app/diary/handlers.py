"""Handles appends, caches the prompt text of diaries, and schedules folds; `changes.py` handles changed messages.

The layer's cursor on a line's head has three fields. `number` is the highest number of an entry. `period` is the open
period (`app/layers/turns.py`): when it has enough turns, the service writes entries about it. `outdated` lists the
characters whose diaries have changed since they were cached; true means that all have changed, and `cut` that only the
anchor has moved. The anchor is the seq at which the history begins; a cut moves it.

The diaries of a line share the numbers, so no number is used twice. An entry of the service gets its number when it is
scheduled, so that entries are in story order, even if a later one is written first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.chats.characters import list_names
from app.chats.events import AnchorMoved, MessagesAppended
from app.chats.head import Head
from app.chats.heads import find_cache, update_cache
from app.chats.scheduling import cancel_automatic, find_scheduled, schedule
from app.diary import queries
from app.diary.folding import find_fold, step_hash
from app.diary.held import Held, find_held, find_lost, hold, word_held, word_recent
from app.diary.settings import DiarySettings
from app.diary.shared.merging import Own
from app.diary.shared.service import hold_shared, note_shared
from app.diary.wording import Written, count_lines, word_entry
from app.diary.writers import choose_writers
from app.kit import work_queue
from app.kit.db import DbSession
from app.kit.wire import MAX_SEQ
from app.layers.turns import OpenPeriod, Period, form_periods
from app.narratives import service as narratives
from app.narratives.chain import Chain, Link
from app.narratives.service import Narrative

NAME = "diary"

FOLD = "fold:"
"""The prefix of the work keys of folds: `fold:<character>`."""
WRITE = "write:"
"""The prefix of the work keys of new entries: `write:<first seq of the period>:<character>`."""
ENTRY = "entry:"
"""The prefix of the work keys of stale entries: `entry:<entry_id>`."""


_BY_CUT = "cut"
"""The value of `outdated` if nothing has changed but the anchor."""

MOST_RECENT = 100
"""The maximum number of entries that are read for `diary_recent`: more than its lines can show.

Entries that are not shown are read only to count their tokens."""


@dataclass(frozen=True, slots=True)
class Diary:
    """The valid part of a diary.

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


async def on_cut(_db_session: DbSession, event: AnchorMoved) -> None:
    """Mark all cached texts as outdated: entries about messages that left the history move to the segment `diary`."""
    head = event.head
    if NAME in head.cursors or DiarySettings.of(head.settings).is_shared:
        is_first = not head.cursors.get(NAME, {}).get("outdated")
        note_outdated(head)
        if is_first:
            head.cursors[NAME]["outdated"] = _BY_CUT


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Make the prompt texts of each changed diary again, and store them on the line's row; usually none has changed.

    If the anchor has moved since the texts were cached, the content of the segment `diary` is chosen again. Before the
    first message it is chosen again after every change, because no provider can have cached a prompt yet. Early
    releases stored no anchor, and put all entries into `diary`; these entries stay there until the next cut.
    """
    outdated = head.cursors.get(NAME, {}).pop("outdated", None)
    if not outdated:
        return
    line = head.line
    cached = await find_cache(db_session, *line, NAME)
    former = cached.get("characters", {})
    stays = cached.get("anchor_seq") == head.anchor_seq and head.head_seq > 0
    is_partial = stays and isinstance(outdated, list)
    before_seq = head.anchor_seq if "anchor_seq" in cached or not former else None
    cast = await queries.read_cast(db_session, line)
    is_shared = DiarySettings.of(head.settings).is_shared and cast.user_key is not None
    if outdated != _BY_CUT:
        note_shared(db_session, cast.user_key, former, is_shared=is_shared)
    names = outdated if is_partial else await queries.list_names(db_session, line)
    if is_shared and not is_partial:
        names = list(dict.fromkeys([*names, *list_names(cast.characters)]))
    texts = dict(former) if is_partial else {}
    present = {*former, *names} if is_partial else names
    for name in names:
        held = find_held(former, name, present) if stays else None
        own, texts[name] = await _word_texts(db_session, head, name, held, before_seq, cast.time_zone)
        if is_shared:
            chosen = former.get(name, {}).get("shared") if stays else None
            is_first = not cached and isinstance(outdated, list)
            texts[name] = await hold_shared(db_session, head, name, own, texts[name], chosen, is_first=is_first)
    await update_cache(db_session, *line, NAME, {"anchor_seq": head.anchor_seq, "characters": texts} if texts else None)


async def _word_texts(
    db_session: DbSession, head: Head, character: str, held: Held | None, before_seq: int | None, time_zone: str
) -> tuple[Own, dict[str, Any]]:
    """Return the entries of a diary one by one (for merging with other chats), and its texts as they are cached.

    The cached form says what the segment `diary` holds (`held.py`). `held` is what the segment has held so far, or None
    at a cut; see `_choose`.
    """
    line, settings = head.line, DiarySettings.of(head.settings)
    chain = Chain()
    if settings.enabled:
        from_unit = min(held.covered, held.lost.covered if held.lost else held.covered) + 1 if held else MAX_SEQ
        chain = await narratives.read_chain(db_session, line, narrative_of(character), from_unit=from_unit)
    held = await _choose(db_session, head, character, held, chain, before_seq)
    base = chain.find_valid(held.version) if held.version is not None else None
    folded = await find_folded(db_session, line, character, base)
    holds = await queries.list_numbered(db_session, line, character, held.numbers, by_service=settings.enabled)
    recent = await queries.list_newest(
        db_session,
        line,
        character,
        after_number=held.after,
        without=held.numbers,
        limit=MOST_RECENT,
        by_service=settings.enabled,
    )
    texts: dict[str, Any] = {"held": held.to_json()}
    if segment := word_held(held.version, folded, holds, time_zone, settings.lines):
        last_seq = max((entry.at_seq for entry in holds), default=0)
        if segment["version"] is not None:
            last_seq = max(last_seq, await queries.find_last_seq(db_session, line, character, 1, held.covered))
        texts |= segment | {"last_seq": last_seq}
    if segment := word_recent(recent, time_zone):
        texts["recent"] = segment
    return Own.of(time_zone, held.version, folded, holds, recent, settings.lines), texts


async def _choose(
    db_session: DbSession, head: Head, character: str, held: Held | None, chain: Chain, before_seq: int | None
) -> Held:
    """Return what `diary` holds from now on; `held` is what it has held so far, None at a cut.

    If the version in `held` is still valid, the content stays. Otherwise it is chosen again, from the latest valid
    version and the entries before `before_seq` (all entries if `before_seq` is None). If a fold is due that will
    replace the invalid version, this choice is provisional (`Held.lost`): it ends when the invalid version is valid
    again, or when that fold is made (`held.py`).
    """
    settings, newest = DiarySettings.of(head.settings), chain.latest_valid()
    is_valid = held is not None and (held.version is None or chain.find_valid(held.version) is not None)
    if held and is_valid and not settings.enabled:
        return held
    lost = find_lost(held, chain, is_valid=is_valid) if settings.enabled else None
    if lost and lost.version is not None and chain.find_valid(lost.version):
        return lost
    is_awaited = lost is not None and (newest is None or newest.last_unit < lost.covered)
    if is_awaited:
        latest = await _read_from(db_session, head, character, newest)
        is_awaited = find_last_folded(latest, settings.lines) is not None
    if held and is_valid and (is_awaited or held.lost is None):
        return replace(held, lost=lost)
    diary = await _read_from(db_session, head, character, newest, before_seq=before_seq)
    version, covered = (newest.version, newest.last_unit) if newest else (None, 0)
    chosen = hold(version, diary.folded, covered, diary.entries, settings.lines)
    return replace(chosen, lost=lost if is_awaited else None)


async def read_diary(db_session: DbSession, head: Head, character: str) -> Diary:
    """Return the valid part of a diary; if diaries are off, the entries that its character or people wrote.

    Reads at most `diary.lines` entries, because each entry has at least one line.
    """
    base = None
    if DiarySettings.of(head.settings).enabled:
        base = (await narratives.read_chain(db_session, head.line, narrative_of(character))).latest_valid()
    return await _read_from(db_session, head, character, base)


async def _read_from(
    db_session: DbSession, head: Head, character: str, base: Link | None, *, before_seq: int | None = None
) -> Diary:
    """Return a version of the folded part with the newest entries that it does not cover; see `read_diary`.

    If `before_seq` is given, only entries before it are read.
    """
    settings = DiarySettings.of(head.settings)
    entries = await queries.list_newest(
        db_session,
        head.line,
        character,
        after_number=base.last_unit if base else 0,
        before_seq=before_seq,
        limit=settings.lines,
        by_service=settings.enabled,
    )
    return Diary(base, await find_folded(db_session, head.line, character, base), entries)


async def find_folded(db_session: DbSession, line: queries.Line, character: str, base: Link | None) -> str:
    """Return the text of a version of the folded part; "" without one."""
    if base is None:
        return ""
    return await narratives.find_text(db_session.raw, line, narrative_of(character), base.version) or ""


def find_last_folded(diary: Diary, limit: int) -> int | None:
    """Return the number of the last entry to fold now, or None if the diary is short enough."""
    # The date does not affect the number of lines, so it is left out.
    lines = [(entry.number, count_lines(word_entry(entry.content, ""))) for entry in diary.entries]
    return find_fold(count_lines(diary.folded), lines, limit)


async def reconcile_fold_work(
    db_session: DbSession, head: Head, character: str, *, now: datetime, settle_s: float, again: bool = True
) -> None:
    """Schedule a fold if the diary is too long, or cancel the scheduled one; mark the diary's cached text as outdated.

    A fold that is already scheduled waits for `settle_s` again, because the entries that it folds may have changed.
    If `again` is false, this fold keeps its time: a new entry at the end of the diary, for example, does not change the
    entries to fold. A fold that a person requested is not cancelled.
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
    if character is None or former in (True, _BY_CUT):
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

    If the message is before the open period, nothing changes.
    """
    cursor = head.cursors.get(NAME)
    period = cursor.get("period") if cursor else None
    if cursor and period and at_seq >= OpenPeriod.from_json(period).first_seq:
        cursor["period"] = OpenPeriod(at_seq + 1).to_json()


def writing_work(character: str, first_seq: int, last_seq: int, number: int) -> work_queue.NewWork:
    """Return the work item of an entry that the service writes about a period; both seqs are inclusive."""
    payload = {"first_seq": first_seq, "last_seq": last_seq, "number": number}
    return work_queue.NewWork(key=f"{WRITE}{first_seq}:{character}", at_seq=first_seq, payload=payload)


def hash_of(entries: Sequence[Written]) -> bytes:
    """Return the hash of the numbers and texts of entries."""
    return step_hash((entry.number, entry.content) for entry in entries)


def narrative_of(character: str) -> Narrative:
    """Return the narrative that holds the folded part of a character's diary."""
    return Narrative(NAME, character)


async def _schedule_entries(
    db_session: DbSession, head: Head, periods: Sequence[Period], *, now: datetime, settle_s: float
) -> None:
    """Schedule an entry for each active character that spoke in a period and did not write an entry itself in it."""
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
