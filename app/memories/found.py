"""Reads more about memories that a search has found."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from app.kit.db import DbSession
from app.memories.book import MemoryView, list_memories, list_sources
from app.memories.queries import Choice


async def list_sources_by_id(
    db_session: DbSession, view: MemoryView, memory_ids: Collection[UUID], *, now: datetime
) -> dict[UUID, list[str]]:
    """Return the sources (`message:<id>`) of memories that are not in the archive, by the memory's id."""
    held = await list_memories(db_session, view, Choice(archived=False), now=now) if memory_ids else []
    memories = [memory for memory in held if memory.memory_id in memory_ids]
    sources = await list_sources(db_session, view, memories)
    return {memory.memory_id: sources.get(memory.statement_id, []) for memory in memories}
