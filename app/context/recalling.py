"""Recall: searches for texts that match the request's `query` or the newest messages, and adds them to a context.

The results are in the segment `recalled`, after the history. With an embedding model, the search also compares meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.chats.characters import find_meant, list_known_names, name_speakers
from app.chats.chat_lock import ChatRef
from app.chats.settings import ChatSettings
from app.context.budget import fit
from app.context.parts import Fitted, Omission, Parts, put
from app.context.queries import Source, list_revisions
from app.context.schemas import ContextQuery
from app.context.segments import HistoryMessage, RenderOptions, Segment
from app.kit.db import Database
from app.kit.tokens import count_tokens
from app.layers.contribution import IN_PROMPT, Placement, placement_of
from app.layers.documents import Fading
from app.passages.words import find_search_terms, find_terms_of_messages
from app.search.choice import Hit, choose, is_same, sort_by_age, word
from app.search.known import Viewed
from app.search.meaning import Recalling, embed_query
from app.search.recall_memory import RecallMemory
from app.search.service import Searched, find, list_changes, may_see_others, rank_found
from app.search.turns import Remembered, find_tired, hash_source

SEGMENT = "recalled"

_WHOLE = ("fact", "summary", "recap")
"""Kinds that recall does not search: the context has these texts anyway, unless the settings leave them out."""

_MEANINGFUL_CHARS = 40
"""A message of fewer characters is too short for a search by meaning: the message before it is added to the query."""

_SPEAKING = {"user", "assistant", "narrator"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found for a context.

    Attributes:
        hits: The results, best first; empty only if `words_alone`.
        tired: The sources that are left out, because each of the last two turns recalled the source itself or a text
            that says the same.
        shown: The texts that the context contains anyway.
        limit_tokens: The limit for the segment.
        placement: Where the segment goes.
        line: The chat's key and the line's id.
        newest_seq: The seq of the newest message, or the seq after it if the request has a draft.
        remembered: The sources that earlier contexts of the line recalled.
        only_chat: Whether only the chat itself was searched.
        words_alone: Whether an embedding model is configured, but gave no vector for the query in time.

    """

    hits: Sequence[Hit]
    tired: frozenset[str]
    shown: Sequence[str]
    limit_tokens: int
    placement: Placement
    line: tuple[UUID, UUID]
    newest_seq: int
    remembered: Remembered
    only_chat: bool
    words_alone: bool


def is_recalling(options: ContextQuery, settings: ChatSettings) -> bool:
    """Return whether recall is on for a context: it is `auto`, and the settings do not omit its segment."""
    return (options.recall or settings.recall.mode) == "auto" and placement_of(settings.recall) is not None


async def find_recalled(
    database: Database,
    ref: ChatRef,
    source: Source,
    options: ContextQuery,
    recalling: Recalling | None,
    *,
    now: datetime,
) -> Found | None:
    """Return the results of a search for a context; None if there is nothing to search for, or nothing to report."""
    row, settings, history = source.row, source.settings, source.history
    spoken = [entry.text for entry in reversed(history) if entry.role in _SPEAKING]
    newest_first = spoken if options.draft is None else [options.draft, *spoken]
    names = list_known_names(source.characters, row["user_name"])
    if options.query:
        terms = find_search_terms(options.query, row["language"], names)
    else:
        terms = find_terms_of_messages(newest_first, language=row["language"], names=names)
    meaning, words_alone = None, False
    if recalling is not None:
        query = options.query or " ".join(
            newest_first[: 1 if newest_first and len(newest_first[0]) >= _MEANINGFUL_CHARS else 2]
        )
        embedder = recalling.embedder_of(ref.tenant)
        meaning = await embed_query(embedder, query)
        words_alone = embedder is not None and meaning is None and bool(query.strip())
    if not terms and meaning is None and not words_alone:
        return None
    items = [item for one in source.contributed.values() for part in one.segments for item in part.items]
    before_seq = row["before_seq"]
    head_seq = row["head_seq"] if before_seq is None else before_seq - 1
    fading: Fading = "ignored" if options.query else "weighs"
    faded_at = find_hour(history, now, has_draft=options.draft is not None)
    searched = Searched(
        ref.key,
        row["line_id"],
        head_seq,
        find_meant(source.characters, options.character),
        name_speakers(source.characters, row["user_name"]),
        before_seq,
        ref.only_chat,
        fading,
        row["language"],
        may_see_others(settings),
    )
    there = [
        *(source for item in items for source in item.sources),
        *(f"message:{one.message_id}" for one in source.pinned),
    ]
    limit_tokens = options.recall_tokens or settings.recall.tokens
    is_current = options.line is None and options.before is None and not ref.only_chat
    tag = (list_revisions(row, list_changes()), None if options.query else faded_at)
    viewed = Viewed(ref.key, searched.character, tag, fading)
    hits = list[Hit]()
    if terms or meaning:
        async with database.raw(ref.tenant) as connection:
            texts = await find(
                connection,
                searched,
                terms,
                meaning,
                now=faded_at,
                kinds_left_out=_WHOLE,
                left_out=there,
                most_tokens=limit_tokens,
                viewed=viewed if is_current else None,
            )
        hits = [hit for hit in await rank_found(texts, searched, terms) if not _is_said(hit, history)]
    if not hits and not words_alone:
        return None
    line = (ref.key, row["line_id"])
    newest_seq = head_seq if options.draft is None else head_seq + 1
    remembered = await recalling.memory.read(line, only_chat=ref.only_chat) if recalling else {}
    user_seqs = sorted(seq for entry in history if entry.role == "user" for seq in entry.seqs)
    if options.draft is not None:
        user_seqs.append(newest_seq)
    first_seq = _find_first_seq(history) if history else newest_seq
    tired = find_tired(remembered, newest_seq, user_seqs=user_seqs, first_seq=first_seq)
    return Found(
        hits,
        frozenset(hit.source for hit in hits if tired and hash_source(line, hit.source) in tired),
        [*(item.text for item in items), *spoken],
        limit_tokens,
        placement_of(settings.recall) or IN_PROMPT,
        line,
        newest_seq,
        remembered,
        ref.only_chat,
        words_alone,
    )


def find_hour(history: Sequence[HistoryMessage], now: datetime, *, has_draft: bool) -> datetime:
    """Return the time that decides how far memories have faded: the hour in which the newest message was sent.

    So a context that is read twice in a turn recalls the same, and a process reloads its cached memories at most once
    an hour, unless something else has changed. The time is never after `now`. With a draft, or if the history is
    empty, it is the hour of `now`.
    """
    sent_at = datetime.fromisoformat(history[-1].sent_at) if history and not has_draft else now
    return min(sent_at, now).astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _is_said(hit: Hit, history: Sequence[HistoryMessage]) -> bool:
    """Return whether a result is a memory of messages that are all in the history."""
    return bool(history) and hit.kind == "memory" and hit.first_seq >= _find_first_seq(history)


def _find_first_seq(history: Sequence[HistoryMessage]) -> int:
    return min(entry.seqs[0] for entry in history)


def fit_recalled(
    found: Found | None, parts: Parts, max_tokens: int, render_options: RenderOptions
) -> tuple[Fitted, Sequence[Hit], Sequence[Omission]]:
    """Return the context with the recalled results that fit, those results, and the omissions of the recall.

    These are the omissions that `fit` does not list. There is only one: `no_vectors`, if the embedding model did not
    answer.

    If not all results fit, the worst ones are left out until the rest fits. A result is never replaced with a shorter
    one, so a context with a smaller `max_tokens` has no result that one with a larger `max_tokens` lacks.

    Raises like `fit`.
    """
    if found is None:
        return fit(parts, max_tokens, render_options), (), ()
    no_vectors = [Omission(SEGMENT, "no_vectors", 0)] if found.words_alone else []
    chosen = choose(
        found.hits, left_out=found.tired, shown=found.shown, limit_tokens=found.limit_tokens, count=count_tokens
    )
    if not chosen:
        return fit(parts, max_tokens, render_options), (), no_vectors
    numbers = {hit.source: number for number, hit in enumerate(found.hits)}
    best_first = sorted(chosen, key=lambda hit: numbers[hit.source])
    shorter = (_build_segment(best_first[:most], found.placement) for most in range(len(best_first) - 1, 0, -1))
    segments = [*parts.segments, _build_segment(best_first, found.placement)]
    fitted = fit(replace(parts, segments=segments, shorter={SEGMENT: shorter}), max_tokens, render_options)
    kept = {source for one in fitted.layout.segments if one.name == SEGMENT for source in one.sources}
    return fitted, [hit for hit in chosen if hit.source in kept], no_vectors


def _build_segment(hits: Sequence[Hit], placement: Placement) -> Segment:
    """Return the segment of `hits` at a placement; `hits` has at least one result, in any order."""
    listed = sort_by_age(hits)
    text = word(listed)
    sources = tuple(hit.source for hit in listed)
    return put(Segment(SEGMENT, text, count_tokens(text), sources=sources, cacheable=False), placement)


async def remember(memory: RecallMemory, found: Found, recalled: Sequence[Mapping[str, Any]]) -> None:
    """Store the sources that a context recalled, and the sources of the other results that say the same.

    Suppose that a context recalled a memory that quotes a message. If the source of the message were not stored, too,
    the next turn could recall the message, and so repeat the memory. `recalled` is the field of that name in the
    answer.
    """
    there = {f"{one['kind']}:{one['id']}" for one in recalled}
    chosen = [hit for hit in found.hits if hit.source in there]
    there |= {hit.source for hit in found.hits if any(is_same(hit, one) for one in chosen)}
    sources = [hash_source(found.line, source) for source in there]
    await memory.add(found.line, found.remembered, found.newest_seq, sources, only_chat=found.only_chat)


def present(hit: Hit) -> dict[str, Any]:
    """Return a result as the answer contains it."""
    return {"kind": hit.kind, "id": hit.id, "score": hit.score, "parts": dict(hit.parts)}
