"""What new sentences are compared with: the memories of a scope, and the texts that are not learnt again."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.chats.head import Head
from app.kit.db import DbSession
from app.knowledge.known import fold
from app.knowledge.scopes import ScopeKey
from app.memories import compare_queries as queries
from app.memories.candidates import Candidates
from app.memories.decay import order_key
from app.memories.dedupe import Known, compare
from app.memories.memory import Memory
from app.memories.queries import Keeping
from app.memories.settings import MemorySettings


class Forgotten(NamedTuple):
    """The verdict that a sentence must not be learnt: its memory was forgotten, or a person replaced its text.

    The memory is None if only the hash of its text is known. The verdict has a type of its own and is no plain id,
    because a memory that was forgotten in this chat can still be live in a wider scope, with the same id.
    """

    memory_id: UUID | None


class Taught(NamedTuple):
    """The verdict that a sentence only adds its sources to a statement."""

    memory_id: UUID
    statement_id: UUID


@dataclass(slots=True)
class Held:
    """A live memory that a new sentence is compared with, and what persons chose about it (`Memory.choices`)."""

    memory_id: UUID
    statement_id: UUID
    known: Known[UUID | Forgotten]
    learnt_at: datetime
    choices: Mapping[str, Any]


@dataclass(slots=True)
class KnownMemories:
    """What the new sentences of one call of `read_known` are compared with.

    Attributes:
        held: The live memories that are not in the archive and that have or had a text that is equal or similar to a
            sentence, oldest first. `remember` adds those that it stores.
        faded: The memories that have faded into the archive and whose text equals a sentence, by the case-folded text
            (`fold`).
        settled: The statements whose text equals a sentence and was replaced, forgotten or put into the archive by a
            person, by the case-folded text (`fold`).
        gone: The forgotten texts that are equal or similar to a sentence.
        hashes: The hashes of all texts that were forgotten in the scope or in a nearer one, and of those that persons
            replaced in the scope. A memory that has such a text gets no new text.
        wider: The hashes of all texts that were forgotten in a wider scope. They are not learnt either. But a memory
            that already has such a text can get a new one, because it was learnt for the nearer scope.
        names: The names of people that the texts may contain.

    """

    held: dict[UUID, Held]
    faded: dict[str, Held]
    settled: dict[str, Taught]
    gone: Sequence[Known[UUID | Forgotten]]
    hashes: frozenset[bytes]
    wider: frozenset[bytes]
    names: Collection[str] = ()

    def compare(self, content: str, threshold: float) -> Forgotten | Taught | Held | None:
        """Return what becomes of a sentence: a `Held` if it is a new text of that memory, None for a new memory."""
        known = [*self.gone, *(one.known for one in self.held.values())]
        verdict = compare(content, known, threshold=threshold, known_names=self.names)
        if isinstance(verdict.id, Forgotten):
            return verdict.id
        former = self.held[verdict.id] if verdict.id else None
        if former and verdict.outcome == "duplicate":
            return Taught(former.memory_id, former.statement_id)
        folded = fold(content)
        if faded := self.faded.get(folded):
            return Taught(faded.memory_id, faded.statement_id)
        if folded in self.settled:
            return self.settled[folded]
        if hash_content(content) in self.hashes | self.wider:
            return Forgotten(None)
        return Forgotten(None) if former and hash_content(former.known.content) in self.hashes else former

    def bring_back(self, taught: Taught) -> None:
        """Compare the next sentences with a faded memory, too, because a sentence with its text has brought it back."""
        for text, one in list(self.faded.items()):
            if one.statement_id == taught.statement_id:
                self.held[one.memory_id] = self.faded.pop(text)

    def drop(self, taught: Taught) -> None:
        """Leave out a statement that was deleted meanwhile."""
        held = self.held.get(taught.memory_id)
        if held and held.statement_id == taught.statement_id:
            del self.held[taught.memory_id]
        self.faded = {text: one for text, one in self.faded.items() if one.statement_id != taught.statement_id}
        self.settled = {text: one for text, one in self.settled.items() if one != taught}


async def read_known(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    character: str | None,
    settings: MemorySettings,
    aged_at: datetime,
    contents: Sequence[str],
    names: Collection[str] = (),
) -> KnownMemories:
    """Return what the new sentences `contents` are compared with; the parameters are those of `remember`.

    Memories, and texts about which persons decided, are left out if they are not equal or similar to any of the
    sentences, because `KnownMemories.compare` would not find them.
    """
    forgotten = await queries.list_forgotten(db_session, scope, head.line, character=character)
    candidates = Candidates(contents, settings.dedupe_threshold)
    similar = await queries.find_similar(db_session, scope, candidates)
    settled = await queries.list_settled(db_session, scope, similar.equal_ids) if similar.equal_ids else []
    seen = await _judge(db_session, scope, head, keeping_of(settings, aged_at), similar)
    faded = [one for one in seen if one.archived and not one.archived_by_person and candidates.is_equal(one.content)]
    faded.sort(key=_rank)
    return KnownMemories(
        _hold([one for one in seen if not one.archived]),
        {one.known.folded: one for one in map(_hold_one, faded)},  # of those with the same text, the strongest
        {fold(content): Taught(memory_id, statement_id) for memory_id, statement_id, content in settled},
        [Known(Forgotten(one), text, is_forgotten=True) for one, text in forgotten.texts if candidates.has(text)],
        forgotten.hashes,
        forgotten.wider,
        names,
    )


async def _judge(
    db_session: DbSession, scope: ScopeKey, head: Head, keeping: Keeping, similar: queries.Similar
) -> list[Memory]:
    """Return the similar memories that hold, in no order, each with whether it is in the archive."""
    if not similar.keys:
        return []
    seen = await queries.list_compared(db_session, scope, head.line, keeping, similar.keys)
    ranked = [one for one in seen if not one.archived and not one.pinned and one.archived_by_person is None]
    if not ranked or len(similar.memories) <= keeping.max_memories:
        return seen
    strongest = max(ranked, key=_rank)
    weakest = await queries.find_weakest(db_session, scope, head.line, keeping, similar.memories, strongest)
    beyond = {one.memory_id for one in ranked if _rank(one) < weakest}
    return [one._replace(archived=True) if one.memory_id in beyond else one for one in seen]


def _rank(memory: Memory) -> tuple[float, str]:
    """Return what memories are sorted by: their order keys, and for equal ones their ids."""
    return memory.order_key, str(memory.memory_id)


def _hold(memories: Sequence[Memory]) -> dict[UUID, Held]:
    """Return memories as those to compare with, oldest first."""
    oldest_first = sorted(memories, key=lambda memory: (memory.learnt_at, memory.statement_id))
    return {one.memory_id: _hold_one(one) for one in oldest_first}


def _hold_one(memory: Memory) -> Held:
    known = Known[UUID | Forgotten](memory.memory_id, memory.content, stays=memory.origin == "person")
    return Held(memory.memory_id, memory.statement_id, known, memory.learnt_at, memory.choices)


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

    `remember` compares the hash of the case-folded text (`fold`). SQL compares the hash of the unchanged text.
    """
    return sorted({hashed for text in contents for hashed in (hash_content(text), _hash(text))})


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]
