"""The job that folds the oldest entries of a diary."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.chats.heads import read_head
from app.diary import queries
from app.diary.extractive import EXTRACT_VERSION, fold_quotes
from app.diary.folding import MOST_ENTRIES, fit_lines, lines_of, most_folded_lines
from app.diary.generation import ask_for_diary, dated
from app.diary.handlers import (
    FOLD,
    find_folded,
    find_last_folded,
    hash_of,
    narrative_of,
    read_diary,
    reconcile_fold_work,
)
from app.diary.prompts import DIARY
from app.diary.queries import Cast
from app.diary.regeneration import find_replaced
from app.diary.settings import DiarySettings
from app.diary.wording import Written, count_lines, word_entry
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.job import Job, Made
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import FoldDraft, Line


@dataclass(frozen=True, slots=True)
class _Fold:
    """The entries to fold, and what they are folded into.

    Attributes:
        base: The version that they are folded into; None for the first fold.
        replaced: The version that the result replaces, because a person wants it made again; None for the next fold.
        former: The text of the base.
        entries: The entries.
        last_number: The number of the last entry that the fold covers.
        most_lines: The most lines that the result may have.
        cast: The characters, and the other fields of the line's row that the prompt needs.

    """

    base: Link | None
    replaced: Link | None
    former: str
    entries: Sequence[Written]
    last_number: int
    most_lines: int
    cast: Cast

    @property
    def first_number(self) -> int:
        return self.base.last_unit + 1 if self.base else 1


def _character(claimed: Claimed) -> str:
    return claimed.key.removeprefix(FOLD)


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Fold | None:
    """Return the fold to make: the next one, or the newest one again if a person wants that.

    Returns None if the line is gone, diaries are off, or the diary is short enough.
    """
    line, character = claimed.owner.line, _character(claimed)
    head = await read_head(db_session, *line)
    if head is None or not DiarySettings.of(head.settings).enabled:
        return None
    diary, limit = await read_diary(db_session, head, character), DiarySettings.of(head.settings).lines
    again = await find_replaced(db_session, line, character, diary.base, claimed.payload)
    base, former = diary.base, diary.folded
    if again:
        base, former = again.base, await find_folded(db_session, line, character, again.base)
    last_number = again.link.last_unit if again else find_last_folded(diary, limit)
    if last_number is None:
        return None
    first_number = base.last_unit + 1 if base else 1
    entries = await queries.list_step(db_session, line, character, first_number, last_number, limit=MOST_ENTRIES)
    former_lines = lines_of(count_lines(former), [count_lines(word_entry(one.content, "")) for one in entries])
    return _Fold(
        base=base,
        replaced=again.link if again else None,
        former=former,
        entries=entries,
        last_number=entries[-1].number if len(entries) == MOST_ENTRIES else last_number,
        most_lines=most_folded_lines(limit, former_lines),
        cast=await queries.read_cast(db_session, line),
    )


async def _draft(ctx: JobContext, claimed: Claimed, fold: _Fold) -> FoldDraft:
    refusals: Sequence[Refusal] = ()
    if ctx.model is not None:
        inquiry, character = Inquiry.of(ctx.model, ctx.database, claimed), _character(claimed)
        try:
            return await ask_for_diary(inquiry, ctx.prompt(DIARY), character, fold.cast, fold.former, fold.entries)
        except NoUsableAnswer as error:
            refusals = error.refusals
    # In a thread, because long entries would block the event loop.
    text = await asyncio.to_thread(
        fold_quotes,
        fold.former,
        [(entry.date, entry.text) for entry in dated(fold.entries, fold.cast.time_zone)],
        most_lines=fold.most_lines,
        count_tokens=count_tokens,
    )
    return FoldDraft(text, "extractive", None, EXTRACT_VERSION, refusals=refusals)


async def _is_unchanged(db_session: DbSession, made: Made[_Fold, FoldDraft]) -> bool:
    line, character, fold = made.head.line, _character(made.claimed), made.source
    chain = await narratives.read_chain(db_session, line, narrative_of(character))
    entries = await queries.list_step(db_session, line, character, fold.first_number, fold.last_number)
    again = await find_replaced(db_session, line, character, chain.latest_valid(), made.claimed.payload)
    base, replaced = (again.base, again.link) if again else (chain.latest_valid(), None)
    return (base, replaced) == (fold.base, fold.replaced) and hash_of(entries) == hash_of(fold.entries)


async def _save(db_session: DbSession, made: Made[_Fold, FoldDraft]) -> None:
    """Save the version, and schedule the next fold if the diary is still too long."""
    head, fold, draft, character = made.head, made.source, made.draft, _character(made.claimed)
    narrative = narrative_of(character)
    await narratives.save_fold(
        db_session,
        head.line,
        narrative,
        replace(draft, text=fit_lines(draft.text, fold.most_lines)),
        base=fold.base,
        first_unit=fold.first_number,
        last_unit=fold.last_number,
        begins_seq=await _find_begin(db_session, head.line, character, fold),
        source_hash=hash_of(fold.entries),
        filters=None,
        now=made.now,
    )
    if fold.replaced:
        await narratives.discard_replaced(db_session, head.line, narrative, fold.replaced, now=made.now)
    await reconcile_fold_work(db_session, head, character, now=made.now, settle_s=0)


async def _find_begin(db_session: DbSession, line: Line, character: str, fold: _Fold) -> int:
    """Return the highest `at_seq` that the fold or its base covers.

    A copy of the line that ends before this seq does not get the fold. Hidden entries count, too, because the fold
    covers their numbers: if one of them is shown again, the fold becomes stale.
    """
    last_seq = await queries.find_last_seq(db_session, line, character, fold.first_number, fold.last_number)
    if fold.base is None:
        return last_seq
    base = await narratives.read_version(db_session, line, narrative_of(character), fold.base.version)
    return max(last_seq, base.begins_seq)


FOLD_DIARY = Job(prefix=FOLD, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
