"""The job that folds messages into the summary.

A fold makes a new version from a former one, its *base*, and a range of messages.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.chats.eligibility import Filters, hash_eligible
from app.chats.head import Head
from app.chats.heads import read_head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelError
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.job import Job, Made
from app.messages.reads import list_not_deleted
from app.narratives import service as narratives
from app.narratives.chain import Chain, Link
from app.narratives.service import FoldDraft
from app.summarising.fitting import DoesNotFit
from app.summarising.source import Source, read_source
from app.summary import prompts
from app.summary.extractive import EXTRACT_VERSION, fold_quotes
from app.summary.folding import MOST_MESSAGES
from app.summary.generation import ask_for_summary
from app.summary.next_fold import SUMMARY, find_range, read_before_replaced, read_onto, schedule_fold

_MOST_SEQS = 16 * MOST_MESSAGES
"""The maximum number of seqs that are read for a fold: a range can contain any number of hidden messages."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """A range of messages, and the base that it is folded onto."""

    base: Link | None
    first_seq: int
    last_seq: int
    filters: Filters
    base_text: str
    kept_text: str
    source: Source


@dataclass(frozen=True, slots=True)
class _Folded:
    """The result of a fold. If the range did not fit the model, `fold` covers only the first part of the range."""

    fold: _Fold
    draft: FoldDraft


@dataclass(frozen=True, slots=True)
class _Onto:
    """The base of a fold.

    Attributes:
        chain: Its newest valid version is the base.
        until_seq: The seq up to which folds must go on; a long range takes several folds. 0 if there is no such seq.
        replaced: The versions that the fold replaces, because a person wants the newest of them made again.

    """

    chain: Chain
    until_seq: int
    replaced: Sequence[Link]


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Fold | None:
    return await _read_fold(db_session, claimed, MOST_MESSAGES)


async def _draft(ctx: JobContext, claimed: Claimed, fold: _Fold) -> _Folded:
    """Make the new text; a range that does not fit the model is halved until it does. Raises ModelError, DoesNotFit."""
    part = fold
    inquiry = Inquiry.of(ctx.model, ctx.database, claimed) if ctx.model else None
    while True:
        try:
            return _Folded(part, await _fold(ctx, inquiry, part, claimed.payload.get("instruction")))
        except DoesNotFit:
            messages = len(part.source.utterances)
            if messages <= 1:
                raise
        async with ctx.database.unit_of_work() as db_session:
            half = await _read_fold(db_session, claimed, messages // 2)
        if half is None:
            # The messages may have been restored since, which schedules no fold. So the item is retried, not completed.
            raise ModelError("the messages of the fold were deleted while it was being made", transient=True)
        part = half


async def _is_unchanged(db_session: DbSession, made: Made[_Fold, _Folded]) -> bool:
    fold = made.draft.fold
    onto = await _read_onto(db_session, made.head, made.claimed.payload)
    remaining = await list_not_deleted(db_session, *made.head.line, [(fold.first_seq, fold.last_seq)])
    return onto.chain.latest_valid() == fold.base and hash_eligible(remaining, fold.filters) == fold.source.hash


async def _save(db_session: DbSession, made: Made[_Fold, _Folded]) -> None:
    """Store the version and schedule the rest of a long range."""
    head, fold, payload = made.head, made.draft.fold, made.claimed.payload
    onto = await _read_onto(db_session, head, payload)
    await narratives.save_fold(
        db_session,
        head.line,
        SUMMARY,
        made.draft.draft,
        base=fold.base,
        first_unit=fold.first_seq,
        last_unit=fold.last_seq,
        begins_seq=fold.first_seq,
        source_hash=fold.source.hash,
        filters=fold.filters.to_json(),
        now=made.now,
    )
    for link in onto.replaced:
        await narratives.discard_replaced(db_session, head.line, SUMMARY, link, now=made.now)
    chain = await read_onto(db_session, head, until_seq=onto.until_seq)
    if await find_range(db_session, head, chain, until_seq=onto.until_seq):
        asked = {"until_seq": onto.until_seq, "instruction": payload.get("instruction")}
        rest = {name: wish for name, wish in asked.items() if wish}
        await schedule_fold(db_session, head, at_seq=chain.covered + 1, now=made.now, settle_s=0, payload=rest)


async def _read_fold(db_session: DbSession, claimed: Claimed, most: int) -> _Fold | None:
    """Return the next fold of at most `most` messages, or None if the line is gone or nothing is left to fold."""
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None:
        return None
    onto = await _read_onto(db_session, head, claimed.payload)
    found = await find_range(db_session, head, onto.chain, until_seq=onto.until_seq)
    if found is None:
        return None
    first_seq, last_seq = found[0], min(found[1], found[0] + _MOST_SEQS - 1)
    source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
    if source and len(source.utterances) > most:
        last_seq = source.utterances[most - 1].seq
        source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
    if source is None:
        return None
    base = onto.chain.latest_valid()
    base_text = await narratives.find_text(db_session.raw, line, SUMMARY, base.version) if base else ""
    kept_text = await narratives.find_kept_text(db_session.raw, line, SUMMARY, base) if base else ""
    return _Fold(base, first_seq, last_seq, head.filters, base_text or "", kept_text, source)


async def _read_onto(db_session: DbSession, head: Head, payload: dict[str, Any]) -> _Onto:
    """Return the base of the next fold, and up to which seq to fold.

    If the latest valid version is to be made again, the chain ends before this version. The messages after the chain
    are folded again, at least up to the end of this version. A person can ask to replace a kept text (a text of a
    person that later versions contain word for word). The text is then replaced even if versions that were folded onto
    it have become stale since the request, but not if a person has written another kept text.
    """
    until_seq, again = payload.get("until_seq", 0), payload.get("again") or 0
    newest = (await narratives.read_chain(db_session, head.line, SUMMARY)).latest_valid()
    replaces_kept = newest is not None and newest.has_kept and bool(payload.get("replaces_kept"))
    if newest is None or newest.version > again or (newest.version < again and not replaces_kept):
        return _Onto(await read_onto(db_session, head, until_seq=until_seq), until_seq, ())
    before, replaced = await read_before_replaced(db_session, head, newest, replaces_kept=replaces_kept)
    return _Onto(before, max(until_seq, newest.last_unit), replaced)


async def _fold(ctx: JobContext, inquiry: Inquiry | None, fold: _Fold, instruction: str | None) -> FoldDraft:
    source, refusals = fold.source, tuple[Refusal, ...]()
    if not source.utterances:  # no message is eligible, so no model is called
        return FoldDraft(fold.base_text, "extractive")
    if inquiry is not None:
        try:
            return await ask_for_summary(
                inquiry, ctx.prompt(prompts.SUMMARY), fold.base_text, fold.kept_text, source, instruction
            )
        except NoUsableAnswer as error:
            refusals = error.refusals
    # In a thread, because long messages would block the event loop.
    text = await asyncio.to_thread(fold_quotes, fold.base_text, source.utterances, count_tokens=count_tokens)
    return FoldDraft(text, "extractive", None, EXTRACT_VERSION, refusals=refusals)


FOLD_SUMMARY = Job(read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
