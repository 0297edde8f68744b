"""The state of memories, as JSON."""

from typing import Any
from uuid import UUID

from app.kit.db import DbSession
from app.memories import queries
from app.memories.decay import HALF_LIFE_DAYS
from app.memories.memory import Memory
from app.memories.queries import Choice, Keeping

_ALL = Keeping(half_life_days=HALF_LIFE_DAYS, max_memories=2**31 - 1, least_order_key=None)


async def export_state(
    db_session: DbSession, line: tuple[UUID, UUID], *, only_chat: bool = False
) -> list[dict[str, Any]]:
    """Return the memories that a line sees, of all scopes, sorted by scope, character and age.

    `archived` is true only if a person put the memory into the archive. The settings and the time decide which other
    memories are in it.
    """
    memories = await queries.list_of_chat(
        db_session, line, _ALL, Choice(), character=None, of_all=True, only_chat=only_chat
    )
    memories.sort(key=_order)
    return [
        {
            "scope": one.scope,
            "character": one.character,
            "content": one.content,
            "category": one.category,
            "importance": one.importance,
            "tags": list(one.tags),
            "origin": one.origin,
            "edited": one.edited,
            "pinned": one.pinned,
            "archived": one.archived,
            "said_at": one.said_at,
            "created_at": one.learnt_at,
        }
        for one in memories
    ]


def _order(one: Memory) -> tuple[Any, ...]:
    """Return a sort key without ids, which are random: equal states are in the same order."""
    values = (one.content, one.category or "", one.importance, one.tags, one.origin, one.edited)
    return one.rank, one.character or "", one.learnt_at, one.said_at, *values, one.pinned, one.archived
