"""The job that folds the older part of a diary: read, write it anew with no transaction open, save what still holds."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.chats.service import Head, lock_line, read_head
from app.diary import queries
from app.diary.asking import ask_for_diary, dated
from app.diary.folding import MOST_ENTRIES, fit_lines, lines_of, most_folded_lines
from app.diary.layer import find_last_folded, hash_of, judge, narrative_of, read_diary
from app.diary.queries import Cast, Written
from app.diary.quotes import EXTRACT_VERSION, fold_quotes
from app.diary.wording import count_lines, word_entry
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.tokens import count_tokens
from app.kit.workbench import Workbench
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import FoldDraft, Line, Narrative


@dataclass(frozen=True, slots=True)
class _Fold:
    """What is folded into what, and how many lines the result may take."""

    base: Link | None
    former: str
    entries: Sequence[Written]
    last_number: int
    most_lines: int
    cast: Cast

    @property
    def first_number(self) -> int:
        return self.base.last_place + 1 if self.base else 1


async def make_fold(bench: Workbench, claimed: Claimed, character: str) -> bool:
    """Fold what is due of a character's diary; says whether a model answered. Raises ModelError."""
    fold = await _read_fold(bench, claimed, character)
    draft = await _draft(bench, fold, character) if fold else None
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or fold is None or draft is None:
            await finish(db_session, claimed)  # the chat is gone, or the diary is short enough
        elif await holds_lease(db_session, claimed):
            await _save(bench, db_session, head, claimed, character, fold, draft)
    return draft is not None and draft.model is not None


async def _read_fold(bench: Workbench, claimed: Claimed, character: str) -> _Fold | None:
    """What is to be folded as things stand; None if the line is gone, or nothing is."""
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, *line)
        if head is None or not head.settings.diary.enabled:
            return None
        diary, limit = await read_diary(db_session, head, character), head.settings.diary.lines
        last_number = find_last_folded(diary, limit)
        if last_number is None:
            return None
        first_number = diary.base.last_place + 1 if diary.base else 1
        entries = await queries.list_step(db_session, line, character, first_number, last_number, limit=MOST_ENTRIES)
        cast = await queries.read_cast(db_session, line)
    former_lines = lines_of(count_lines(diary.folded), [count_lines(word_entry(one.content, "")) for one in entries])
    return _Fold(
        base=diary.base,
        former=diary.folded,
        entries=entries,
        last_number=entries[-1].number if len(entries) == MOST_ENTRIES else last_number,
        most_lines=most_folded_lines(limit, former_lines),
        cast=cast,
    )


async def _draft(bench: Workbench, fold: _Fold, character: str) -> FoldDraft:
    if bench.model is None:
        # In a thread, because long entries take longer than a loop may wait.
        text = await asyncio.to_thread(
            fold_quotes,
            fold.former,
            [(entry.date, entry.text) for entry in dated(fold.entries, fold.cast.time_zone)],
            most_lines=fold.most_lines,
            count_tokens=count_tokens,
        )
        return FoldDraft(text, "extractive", None, EXTRACT_VERSION)
    return await ask_for_diary(bench.model, bench.prompts, character, fold.cast, fold.former, fold.entries)


async def _save(
    bench: Workbench,
    db_session: DbSession,
    head: Head,
    claimed: Claimed,
    character: str,
    fold: _Fold,
    draft: FoldDraft,
) -> None:
    """Write the version if what it was made from is still so; a long diary is folded in parts."""
    now, line, narrative = bench.clock(), head.line, narrative_of(character)
    base = (await narratives.read_chain(db_session, line, narrative)).newest_true()
    entries = await queries.list_step(db_session, line, character, fold.first_number, fold.last_number)
    source_hash = hash_of(fold.entries)
    if base != fold.base or hash_of(entries) != source_hash:
        error = "its entries changed while they were being folded"
        await record_failure(db_session, claimed, error=error, transient=False, now=now)
        return
    await narratives.save_fold(
        db_session,
        line,
        narrative,
        FoldDraft(fit_lines(draft.text, fold.most_lines), draft.origin, draft.model, draft.prompt_version),
        base=fold.base,
        first_place=fold.first_number,
        last_place=fold.last_number,
        begins_seq=await _find_begin(db_session, line, narrative, fold),
        source_hash=source_hash,
        filters=None,
        now=now,
    )
    await finish(db_session, claimed)
    await judge(db_session, head, character, now=now, settle_s=0)
    defer(db_session, "layer_settled", head)


async def _find_begin(db_session: DbSession, line: Line, narrative: Narrative, fold: _Fold) -> int:
    """The seq from which on the fold is true: where the last thing was written down that it or its base tells of.

    A copy of the line that ends before it has some of these entries not, so it must not have the fold either.
    """
    last_seq = max(entry.at_seq for entry in fold.entries)
    if fold.base is None:
        return last_seq
    base = await narratives.read_version(db_session, line, narrative, fold.base.version)
    return max(last_seq, base.begins_seq)
