"""Stores learnt facts and memories, and reads the known ones."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from app.bindings.rule import hash_text
from app.chats.characters import list_known_names
from app.chats.head import Head
from app.chats.revision import record
from app.consolidation.generation import Draft, Noted
from app.consolidation.learnt import Learnt
from app.consolidation.ranges import Due, date_items
from app.facts.book import NAME as FACTS
from app.facts.book import list_held, say
from app.facts.keys import choose_key
from app.facts.settings import FactSettings
from app.kit.db import DbSession
from app.knowledge.errors import TooManyKeys
from app.knowledge.known import drop_repeated
from app.knowledge.learning import LearningChat, learn_value, lock_scopes
from app.knowledge.reading import Viewpoint
from app.knowledge.rule_queries import list_learnt_by_rule, list_wide_keys
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Source as Taught
from app.knowledge.service import retract_learnt_by_rule
from app.knowledge.settings import LearningSettings
from app.layers.derived import Origin
from app.memories.book import MemoryView, list_strongest
from app.memories.remember import NAME as MEMORIES
from app.memories.remember import LearntMemory, remember
from app.memories.settings import MemorySettings
from app.summarising.source import Source

log = logging.getLogger(__name__)

MOST_NOTED_MEMORIES = 100
"""How many of the strongest memories are read for the prompt; more do not fit into their share of it."""


class _Dated(NamedTuple):
    """What was learnt, with its origin.

    `after` is added to the date of the range: some microseconds, so that the dates have the order of the items.
    `is_promoted` is whether it is one of the draft's promoted memories.
    """

    learnt: Learnt
    origin: Origin
    after: timedelta
    is_promoted: bool


def learning_chat_of(head: Head) -> LearningChat:
    """Return where the chat stores what it learns: its tenant, key, user, sole character and learning settings.

    To store something, pass the locked head: while the model was asked, the chat's user can have changed.
    """
    settings = LearningSettings.of(head.settings)
    return LearningChat(head.tenant, head.chat_key, head.user_id, head.sole_character, settings)


async def list_noted(
    db_session: DbSession, head: Head, learning: LearningChat, *, aged_at: datetime, without: Collection[UUID] = ()
) -> list[Noted]:
    """Return what the chat knows: the facts, then the strongest memories that are not in the archive at `aged_at`.

    The statements with the ids `without` are left out. A text that several scopes have as a memory is returned once.
    """
    view = _view(head, learning)
    facts = await list_held(db_session, view)
    memory_view = MemoryView(view, MemorySettings.of(head.settings), head.time_zone, aged_at)
    memories = await list_strongest(db_session, memory_view, MOST_NOTED_MEMORIES, now=aged_at)
    kept = [one for one in memories if one.statement_id not in without]
    return [
        *(Noted(key, one.content or "") for key, one in sorted(facts.items()) if one.statement_id not in without),
        *(Noted(None, one.content) for one in drop_repeated(kept)),
    ]


def find_age_time(source: Source, now: datetime) -> datetime:
    """Return the time at which the ages of memories are measured while a range is read.

    It is the time of the range's newest eligible message, at most `now`; `now` if no message is eligible. In an
    imported conversation, the memories of earlier ranges have often faded by `now`, but not at the time of that
    message. So the model is shown these memories and does not repeat them.
    """
    return min(source.sent_at[source.utterances[-1].seq], now) if source.utterances else now


def _view(head: Head, learning: LearningChat) -> Viewpoint:
    return Viewpoint(ScopeKey.of_chat(learning.tenant, learning.chat_key), head.line, learning.character)


async def store(db_session: DbSession, head: Head, due: Due, source: Source, draft: Draft, *, now: datetime) -> None:
    """Store what was learnt from `source`, the messages of `due`. `head` is the locked head of the current line.

    A promoted memory is left out if one of its message's other memories or facts was stored or is known already. A
    memory that a person forgot counts as known: a quotation of its message would repeat it. A fact that was not stored
    does not count, for example because a person set another value, facts are off, or the scope is full.
    """
    learning, at = learning_chat_of(head), due.learnt_at
    await lock_scopes(db_session, learning)
    texts = {said.seq: said.text for said in source.utterances}
    taught = {seq: Taught(source.message_ids[seq], hash_text(text)) for seq, text in texts.items()}
    found = _list_learnt(due, draft)
    heeded = {seq for one in draft.learnt if one.kind == "memory" for seq in one.sources}
    if FactSettings.of(head.settings).enabled:
        facts = [one for one in found if one.learnt.kind == "fact"]
        heeded |= await _store_facts(db_session, head, learning, facts, taught, at, now)
    if MemorySettings.of(head.settings).enabled:
        learnt = [
            LearntMemory(
                one.content, [taught[seq] for seq in one.sources], origin, one.category, one.importance, one.tags, after
            )
            for one, origin, after, is_promoted in found
            if one.kind == "memory" and not (is_promoted and heeded.intersection(one.sources))
        ]
        if learnt:
            settings = MemorySettings.of(head.settings)
            scope = learning.choose_scope()
            await remember(
                db_session,
                head,
                scope,
                learnt,
                character=learning.character,
                settings=settings,
                at=at,
                aged_at=find_age_time(source, now),
                now=now,
                names=list_known_names(source.characters, source.user_name),
            )
            record(db_session, head.line, MEMORIES)


async def list_replaceable(db_session: DbSession, head: Head, due: Due) -> set[UUID]:
    """Return the ids of the statements that `retract` would take back now."""
    return await list_learnt_by_rule(db_session, head.line, due.first_seq, due.last_seq, _list_layers(head))


async def retract(db_session: DbSession, head: Head, due: Due) -> None:
    """Take back what rules have learnt from the messages of `due`, unless a person has changed it.

    What belongs to a layer that is off stays, because `store` stores nothing in its place. Two kinds of scopes are
    locked: those in which the chat learns now, and those in which it has learnt from these messages. They can differ if
    the setting `learn_scope` was changed since. `head` is the locked head of the current line.
    """
    layers = _list_layers(head)
    wide_keys = await list_wide_keys(db_session, head.line, due.first_seq, due.last_seq, layers)
    await lock_scopes(db_session, learning_chat_of(head), wide_keys)
    for layer in await retract_learnt_by_rule(db_session, head, due.first_seq, due.last_seq, layers):
        record(db_session, head.line, layer)


def _list_layers(head: Head) -> list[str]:
    """Return the layers for which the chat learns: the layer of facts and that of memories, if they are on."""
    of_layers = {FACTS: FactSettings.of(head.settings).enabled, MEMORIES: MemorySettings.of(head.settings).enabled}
    return [layer for layer, enabled in of_layers.items() if enabled]


async def _store_facts(
    db_session: DbSession,
    head: Head,
    learning: LearningChat,
    facts: Sequence[_Dated],
    taught: Mapping[int, Taught],
    at: datetime,
    now: datetime,
) -> set[int]:
    """Store facts; return the seqs of the messages of those that were stored or are known already."""
    if not facts:
        return set()
    heeded: set[int] = set()
    held = await list_held(db_session, _view(head, learning))
    dropped = 0
    for one, origin, after, _ in facts:
        sources = [taught[seq] for seq in one.sources]
        rating = {"category": one.category, "importance": one.importance, "tags": list(one.tags)}
        said = say(choose_key(one.key or "", held), one.content)._replace(more=rating)
        try:
            outcome = await learn_value(
                db_session,
                head,
                learning,
                said,
                sources,
                layer=FACTS,
                origin=origin,
                at=at + after,
                now=now,
                is_firm=one.is_firm,
            )
        except TooManyKeys:  # only a new key can exceed the limit
            dropped += 1
            continue
        if outcome in ("new", "duplicate"):
            heeded.update(one.sources)
    if dropped:
        log.warning("learnt facts were dropped, because their scope is full", extra={"fields": {"dropped": dropped}})
    record(db_session, head.line, FACTS)
    return heeded


def _list_learnt(due: Due, draft: Draft) -> list[_Dated]:
    """Return what was learnt, the oldest first.

    Promoted memories are quotations of messages, so their origin is `extractive`.
    """
    learnt: list[tuple[Learnt, Origin, bool]] = [
        *((one, draft.origin, False) for one in draft.learnt),
        *((one, "extractive", True) for one in draft.promoted),
    ]
    learnt.sort(key=lambda one: one[0].sources[-1])
    after = date_items(due.first_seq, [one.sources[-1] for one, _, _ in learnt])
    return [
        _Dated(one, origin, later, is_promoted) for (one, origin, is_promoted), later in zip(learnt, after, strict=True)
    ]
