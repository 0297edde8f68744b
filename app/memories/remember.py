"""Stores what was learnt from messages as memories, each of them once."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, Source, learn_by_messages, teach_by_messages
from app.layers.derived import Origin
from app.memories import queries
from app.memories.decay import order_key
from app.memories.dedupe import Known, Verdict, compare, fold
from app.memories.memory import DEFAULT_IMPORTANCE, Category, Memory
from app.memories.queries import KIND, Choice, Keeping
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

    """

    content: str
    origin: Origin = "model"
    category: Category | None = None
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()


class Remembered(NamedTuple):
    """What became of a sentence that was learnt.

    Attributes:
        outcome: `new`: it is a memory of its own. `duplicate`: a memory has it already, and has its sources now, too.
            `supersedes`: it holds in place of a memory's text, which became history. `forgotten`: nothing was stored,
            because the memory was forgotten. `untaught`: nothing was stored, because the line has no source any more.
        memory_id: The memory; None for `untaught`.

    """

    outcome: Outcome
    memory_id: UUID | None


async def remember(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: LearntMemory,
    sources: Sequence[Source],
    *,
    settings: MemorySettings,
    now: datetime,
) -> Remembered:
    """Store what was learnt from messages of `head`'s line, which is the chat's current one and locked.

    It is compared with the memories of the scope that are live and not in the archive, as the line sees them, and with
    the forgotten ones. The caller defers `LayerChanged`, which also writes the head.
    """
    hashes, forgotten = await queries.list_forgotten(db_session, scope, head.line)
    held = {
        memory.memory_id: memory
        for memory in await queries.list_seen(
            db_session, scope, head.line, keeping_of(settings, now), Choice(archived=False)
        )
    }
    verdict = _judge(learnt.content, forgotten, list(held.values()), settings.dedupe_threshold)
    memory_id = verdict.id
    if verdict.outcome != "duplicate" and hash_content(learnt.content) in hashes:
        return Remembered("forgotten", memory_id)
    if memory_id is None:
        return await _store(db_session, head, scope, learnt, sources, None, now)
    if memory_id not in held:
        return Remembered("forgotten", memory_id)
    if verdict.outcome == "duplicate":
        await teach_by_messages(db_session, head, scope, held[memory_id].statement_id, sources, layer=NAME)
        return Remembered("duplicate", memory_id)
    return await _store(db_session, head, scope, learnt, sources, held[memory_id], now)


def keeping_of(settings: MemorySettings, now: datetime) -> Keeping:
    """Return what decides which memories are in the archive now."""
    floor = settings.forget_below
    return Keeping(
        half_life_days=settings.half_life_days,
        max_memories=settings.max_memories,
        least_order_key=order_key(floor, now, half_life_days=settings.half_life_days) if floor else None,
    )


def hash_content(content: str) -> bytes:
    """Return the hash of a text without the differences between duplicates (`dedupe.compare`)."""
    return hashlib.sha256(fold(content).encode()).digest()[:16]


async def _store(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    learnt: LearntMemory,
    sources: Sequence[Source],
    former: Memory | None,
    now: datetime,
) -> Remembered:
    """Insert a memory, or the text that holds in place of that of `former`."""
    statement_id = uuid7()
    memory_id = former.memory_id if former else statement_id
    more = {"category": learnt.category, "importance": learnt.importance, "tags": list(learnt.tags)}
    if former:
        archived = await queries.find_archived(db_session, scope, memory_id)
        more |= {"pinned": former.pinned, "archived": archived}
    said = Said(KIND, str(memory_id), learnt.content, 0, more=more)
    is_taught = await learn_by_messages(
        db_session, head, scope, said, sources, statement_id=statement_id, layer=NAME, origin=learnt.origin, now=now
    )
    if not is_taught:
        return Remembered("untaught", None)
    return Remembered("supersedes" if former else "new", memory_id)


def _judge(
    content: str, forgotten: Sequence[tuple[UUID, str]], held: Sequence[Memory], threshold: float
) -> Verdict[UUID]:
    """Compare a text with those that were forgotten and those that are held; of equal ones, those that are held win."""
    oldest_first = sorted(held, key=lambda memory: (memory.learnt_at, memory.statement_id))
    known = [Known(memory_id, text) for memory_id, text in forgotten]
    known += [Known(memory.memory_id, memory.content) for memory in oldest_first]
    return compare(content, known, threshold=threshold)
