"""The job that makes one fold: read, summarise with no transaction open, write in one that checks the source."""

import asyncio
from dataclasses import dataclass
from typing import Any

from app.chats.service import Filters, Head, hash_eligible, list_living, lock_line, read_head
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.llm import ModelError
from app.kit.tokens import count_tokens
from app.kit.workbench import Workbench
from app.narratives import service as narratives
from app.narratives.chain import Chain, Link
from app.narratives.service import FoldDraft
from app.summarising.fitting import DoesNotFit
from app.summarising.source import Source, read_source
from app.summary.asking import ask_for_summary
from app.summary.folding import MOST_MESSAGES
from app.summary.layer import SUMMARY, find_range, make_fold_due, read_onto
from app.summary.quotes import EXTRACT_VERSION, fold_quotes

_MOST_SEQS = 16 * MOST_MESSAGES
"""So many seqs at most are read for a fold."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """What is folded into what."""

    base: Link | None
    first_seq: int
    last_seq: int
    filters: Filters
    base_text: str
    source: Source


async def make_fold(bench: Workbench, claimed: Claimed) -> bool:
    """Fold what is due into the summary; says whether a model answered. Raises ModelError."""
    fold, draft = await _fold(bench, claimed)
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or fold is None or draft is None:
            await finish(db_session, claimed)  # the chat is gone, or nothing is left to fold
            if head is not None:
                defer(db_session, "layer_settled", head)
        else:
            await _save(bench, db_session, head, claimed, fold, draft)
    return draft is not None and draft.model is not None


async def _fold(bench: Workbench, claimed: Claimed) -> tuple[_Fold | None, FoldDraft | None]:
    """What is folded, and what it becomes; fewer messages at once where so many do not fit. Raises ModelError."""
    fold = await _read_fold(bench, claimed, MOST_MESSAGES)
    while fold is not None:
        try:
            return fold, await _draft(bench, fold, claimed.payload.get("instruction"))
        except DoesNotFit as error:
            if len(fold.source.utterances) <= 1:
                raise ModelError(str(error), transient=False) from error
        fold = await _read_fold(bench, claimed, len(fold.source.utterances) // 2)
    return None, None


async def _save(
    bench: Workbench, db_session: DbSession, head: Head, claimed: Claimed, fold: _Fold, draft: FoldDraft
) -> None:
    """Write the version if the claim stands and what it was made from is still so."""
    if not await holds_lease(db_session, claimed):
        return
    now = bench.clock()
    onto, until_seq, again = await _read_onto(db_session, head, claimed.payload)
    if onto.newest_true() != fold.base or await _hash_now(db_session, head, fold) != fold.source.hash:
        error = "what it tells of changed while it was being made"
        await record_failure(db_session, claimed, error=error, transient=False, now=now)
        return
    await narratives.save_fold(
        db_session,
        head.line,
        SUMMARY,
        draft,
        base=fold.base,
        first_place=fold.first_seq,
        last_place=fold.last_seq,
        begins_seq=fold.first_seq,
        source_hash=fold.source.hash,
        filters=fold.filters.to_json(),
        now=now,
    )
    if again:
        await narratives.drop_replaced(db_session, head.line, SUMMARY, again, now=now)
    await finish(db_session, claimed)
    chain = await read_onto(db_session, head, until_seq=until_seq)
    if await find_range(db_session, head, chain, until_seq=until_seq):  # a long range is folded in parts
        asked = {"until_seq": until_seq, "instruction": claimed.payload.get("instruction")}
        payload = {name: wish for name, wish in asked.items() if wish}
        await make_fold_due(db_session, head, at_seq=chain.covered + 1, now=now, settle_s=0, payload=payload)
    defer(db_session, "layer_settled", head)


async def _read_fold(bench: Workbench, claimed: Claimed, most: int) -> _Fold | None:
    """What is to be folded as things stand, at most `most` messages; None if the line is gone, or nothing is.

    Messages that scenes hide are folded too, though they are not sent: of those a range may hold any number.
    """
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, *line)
        if head is None:
            return None
        onto, until_seq, _ = await _read_onto(db_session, head, claimed.payload)
        found = await find_range(db_session, head, onto, until_seq=until_seq)
        if found is None:
            return None
        first_seq, last_seq = found[0], min(found[1], found[0] + _MOST_SEQS - 1)
        source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
        if source and len(source.utterances) > most:
            last_seq = source.utterances[most - 1].seq
            source = await read_source(db_session.raw, line, first_seq, last_seq, head.filters)
        if source is None:
            return None
        base = onto.newest_true()
        base_text = await narratives.find_text(db_session.raw, line, SUMMARY, base.version) if base else ""
    return _Fold(base, first_seq, last_seq, head.filters, base_text or "", source)


async def _read_onto(db_session: DbSession, head: Head, payload: dict[str, Any]) -> tuple[Chain, int, Link | None]:
    """What is folded onto, up to where at least, and the version that a person wants made again, if that stands.

    What that was built on is folded onto then, up to where it ends.
    """
    line, until_seq = head.line, payload.get("until_seq", 0)
    newest = (await narratives.read_chain(db_session, line, SUMMARY)).newest_true()
    if newest is None or payload.get("again") != newest.version:
        return await read_onto(db_session, head, until_seq=until_seq), until_seq, None
    onto = await narratives.read_before(db_session, line, SUMMARY, newest)
    return onto, max(until_seq, newest.last_place), newest


async def _hash_now(db_session: DbSession, head: Head, fold: _Fold) -> bytes:
    living = await list_living(db_session, *head.line, [(fold.first_seq, fold.last_seq)])
    return hash_eligible(living, fold.filters)


async def _draft(bench: Workbench, fold: _Fold, instruction: str | None) -> FoldDraft:
    source = fold.source
    if not source.utterances:  # nothing eligible is in it: nobody has to be asked
        return FoldDraft(fold.base_text, "extractive")
    if bench.model is None:
        # In a thread, because long messages take longer than a loop may wait.
        text = await asyncio.to_thread(fold_quotes, fold.base_text, source.utterances, count_tokens=count_tokens)
        return FoldDraft(text, "extractive", None, EXTRACT_VERSION)
    return await ask_for_summary(bench.model, bench.prompts, fold.base_text, source, instruction)
