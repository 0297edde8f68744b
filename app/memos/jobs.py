"""The job that makes a memo."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import asyncpg
import orjson

from app.chats.characters import find_persona
from app.chats.eligibility import Filters
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.derived import keep_refusals
from app.layers.job import Job, Made
from app.memos import queries
from app.memos.generation import ExtractiveSummariser, MemoDraft, MemoRequest, Summariser, choose_summariser
from app.memos.highlights import render_highlights, text_values
from app.memos.models import NAME
from app.memos.prompts import MEMO, MemoContext
from app.messages.text_reads import list_eligible_before, list_story_before
from app.summarising.source import Source, name_speaker, read_source
from app.summarising.times import word_time
from app.summarising.transcript import Utterance

_MESSAGES_BEFORE = 2

_LOOKED_BACK = 100
"""How many seqs before a batch are searched for eligible messages."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The eligible messages of a batch as they are now, their hash, and what helps to summarise them."""

    batch: Sequence[Utterance]
    corpus: Sequence[Utterance]
    hash: bytes
    characters: Sequence[str]
    user_name: str | None
    language: str | None
    first_seq: int
    sole: str | None
    context: MemoContext


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Source | None:
    """Return the messages of the memo's batch, or None if the memo or its line is gone."""
    line = claimed.owner.line
    row = await queries.find_batch(db_session.raw, *line, UUID(claimed.key))
    if row is None:
        return None
    filters = Filters.from_json(orjson.loads(row["filters"]))
    source = await read_source(db_session.raw, line, row["first_seq"], row["last_seq"], filters)
    if source is None:
        return None
    found = _Source(
        batch=source.utterances,
        corpus=source.utterances,
        hash=source.hash,
        characters=source.names,
        user_name=source.user_name,
        language=source.language,
        first_seq=row["first_seq"],
        sole=source.sole,
        context=await _read_context(db_session, claimed, source, row["first_seq"], filters),
    )
    return await _with_corpus(db_session, claimed, found, _choose(ctx, claimed).corpus_messages)


async def _read_context(
    db_session: DbSession, claimed: Claimed, source: Source, first_seq: int, filters: Filters
) -> MemoContext:
    """Return the context of the batch: two messages before it, times, and personas.

    The filters of the batch apply to the two messages, too, so that the model gets only eligible messages.
    """
    before = await list_eligible_before(
        db_session.raw,
        *claimed.owner.line,
        before_seq=first_seq,
        limit=_MESSAGES_BEFORE,
        filters=filters,
        most_searched=_LOOKED_BACK,
    )
    described = [(name, find_persona(source.characters, name)) for name in source.names if _occurs(name, source)]
    personas = [(source.user_name or "User", source.user_persona or ""), *described]
    return MemoContext(
        before=[_utter(message, source.sole, source.user_name) for message in before],
        times={seq: word_time(at, source.time_zone) for seq, at in source.sent_at.items()},
        personas=[(name, persona) for name, persona in personas if persona.strip()],
    )


def _occurs(name: str, source: Source) -> bool:
    """Return whether a character speaks in the batch or is named in it."""
    return any(said.name == name or _is_named(name.casefold(), said.text.casefold()) for said in source.utterances)


def _is_named(name: str, text: str) -> bool:
    """Return whether a text contains a name as a whole word; both are case-folded.

    Letters of scripts without capitals may be next to the name, because many of these scripts do not separate words.
    """
    around = (text[: found.start()][-1:] + text[found.end() :][:1] for found in re.finditer(re.escape(name), text))
    return any(not any(one.isdigit() or one != one.upper() for one in letters) for letters in around)


def _utter(message: asyncpg.Record, sole: str | None, user_name: str | None) -> Utterance:
    return name_speaker(message["seq"], message["role"], message["name"], message["content"], sole, user_name)


async def _with_corpus(db_session: DbSession, claimed: Claimed, source: _Source, limit: int) -> _Source:
    """Return `source` with up to `limit` messages from before the batch added to its corpus."""
    if not limit:
        return source
    before = await list_story_before(db_session.raw, *claimed.owner.line, before_seq=source.first_seq, limit=limit)
    earlier = [_utter(message, source.sole, source.user_name) for message in before]
    return replace(source, corpus=[*earlier, *source.batch])


async def _draft(ctx: JobContext, claimed: Claimed, source: _Source) -> MemoDraft:
    summariser = _choose(ctx, claimed)
    if not source.batch:  # no eligible message is left, so the model is not called
        return MemoDraft((), summariser.origin, None, None)
    try:
        return await summariser.summarise(_request(claimed, source))
    except NoUsableAnswer as error:
        extractive = ExtractiveSummariser()
        async with ctx.database.unit_of_work() as db_session:
            source = await _with_corpus(db_session, claimed, source, extractive.corpus_messages)
        return replace(await extractive.summarise(_request(claimed, source)), refusals=error.refusals)


def _request(claimed: Claimed, source: _Source) -> MemoRequest:
    return MemoRequest(
        batch=source.batch,
        corpus=source.corpus,
        characters=source.characters,
        user_name=source.user_name,
        language=source.language,
        instruction=claimed.payload.get("instruction"),
        context=source.context,
    )


async def _is_unchanged(db_session: DbSession, made: Made[_Source, MemoDraft]) -> bool | None:
    found = await queries.find_memo(db_session, *made.head.line, UUID(made.claimed.key), layer=NAME)
    return None if found is None else found[0].current_hash == made.source.hash


async def _save(db_session: DbSession, made: Made[_Source, MemoDraft]) -> None:
    draft = made.draft
    values = {
        **text_values(draft.highlights, render_highlights(draft.highlights)),
        "status": "ready" if draft.highlights else "empty",
        "origin": draft.origin,
        "refusals": keep_refusals(draft.refusals),
        "source_hash": made.source.hash,
        "model": draft.model,
        "prompt_version": draft.prompt_version,
        "attempts": made.claimed.attempts,
        "edited": False,
        "generated_at": made.now,
    }
    await queries.update_memo(db_session, *made.head.line, UUID(made.claimed.key), values)


def _choose(ctx: JobContext, claimed: Claimed) -> Summariser:
    inquiry = Inquiry.of(ctx.model, ctx.database, claimed) if ctx.model else None
    return choose_summariser(inquiry, ctx.prompt(MEMO))


MAKE_MEMO = Job(read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
