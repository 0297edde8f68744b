"""The job that reads a range of messages and stores what is learnt from it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from app.chats.eligibility import Filters, hash_eligible
from app.chats.head import Head
from app.chats.heads import read_head
from app.consolidation import queries
from app.consolidation.generation import (
    HISTORY_MESSAGES,
    Draft,
    Noted,
    ask_for_learnt,
    learn_by_rule,
    quote_important,
)
from app.consolidation.prompts import CONSOLIDATION
from app.consolidation.ranges import RANGE, Due
from app.consolidation.regeneration import AGAIN
from app.consolidation.settings import ConsolidationSettings
from app.consolidation.store import find_age_time, learning_chat_of, list_noted, list_replaceable, retract, store
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.derived import keep_refusals
from app.layers.job import Job, Made
from app.messages.reads import list_not_deleted
from app.summarising.source import Source, read_source
from app.summarising.transcript import Utterance


@dataclass(frozen=True, slots=True)
class _Range:
    """A range to learn from.

    Attributes:
        due: Its ends and its date. The `learnt_at` of each fact and memory is computed from the date.
        filters: The filters that decide which of its messages are eligible.
        source: Its eligible messages.
        noted: The facts and memories that the chat already has: the facts, then the strongest memories. Empty if no
            model is configured. If a person asked for the range again, the facts and memories that `retract` takes back
            after the model's answer are left out. Rules have learnt them from this range. If the model saw them here,
            it would not write them again, and they would be lost.
        user_id: The chat's user, whose memories and facts are in `noted`.
        sole_character: The chat's only active character; what the user has with this character is in `noted`, too.

    """

    due: Due
    filters: Filters
    source: Source
    noted: Sequence[Noted]
    user_id: str | None
    sole_character: str | None


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Range | None:
    """Return the range; None if the line or the range is gone, the layer is off, or there is nothing new to read.

    A range that was read is read again only if it has changed since, or if a person asked for it.
    """
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None or not ConsolidationSettings.of(head.settings).enabled:
        return None
    found = await _find_range(db_session, head, claimed)
    if found is None:
        return None
    due, filters = found
    source = await read_source(db_session.raw, line, due.first_seq, due.last_seq, filters)
    if source is None:
        return None
    noted = list[Noted]()
    if ctx.model:
        aged_at = find_age_time(source, ctx.clock())
        gone = await list_replaceable(db_session, head, due) if _is_again(claimed) else set()
        noted = await list_noted(db_session, head, learning_chat_of(head), aged_at=aged_at, without=gone)
    return _Range(due, filters, source, noted, head.user_id, head.sole_character)


def _is_again(claimed: Claimed) -> bool:
    """Return whether a person asked for the range again."""
    return bool(claimed.payload.get(AGAIN))


async def _find_range(db_session: DbSession, head: Head, claimed: Claimed) -> tuple[Due, Filters] | None:
    row = await queries.find(db_session.raw, head.line, int(claimed.key.removeprefix(RANGE)))
    if row is None:
        due = Due.from_payload(claimed.payload)
        return (due, head.filters) if due else None
    if row["source_hash"] == row["current_hash"] and not _is_again(claimed):
        return None
    filters = Filters.from_json(orjson.loads(row["filters"]))
    return Due(row["first_seq"], row["last_seq"], row["learnt_at"]), filters


async def _draft(ctx: JobContext, claimed: Claimed, found: _Range) -> Draft:
    """Ask the model. If there is none, or none of its answers can be used, apply the rules."""
    source, prompt = found.source, ctx.prompt(CONSOLIDATION)
    if not source.utterances:
        return Draft("extractive", None, prompt.version, ())
    if ctx.model is None:
        return await asyncio.to_thread(learn_by_rule, source, await _read_history(ctx, claimed, found))
    inquiry = Inquiry.of(ctx.model, ctx.database, claimed)
    try:
        draft = await ask_for_learnt(inquiry, prompt, source, found.noted)
    except NoUsableAnswer as error:
        by_rule = await asyncio.to_thread(learn_by_rule, source, await _read_history(ctx, claimed, found))
        return replace(by_rule, refusals=error.refusals)
    if not source.importance:
        return draft
    history = await _read_history(ctx, claimed, found)
    promoted = await asyncio.to_thread(quote_important, source, history, draft.learnt)
    return replace(draft, promoted=promoted)


async def _read_history(ctx: JobContext, claimed: Claimed, found: _Range) -> Sequence[Utterance]:
    """Return the range and what comes before it, HISTORY_MESSAGES messages at most, for the word frequencies.

    A longer range is returned whole.
    """
    last_seq = found.due.last_seq
    first_seq = max(1, min(found.due.first_seq, last_seq - HISTORY_MESSAGES + 1))
    async with ctx.database.unit_of_work() as db_session:
        source = await read_source(db_session.raw, claimed.owner.line, first_seq, last_seq, found.filters)
    return source.utterances if source else found.source.utterances


async def _is_unchanged(db_session: DbSession, made: Made[_Range, Draft]) -> bool:
    """Return whether the range is still due, and its messages are still those from which the draft was made.

    The chat must also have the same user and the same sole character: the model saw what was known of that user, and of
    the user with that character, and can have written it again.
    """
    due, filters, source = made.source.due, made.source.filters, made.source.source
    if (made.head.user_id, made.head.sole_character) != (made.source.user_id, made.source.sole_character):
        return False
    if await _find_range(db_session, made.head, made.claimed) != (due, filters):
        return False
    messages = await list_not_deleted(db_session, *made.head.line, [(due.first_seq, due.last_seq)])
    return hash_eligible(messages, filters) == source.hash


async def _save(db_session: DbSession, made: Made[_Range, Draft]) -> None:
    """Store what was learnt, and record that the range is read."""
    head, due, source, draft = made.head, made.source.due, made.source.source, made.draft
    values = {
        "first_seq": due.first_seq,
        "last_seq": due.last_seq,
        "learnt_at": due.learnt_at,
        "generated_at": made.now,
        "origin": draft.origin,
        "refusals": keep_refusals(draft.refusals),
        "filters": made.source.filters.to_json(),
        "source_hash": source.hash,
        "current_hash": source.hash,
        "model": draft.model,
        "prompt_version": draft.version,
    }
    await queries.save(db_session, head.line, values)
    if _is_again(made.claimed) and draft.origin == "model":
        await retract(db_session, head, due)
    await store(db_session, head, due, source, draft, now=made.now)


CONSOLIDATE = Job(prefix=RANGE, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
