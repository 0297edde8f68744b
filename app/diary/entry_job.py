"""The jobs that write for a character: an entry about the last turns, and one anew whose messages have changed.

Only a model can write in somebody's voice, so without one they write nothing.
"""

from dataclasses import dataclass
from uuid import UUID

from app.chats.service import Filters, Head, hash_eligible, list_living, lock_line, read_head
from app.diary import queries
from app.diary.asking import NAMELESS, EntryDraft, ask_for_entry
from app.diary.layer import note_entries
from app.diary.models import DiaryEntry
from app.diary.whose import is_active
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.ids import uuid7
from app.kit.workbench import Workbench
from app.summarising.source import Source, read_source

REREAD_ENTRIES = 5
"""How many of the last entries a character rereads before it writes."""

_CHANGED = "its messages changed while it was being written"


@dataclass(frozen=True, slots=True)
class _Period:
    """Messages to write about, as a character has lived them."""

    number: int
    first_seq: int
    last_seq: int
    filters: Filters
    source: Source


async def write_entry(bench: Workbench, claimed: Claimed, character: str) -> bool:
    """Write the entry that is due, if anything mattered; says whether a model answered. Raises ModelError."""
    period = await _read_period(bench, claimed, character) if bench.model else None
    draft = None
    if period is not None:
        draft = await _draft(bench, claimed, character, period.source, before_number=period.number)
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or period is None or draft is None:
            await finish(db_session, claimed)  # the chat is gone, nobody is there to write, or nothing to write about
        elif await holds_lease(db_session, claimed):
            await _save_new(bench, db_session, head, claimed, character, period, draft)
    return draft is not None


async def rewrite_entry(bench: Workbench, claimed: Claimed, entry_id: UUID) -> bool:
    """Write a stale entry anew; it is empty where nothing is left that its character said. Raises ModelError."""
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, *line)
        entry = await queries.find_service_entry(db_session, line, entry_id)
        source = await _read_stale(db_session, line, entry) if entry and head and head.settings.diary.enabled else None
    draft = None
    if entry is not None and source is not None:
        if not _speaks(source, entry.character):
            draft = EntryDraft(None, None, None)
        elif bench.model is not None:
            draft = await _draft(bench, claimed, entry.character, source, before_number=entry.number)
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, *line)
        if head is None or source is None or draft is None:
            await finish(db_session, claimed)  # chat or entry are gone, it is a person's now, or nobody can write it
        elif await holds_lease(db_session, claimed):
            await _save_again(bench, db_session, head, claimed, entry_id, source, draft)
    return draft is not None and draft.model is not None


async def _read_period(bench: Workbench, claimed: Claimed, character: str) -> _Period | None:
    """What is to be written about; None if line or character are gone, diaries are off, or nothing was said by it."""
    line = (claimed.chat_key, claimed.line_id)
    number, first_seq, last_seq = (claimed.payload[name] for name in ("number", "first_seq", "last_seq"))
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, *line)
        if head is None or not head.settings.diary.enabled:
            return None
        source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
    if source is None or not is_active(source.characters, character):
        return None
    return _Period(number, first_seq, last_seq, head.filters, source) if _speaks(source, character) else None


def _speaks(source: Source, character: str) -> bool:
    """Whether anything is left that the character said, or that nobody's name stands before."""
    names = (character, NAMELESS)
    return any(said.role == "assistant" and (not character or said.name in names) for said in source.utterances)


async def _read_stale(db_session: DbSession, line: tuple[UUID, UUID], entry: DiaryEntry) -> Source | None:
    """What a stale entry is to be written from; None if it is none, or a person's."""
    if entry.first_seq is None or entry.last_seq is None or entry.edited or entry.source_hash == entry.current_hash:
        return None
    filters = Filters.from_json(entry.filters or {})
    return await read_source(db_session.raw, line, entry.first_seq, entry.last_seq, filters)


async def _draft(
    bench: Workbench, claimed: Claimed, character: str, source: Source, *, before_number: int
) -> EntryDraft | None:
    """What the character writes, having reread its entries before a number; None without a model."""
    if bench.model is None:
        return None
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.unit_of_work() as db_session:
        last = await queries.list_newest(
            db_session,
            line,
            character,
            after_number=0,
            before_number=before_number,
            limit=REREAD_ENTRIES,
            by_service=True,
        )
    return await ask_for_entry(bench.model, bench.prompts, character, source, last)


async def _save_new(
    bench: Workbench,
    db_session: DbSession,
    head: Head,
    claimed: Claimed,
    character: str,
    period: _Period,
    draft: EntryDraft,
) -> None:
    """Write the entry if its messages still say what it was made from; where nothing mattered, that is it."""
    now, line, source_hash = bench.clock(), head.line, period.source.hash
    living = await list_living(db_session, *line, [(period.first_seq, period.last_seq)])
    if hash_eligible(living, period.filters) != source_hash:
        await record_failure(db_session, claimed, error=_CHANGED, transient=False, now=now)
        return
    await finish(db_session, claimed)
    if draft.content is None:
        return
    values = {
        "entry_id": uuid7(),
        "character": character,
        "number": period.number,
        "at_seq": period.last_seq,
        "origin": "service",
        "content": draft.content,
        "first_seq": period.first_seq,
        "last_seq": period.last_seq,
        "filters": period.filters.to_json(),
        "source_hash": source_hash,
        "current_hash": source_hash,
        "model": draft.model,
        "prompt_version": draft.prompt_version,
        "dated_at": max(period.source.sent_at.values(), default=now),
        "created_at": now,
    }
    await queries.insert_entry(db_session, line, values)
    await note_entries(db_session, head, character, [period.number], now=now, settle_s=0)
    defer(db_session, "layer_settled", head)


async def _save_again(
    bench: Workbench,
    db_session: DbSession,
    head: Head,
    claimed: Claimed,
    entry_id: UUID,
    source: Source,
    draft: EntryDraft,
) -> None:
    """Replace the words of an entry, by none where nothing mattered any more."""
    now, line = bench.clock(), head.line
    entry = await queries.find_service_entry(db_session, line, entry_id)
    if entry is None:
        await finish(db_session, claimed)
        return
    if entry.current_hash != source.hash:
        await record_failure(db_session, claimed, error=_CHANGED, transient=False, now=now)
        return
    values = {
        "content": draft.content or "",
        "source_hash": source.hash,
        "model": draft.model,
        "prompt_version": draft.prompt_version,
        "dated_at": max(source.sent_at.values(), default=entry.dated_at),
    }
    await queries.update_entry(db_session, line, entry_id, values)
    await finish(db_session, claimed)
    await note_entries(db_session, head, entry.character, [entry.number], now=now, settle_s=0)
    defer(db_session, "layer_settled", head)
