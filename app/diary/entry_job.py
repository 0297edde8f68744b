"""The jobs that write for a character: one writes an entry about a period (the last turns), one rewrites a stale entry.

Only a model can write in a character's voice, so without a model these jobs write no text. If no answer of the model
can be used, the work item has failed for good, and the API shows it with the refused answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.chats.characters import is_active
from app.chats.eligibility import Filters, hash_eligible
from app.chats.heads import lock_line, read_head
from app.chats.revision import record_nothing
from app.chats.scheduling import unschedule
from app.diary import change_queries, queries
from app.diary.generation import NAMELESS, EntryDraft, ask_for_entry
from app.diary.handlers import ENTRY, NAME, WRITE, note_entries
from app.diary.prompts import DIARY_ENTRY
from app.diary.settings import DiarySettings
from app.diary.wording import Written
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.job import Job, Made
from app.messages.reads import list_not_deleted
from app.summarising.source import Source, read_source

REREAD_ENTRIES = 5
"""The number of the character's last entries that the prompt contains."""

MAX_FAILED = 32
"""The maximum number of unwritten entries of a line that stay listed as failed; a few more if several fail at once.

A model that declines a story declines each entry, so without a limit the list would grow with each period."""


@dataclass(frozen=True, slots=True)
class _Period:
    """Messages to write about, for one character.

    Attributes:
        character: The character whose diary it is.
        number: The number of the entry.
        first_seq, last_seq: The range of messages, both inclusive.
        filters: The filters that decide which of its messages are eligible.
        source: The messages.
        last: The character's entries before this one.

    """

    character: str
    number: int
    first_seq: int
    last_seq: int
    filters: Filters
    source: Source
    last: Sequence[Written]

    @property
    def speaks(self) -> bool:
        """Whether the range still has an eligible message of the character, or one without a name.

        For the unnamed diary, any eligible message of the assistant counts.
        """
        names = (self.character, NAMELESS)
        said = (one for one in self.source.utterances if one.role == "assistant")
        return any(not self.character or one.name in names for one in said)


async def _read_new(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Period | None:
    """Return the period to write about.

    Returns None if the line is gone, the character is gone or disabled, diaries are off, the character has no message
    in the period, or there is no model.
    """
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if ctx.model is None or head is None or not DiarySettings.of(head.settings).enabled:
        return None
    _, _, character = claimed.key.removeprefix(WRITE).partition(":")
    number, first_seq, last_seq = (claimed.payload[name] for name in ("number", "first_seq", "last_seq"))
    source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
    if source is None or not is_active(source.characters, character):
        return None
    last = await _list_last(db_session, claimed, character, number)
    period = _Period(character, number, first_seq, last_seq, head.filters, source, last)
    return period if period.speaks else None


async def _read_stale(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Period | None:
    """Return the period of a stale entry, or None if it is not stale, a person edited it, or diaries are off."""
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    entry = await queries.find_service_entry(db_session, line, _entry_id(claimed))
    if head is None or not DiarySettings.of(head.settings).enabled or entry is None:
        return None
    if entry.first_seq is None or entry.last_seq is None:
        return None
    if entry.origin == "person" or entry.source_hash == entry.current_hash:
        return None
    filters = Filters.from_json(entry.filters or {})
    source = await read_source(db_session.raw, line, entry.first_seq, entry.last_seq, filters)
    if source is None:
        return None
    last = await _list_last(db_session, claimed, entry.character, entry.number)
    return _Period(entry.character, entry.number, entry.first_seq, entry.last_seq, filters, source, last)


async def _draft(ctx: JobContext, claimed: Claimed, period: _Period) -> EntryDraft | None:
    """Return the character's entry, without content if the period has no message of the character any more.

    Returns None if there is no model: a stale entry then stays stale, and contexts leave it out. Raises ModelError,
    NoUsableAnswer, DoesNotFit.
    """
    if not period.speaks:
        return EntryDraft(None, None, None)
    if ctx.model is None:
        return None
    inquiry, prompt = Inquiry.of(ctx.model, ctx.database, claimed), ctx.prompt(DIARY_ENTRY)
    try:
        return await ask_for_entry(inquiry, prompt, period.character, period.source, period.last)
    except NoUsableAnswer:
        if claimed.key.startswith(WRITE):
            await _drop_oldest_failed(ctx, claimed)
        raise


async def _drop_oldest_failed(ctx: JobContext, claimed: Claimed) -> None:
    """Make room for one more unwritten entry that has failed for good."""
    async with ctx.database.unit_of_work() as db_session:
        head = await lock_line(db_session, *claimed.owner.line)
        if head is None:
            return
        record_nothing(db_session, head.line)
        keys = await change_queries.list_oldest_failed(db_session, head.line, NAME, WRITE, newest=MAX_FAILED - 1)
        await unschedule(db_session, head, NAME, keys)


async def _is_period_unchanged(db_session: DbSession, made: Made[_Period, EntryDraft]) -> bool:
    period = made.source
    messages = await list_not_deleted(db_session, *made.head.line, [(period.first_seq, period.last_seq)])
    return hash_eligible(messages, period.filters) == period.source.hash


async def _is_entry_unchanged(db_session: DbSession, made: Made[_Period, EntryDraft]) -> bool | None:
    entry = await queries.find_service_entry(db_session, made.head.line, _entry_id(made.claimed))
    return None if entry is None else entry.current_hash == made.source.source.hash


async def _save_new(db_session: DbSession, made: Made[_Period, EntryDraft]) -> None:
    """Insert the entry, unless nothing mattered to the character."""
    period, draft, now = made.source, made.draft, made.now
    if draft.content is None:
        return
    values = {
        "entry_id": uuid7(),
        "character": period.character,
        "number": period.number,
        "at_seq": period.last_seq,
        "origin": "model",
        "content": draft.content,
        "first_seq": period.first_seq,
        "last_seq": period.last_seq,
        "filters": period.filters.to_json(),
        "source_hash": period.source.hash,
        "current_hash": period.source.hash,
        "model": draft.model,
        "prompt_version": draft.prompt_version,
        "dated_at": max(period.source.sent_at.values(), default=now),
        "created_at": now,
    }
    await queries.insert_entry(db_session, made.head.line, values)
    await note_entries(db_session, made.head, period.character, [period.number], now=now, settle_s=0)


async def _save_again(db_session: DbSession, made: Made[_Period, EntryDraft]) -> None:
    """Replace the text of the entry; it becomes empty if nothing matters any more."""
    period, draft = made.source, made.draft
    values: dict[str, Any] = {
        "content": draft.content or "",
        "source_hash": period.source.hash,
        "model": draft.model,
        "prompt_version": draft.prompt_version,
    }
    if period.source.sent_at:
        values["dated_at"] = max(period.source.sent_at.values())
    await queries.update_entry(db_session, made.head.line, _entry_id(made.claimed), values)
    await note_entries(db_session, made.head, period.character, [period.number], now=made.now, settle_s=0)


async def _list_last(db_session: DbSession, claimed: Claimed, character: str, before_number: int) -> Sequence[Written]:
    return await queries.list_newest(
        db_session,
        claimed.owner.line,
        character,
        after_number=0,
        before_number=before_number,
        limit=REREAD_ENTRIES,
        by_service=True,
    )


def _entry_id(claimed: Claimed) -> UUID:
    return UUID(claimed.key.removeprefix(ENTRY))


WRITE_ENTRY = Job(prefix=WRITE, read=_read_new, draft=_draft, is_unchanged=_is_period_unchanged, save=_save_new)
REWRITE_ENTRY = Job(prefix=ENTRY, read=_read_stale, draft=_draft, is_unchanged=_is_entry_unchanged, save=_save_again)
