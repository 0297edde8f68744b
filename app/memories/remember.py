"""Stores sentences that were learnt from messages as memories, each of them once."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.knowledge.known import fold
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, Source, learn_by_messages, lock_scope, teach_by_messages
from app.layers.derived import Origin
from app.memories import queries
from app.memories.decay import order_key
from app.memories.dedupe import Known, compare
from app.memories.memory import DEFAULT_IMPORTANCE, Category, Memory
from app.memories.queries import KIND, Keeping
from app.memories.settings import MemorySettings

NAME = "memories"

Outcome = Literal["new", "duplicate", "supersedes", "forgotten", "untaught"]


class LearntMemory(NamedTuple):
    """A sentence that was learnt.

    Attributes:
        content: The sentence.
        origin: Who wrote it.
        category: None if it has none of the categories.
        importance: From 0 to 1.
        tags: Short words.
        sources: The messages that it was learnt from, at least one.
        after: The sentence's time minus the argument `at` of `remember`. It differs between sentences, so that they
            have an order.

    """

    content: str
    sources: Sequence[Source]
    origin: Origin = "model"
    category: Category | None = None
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    after: timedelta = timedelta()


class Remembered(NamedTuple):
    """The outcome for a sentence that was learnt.

    Attributes:
        outcome: `new`: it became a new memory. `duplicate`: a memory has or had this text, and gets the sources of the
            sentence, too. `supersedes`: it became the text of a known memory. If the memory's present text has a later
            `learnt_at`, the sentence became a former text of the memory instead. `forgotten`: nothing was stored,
            because the sentence, or the text that it would supersede, was replaced by a person or forgotten. (If the
            scope still has a statement with a replaced text, the outcome is `duplicate`.) `untaught`: nothing was
            stored, because the line no longer has any of the sources.
        memory_id: The memory; None for `untaught`, and for `forgotten` if only the hash of its text is known.

    """

    outcome: Outcome
    memory_id: UUID | None


class _Forgotten(NamedTuple):
    """The verdict that a sentence must not be learnt: its memory was forgotten, or a person replaced its text.

    The memory is None if only the hash of its text is known. The verdict has a type of its own and is no plain id,
    because a memory that was forgotten in this chat can still be live in a wider scope, with the same id.
    """

    memory_id: UUID | None


class _Taught(NamedTuple):
    """The verdict that a sentence only adds its sources to a statement."""

    memory_id: UUID
    statement_id: UUID


@dataclass(slots=True)
class _Held:
    """A live memory that a new sentence is compared with, and what persons chose about it (`Memory.choices`)."""

    memory_id: UUID
    statement_id: UUID
    known: Known[UUID | _Forgotten]
    learnt_at: datetime
    choices: Mapping[str, Any]


@dataclass(slots=True)
class _KnownMemories:
    """What a new sentence is compared with.

    Attributes:
        held: The live memories that are not in the archive, oldest first.
        faded: Those that have faded into the archive and whose text a sentence has, by the case-folded text (`fold`).
        settled: The statements whose texts persons replaced or put into the archive, by the case-folded text (`fold`).
        gone: The forgotten texts.
        hashes: The hashes of the texts that were forgotten or that persons replaced.

    """

    held: dict[UUID, _Held]
    faded: dict[str, _Held]
    settled: dict[str, _Taught]
    gone: Sequence[Known[UUID | _Forgotten]]
    hashes: frozenset[bytes]

    def compare(self, content: str, threshold: float) -> _Forgotten | _Taught | _Held | None:
        """Return what becomes of a sentence: a `_Held` if it is a new text of that memory, None for a new memory."""
        verdict = compare(content, [*self.gone, *(one.known for one in self.held.values())], threshold=threshold)
        if isinstance(verdict.id, _Forgotten):
            return verdict.id
        former = self.held[verdict.id] if verdict.id else None
        if former and verdict.outcome == "duplicate":
            return _Taught(former.memory_id, former.statement_id)
        folded = fold(content)
        if faded := self.faded.get(folded):
            return _Taught(faded.memory_id, faded.statement_id)
        if folded in self.settled:
            return self.settled[folded]
        texts = [content, *([former.known.content] if former else [])]
        return _Forgotten(None) if any(hash_content(text) in self.hashes for text in texts) else former

    def bring_back(self, taught: _Taught) -> None:
        """Compare the next sentences with a memory that had faded, because a sentence has just had the same text."""
        for text, one in list(self.faded.items()):
            if one.statement_id == taught.statement_id:
                self.held[one.memory_id] = self.faded.pop(text)

    def drop(self, taught: _Taught) -> None:
        """Leave out a statement that was deleted meanwhile."""
        held = self.held.get(taught.memory_id)
        if held and held.statement_id == taught.statement_id:
            del self.held[taught.memory_id]
        self.faded = {text: one for text, one in self.faded.items() if one.statement_id != taught.statement_id}
        self.settled = {text: one for text, one in self.settled.items() if one != taught}


async def remember(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: Sequence[LearntMemory],
    *,
    character: str | None,
    settings: MemorySettings,
    at: datetime,
    aged_at: datetime,
    now: datetime,
) -> list[Remembered]:
    """Store sentences that were learnt from messages of `head`'s line, which is the chat's current one and locked.

    Each sentence is compared with the memories of the scope that the line sees as live and not in the archive, the
    sentences before it, the texts that persons replaced or put into the archive, and the memories that were forgotten
    in the scope or in a nearer one. A memory that has faded into the archive is dated again, and so brought back, if a
    sentence has its text. The sentences after that one are compared with this memory, too. Until then, a sentence that
    is only similar to it becomes a new memory. The caller defers `LayerChanged`, which also writes the head.

    Args:
        db_session: Open unit of work.
        head: The line's head.
        scope: The scope of the memories.
        learnt: The sentences.
        character: The character whose scope can be one of the nearer ones; None if the chat does not have exactly one
            character.
        settings: The chat's settings of memories.
        at: When they were learnt; the field `after` of each is added to it. A sentence does not replace a text that was
            learnt later.
        aged_at: The time at which the ages of memories are measured: when the newest of the messages that were read was
            sent, but never after `now`. It decides which memories have faded into the archive.
        now: The service's time. A message with a later time is dated with it.

    """
    await lock_scope(db_session, scope)
    contents = [one.content for one in learnt]
    known = await _read_known(db_session, head, scope, character, keeping_of(settings, aged_at), contents)
    found = []
    for one in learnt:
        verdict = known.compare(one.content, settings.dedupe_threshold)
        while isinstance(verdict, _Taught):
            statement_id = verdict.statement_id
            taught = await teach_by_messages(db_session, head, scope, statement_id, one.sources, layer=NAME, now=now)
            if taught is not None:
                break
            known.drop(verdict)  # another chat has just taken it back
            verdict = known.compare(one.content, settings.dedupe_threshold)
        if isinstance(verdict, _Taught):
            known.bring_back(verdict)
            found.append(Remembered("duplicate", verdict.memory_id))
        elif isinstance(verdict, _Forgotten):
            found.append(Remembered("forgotten", verdict.memory_id))
        else:
            found.append(await _store(db_session, head, scope, one, verdict, known.held, at + one.after, now))
    return found


def keeping_of(settings: MemorySettings, aged_at: datetime) -> Keeping:
    """Return the settings that decide which memories are in the archive at the time `aged_at`."""
    floor = settings.forget_below
    return Keeping(
        half_life_days=settings.half_life_days,
        max_memories=settings.max_memories,
        least_order_key=order_key(floor, aged_at, half_life_days=settings.half_life_days) if floor else None,
    )


def hash_content(content: str) -> bytes:
    """Return the hash of a text, the same for texts that differ only in case, white space and compatibility forms."""
    return _hash(fold(content))


def hash_forgotten(contents: Iterable[str]) -> list[bytes]:
    """Return two hashes of each text that must not be learnt again.

    `remember` compares the hash of the case-folded text (`fold`), SQL that of the unchanged text.
    """
    return sorted({hashed for text in contents for hashed in (hash_content(text), _hash(text))})


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


async def _read_known(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    character: str | None,
    keeping: Keeping,
    contents: Sequence[str],
) -> _KnownMemories:
    """Return what the new sentences `contents` are compared with."""
    hashes, forgotten = await queries.list_forgotten(db_session, scope, head.line, character=character)
    settled = await queries.list_settled(db_session, scope)
    seen = await queries.list_compared(db_session, scope, head.line, keeping, contents)
    faded = _hold([one for one in seen if one.archived])
    return _KnownMemories(
        _hold([one for one in seen if not one.archived]),
        {one.known.folded: one for one in faded.values()},
        {fold(content): _Taught(memory_id, statement_id) for memory_id, statement_id, content in settled},
        [Known(_Forgotten(memory_id), content, is_forgotten=True) for memory_id, content in forgotten],
        hashes,
    )


def _hold(memories: Sequence[Memory]) -> dict[UUID, _Held]:
    """Return memories as those to compare with, oldest first."""
    return {
        one.memory_id: _Held(
            one.memory_id,
            one.statement_id,
            Known(one.memory_id, one.content, stays=one.origin == "person"),
            one.learnt_at,
            one.choices,
        )
        for one in sorted(memories, key=lambda memory: (memory.learnt_at, memory.statement_id))
    }


async def _store(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: LearntMemory,
    former: _Held | None,
    held: dict[UUID, _Held],
    at: datetime,
    now: datetime,
) -> Remembered:
    """Insert a new memory, or a new text of the memory `former`.

    A new text keeps the pin, the choice about the archive, and the category, importance and tags that a person set on
    `former`. If the present text of `former` was learnt after `at`, it stays the present text.
    """
    statement_id = uuid7()
    memory_id = former.memory_id if former else statement_id
    choices: Mapping[str, Any] = former.choices if former else {}
    more = {"category": learnt.category, "importance": learnt.importance, "tags": list(learnt.tags), **choices}
    is_taught = await learn_by_messages(
        db_session,
        head,
        scope,
        Said(KIND, str(memory_id), learnt.content, 0, more=more),
        learnt.sources,
        statement_id=statement_id,
        layer=NAME,
        origin=learnt.origin,
        at=at,
        now=now,
        bounded=False,
    )
    if not is_taught:
        return Remembered("untaught", None)
    if former is None or former.learnt_at <= at:
        held.pop(memory_id, None)  # so that the newest is the last one
        held[memory_id] = _Held(memory_id, statement_id, Known(memory_id, learnt.content), at, choices)
    return Remembered("supersedes" if former else "new", memory_id)
