"""The HTTP routes of memories: those of a chat, and the same ones of each wider scope."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import OrjsonResponse
from app.knowledge.deps import WIDE_SCOPES, OfCharacter, WideScope
from app.knowledge.history import make_history_page
from app.knowledge.scopes import ScopeKey
from app.memories import book
from app.memories.book import MemoryView, view_chat
from app.memories.days import FIRST_DAY, LAST_DAY, span
from app.memories.decay import strength
from app.memories.memory import Memory
from app.memories.queries import Choice
from app.memories.schemas import MemoryIn, MemoryOut, MemoryPatch, MemoryTextOut

MemoryId = Annotated[UUID, Path(description="The memory's id.")]
Archived = Annotated[bool, Query(description="List the memories of the archive instead of the others.")]
Day = Annotated[
    date | None,
    Query(
        ge=FIRST_DAY,
        le=LAST_DAY,
        description="Only memories whose `created_at` is on this day, in the time zone of the chat. For wider scopes: "
        "in UTC.",
    ),
]

_TAGS: list[Any] = ["knowledge"]

router = APIRouter(prefix="/v1/chats/{chat_id}/memories", tags=_TAGS, route_class=KeyedRoute)


@router.get("", response_model=Page[MemoryOut])
async def list_memories(
    ref: ReadingChat,
    db_session: Db,
    clock: Now,
    archived: Archived = False,
    day: Day = None,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the memories of a chat and of the wider scopes that it sees, the strongest first.

    Their strength is the field `score`. The archive has the memories beyond `memories.max_memories`, those weaker than
    `memories.forget_below`, and those that a person put there. If several scopes have memories with the same text, all
    of them are listed.
    """
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _list(db_session, view, clock(), archived, day, limit, cursor)


@router.post("", response_model=MemoryOut, status_code=201)
async def write_memory(ref: WritingChat, body: MemoryIn, db_session: Db, clock: Now) -> Response:
    """Write a memory of a chat. It holds on all lines of the chat."""
    memory_id = await book.write_in_chat(db_session, ref, body.model_dump(), now=clock())
    await db_session.run_deferred()
    return await _get(db_session, await view_chat(db_session, ref), memory_id, clock(), status=201)


@router.get("/{memory_id}", response_model=MemoryOut)
async def get_memory(ref: ReadingChat, memory_id: MemoryId, db_session: Db, clock: Now, line: Line = None) -> Response:
    """Read a memory that a chat sees."""
    return await _get(db_session, await view_chat(db_session, ref, line=line), memory_id, clock())


@router.patch("/{memory_id}", response_model=MemoryOut)
async def edit_memory(ref: WritingChat, memory_id: MemoryId, body: MemoryPatch, db_session: Db, clock: Now) -> Response:
    """Edit, pin or archive a memory. A memory of a wider scope is changed for this chat alone.

    A new text holds on all lines, and the former one stays in the memory's history. In a chat with several characters,
    a memory of the scope `character` cannot be changed (409): the change would make it known to all of them.
    """
    await book.change_in_chat(db_session, ref, memory_id, body.given(), now=clock())
    await db_session.run_deferred()
    return await _get(db_session, await view_chat(db_session, ref), memory_id, clock())


@router.delete("/{memory_id}", status_code=204)
async def delete_memory(ref: WritingChat, memory_id: MemoryId, db_session: Db, clock: Now) -> None:
    """Forget a memory. Its text is not learnt again.

    A memory of a wider scope is forgotten in this chat alone. The former texts stay in the memory's history.
    """
    await book.forget_in_chat(db_session, ref, memory_id, now=clock())


@router.get("/{memory_id}/history", response_model=Page[MemoryTextOut])
async def list_memory_texts(
    ref: ReadingChat,
    memory_id: MemoryId,
    db_session: Db,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the present and former texts of a memory, newest first.

    The list has the texts of all scopes that the chat sees.
    """
    return await _list_texts(db_session, await view_chat(db_session, ref, line=line), memory_id, limit, cursor)


def _make_router(of: WideScope) -> APIRouter:
    """Return the routes of a wider scope."""
    name, words = of.name, of.words
    wide = APIRouter(prefix=f"{of.prefix}/memories", tags=_TAGS, route_class=KeyedRoute)

    @wide.get("", response_model=Page[MemoryOut], name=f"list_{name}_memories", summary=f"List the memories of {words}")
    async def list_wide_memories(
        scope: Annotated[ScopeKey, of.reading],
        db_session: Db,
        clock: Now,
        archived: Archived = False,
        day: Day = None,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        """List the memories of the scope, the strongest first.

        The default settings decide which ones are in the archive.
        """
        return await _list(db_session, MemoryView.of_scope(scope), clock(), archived, day, limit, cursor)

    @wide.post(
        "",
        response_model=MemoryOut,
        status_code=201,
        name=f"write_{name}_memory",
        summary=f"Write a memory of {words}",
    )
    async def write_wide_memory(
        scope: Annotated[ScopeKey, of.writing], body: MemoryIn, db_session: Db, clock: Now
    ) -> Response:
        """Write a memory that all chats of the scope see."""
        memory_id = await book.write_in_scope(db_session, scope, body.model_dump(), now=clock())
        return await _get(db_session, MemoryView.of_scope(scope), memory_id, clock(), status=201)

    @wide.get("/{memory_id}", response_model=MemoryOut, name=f"get_{name}_memory", summary=f"Read a memory of {words}")
    async def get_wide_memory(
        scope: Annotated[ScopeKey, of.reading], memory_id: MemoryId, db_session: Db, clock: Now
    ) -> Response:
        """Read a memory of the scope."""
        return await _get(db_session, MemoryView.of_scope(scope), memory_id, clock())

    @wide.patch(
        "/{memory_id}", response_model=MemoryOut, name=f"edit_{name}_memory", summary=f"Edit a memory of {words}"
    )
    async def edit_wide_memory(
        scope: Annotated[ScopeKey, of.writing], memory_id: MemoryId, body: MemoryPatch, db_session: Db, clock: Now
    ) -> Response:
        """Edit, pin or archive a memory for all chats of the scope."""
        view = MemoryView.of_scope(scope)
        await book.change_in_scope(db_session, view, memory_id, body.given(), now=clock())
        return await _get(db_session, view, memory_id, clock())

    @wide.delete("/{memory_id}", status_code=204, name=f"delete_{name}_memory", summary=f"Delete a memory of {words}")
    async def delete_wide_memory(
        scope: Annotated[ScopeKey, of.writing], memory_id: MemoryId, db_session: Db, clock: Now
    ) -> None:
        """Forget a memory. Its text is not learnt again. Its texts stay in its history."""
        await book.forget_in_scope(db_session, MemoryView.of_scope(scope), memory_id, now=clock())

    @wide.get(
        "/{memory_id}/history",
        response_model=Page[MemoryTextOut],
        name=f"list_{name}_memory_texts",
        summary=f"List the texts of a memory of {words}",
    )
    async def list_wide_memory_texts(
        scope: Annotated[ScopeKey, of.reading],
        memory_id: MemoryId,
        db_session: Db,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        """List the present and former texts of a memory in the scope, newest first."""
        return await _list_texts(db_session, MemoryView.of_scope(scope), memory_id, limit, cursor)

    return wide


routers = (router, *(_make_router(scope) for scope in WIDE_SCOPES))


async def _list(
    db_session: DbSession,
    view: MemoryView,
    now: datetime,
    archived: bool,
    day: date | None,
    limit: int,
    cursor: str | None,
) -> Response:
    first_at, until = span(day, view.time_zone) if day else (None, None)
    order_key, memory_id = decode_cursor(cursor, float, UUID) if cursor else (None, None)
    choice = Choice(
        archived=archived,
        first_at=first_at,
        until=until,
        after=(order_key, str(memory_id)) if cursor else None,
        limit=limit + 1,
    )
    found = await book.list_memories(db_session, view, choice, now=now)
    items = await _present(db_session, view, found[:limit], now)
    return OrjsonResponse(make_page(items, [(repr(one.order_key), one.memory_id) for one in found]))


async def _get(
    db_session: DbSession, view: MemoryView, memory_id: UUID, now: datetime, *, status: int = 200
) -> Response:
    memory = await book.get_memory(db_session, view, memory_id, now=now)
    (item,) = await _present(db_session, view, [memory], now)
    return OrjsonResponse(item, status_code=status)


async def _list_texts(
    db_session: DbSession, view: MemoryView, memory_id: UUID, limit: int, cursor: str | None
) -> Response:
    texts = await book.list_texts(db_session, view, memory_id)
    return OrjsonResponse(make_history_page(texts, lambda text: {"content": text.content}, limit, cursor))


async def _present(
    db_session: DbSession, view: MemoryView, memories: Sequence[Memory], now: datetime
) -> list[dict[str, Any]]:
    """Return memories as JSON, each with its messages and its session."""
    sources = await book.list_sources(db_session, view, memories)
    sessions = await book.list_sessions(db_session, view, memories)
    half_life_days, aged_at = view.settings.half_life_days, view.find_age_time(now)
    return [
        _memory_out(one, half_life_days, aged_at)
        | {"session_id": sessions.get(one.statement_id), "sources": sources.get(one.statement_id, [])}
        for one in memories
    ]


def _memory_out(memory: Memory, half_life_days: float, aged_at: datetime) -> dict[str, Any]:
    age_days = max((aged_at - memory.said_at).total_seconds(), 0) / 86_400  # `said_at` can be after `aged_at`
    return {
        "id": memory.memory_id,
        "content": memory.content,
        "category": memory.category,
        "importance": memory.importance,
        "tags": list(memory.tags),
        "scope": memory.scope,
        "character": memory.character,
        "origin": memory.origin,
        "edited": memory.edited,
        "pinned": memory.pinned,
        "archived": memory.archived,
        "score": strength(memory.importance, age_days, half_life_days=half_life_days),
        "said_at": memory.said_at,
        "created_at": memory.learnt_at,
    }
