"""The HTTP routes of facts, for a chat and for each wider scope."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.facts import book
from app.facts.schemas import FactIn, FactKey, FactOut, FactValueOut
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import OrjsonResponse
from app.knowledge.deps import WIDE_SCOPES, OfCharacter, WideScope
from app.knowledge.history import make_history_page
from app.knowledge.known import Known, Rating
from app.knowledge.reading import Viewpoint, list_ratings, list_sources, view_chat
from app.knowledge.scopes import ScopeKey

Key = Annotated[FactKey, Path(description="The fact's key.", examples=["brother"])]

_TAGS: list[Any] = ["knowledge"]

router = APIRouter(prefix="/v1/chats/{chat_id}/facts", tags=_TAGS, route_class=KeyedRoute)


@router.get("", response_model=Page[FactOut])
async def list_facts(
    ref: ReadingChat,
    db_session: Db,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the facts as they hold for a chat, sorted by key.

    If several scopes have a value for a key, the value of the nearest scope holds.
    """
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _list(db_session, view, limit, cursor)


@router.get("/{key}", response_model=FactOut)
async def get_fact(
    ref: ReadingChat, key: Key, db_session: Db, character: OfCharacter = None, line: Line = None
) -> Response:
    """Read a fact as it holds for a chat."""
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _get(db_session, view, key)


@router.get("/{key}/history", response_model=Page[FactValueOut])
async def list_fact_values(
    ref: ReadingChat,
    key: Key,
    db_session: Db,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the present and former values of a fact, newest first.

    The list has the values of all scopes that the chat sees.
    """
    view = await view_chat(db_session, ref, line=line, character=character)
    return await _list_values(db_session, view, key, limit, cursor)


@router.put("/{key}", response_model=FactOut, responses={201: {"model": FactOut}})
async def set_fact(ref: WritingChat, key: Key, body: FactIn, db_session: Db, clock: Now) -> Response:
    """Set a fact of a chat. It holds on all lines until a person, a tool or the conversation changes it.

    Returns 201 if the chat itself had no value for the key.
    """
    created = await book.set_in_chat(db_session, ref, key, body.value, now=clock())
    await db_session.run_deferred()
    return await _get(db_session, await view_chat(db_session, ref), key, status=201 if created else 200)


@router.delete("/{key}", status_code=204)
async def delete_fact(ref: WritingChat, key: Key, db_session: Db, clock: Now) -> None:
    """Delete a fact from a chat. The chat then has no value for the key, even if a wider scope has one.

    The former values stay in the fact's history.
    """
    await book.delete_in_chat(db_session, ref, key, now=clock())


def _make_router(of: WideScope) -> APIRouter:
    """Return the routes of a wider scope."""
    name, words = of.name, of.words
    wide = APIRouter(prefix=f"{of.prefix}/facts", tags=_TAGS, route_class=KeyedRoute)

    @wide.get("", response_model=Page[FactOut], name=f"list_{name}_facts", summary=f"List the facts of {words}")
    async def list_wide_facts(
        scope: Annotated[ScopeKey, of.reading],
        db_session: Db,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        """List the facts that hold in the scope, sorted by key."""
        return await _list(db_session, Viewpoint.of_scope(scope), limit, cursor)

    @wide.get("/{key}", response_model=FactOut, name=f"get_{name}_fact", summary=f"Read a fact of {words}")
    async def get_wide_fact(scope: Annotated[ScopeKey, of.reading], key: Key, db_session: Db) -> Response:
        """Read a fact that holds in the scope."""
        return await _get(db_session, Viewpoint.of_scope(scope), key)

    @wide.get(
        "/{key}/history",
        response_model=Page[FactValueOut],
        name=f"list_{name}_fact_values",
        summary=f"List the values of a fact of {words}",
    )
    async def list_wide_fact_values(
        scope: Annotated[ScopeKey, of.reading],
        key: Key,
        db_session: Db,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        """List the present and former values of the fact in the scope, newest first."""
        return await _list_values(db_session, Viewpoint.of_scope(scope), key, limit, cursor)

    @wide.put(
        "/{key}",
        response_model=FactOut,
        responses={201: {"model": FactOut}},
        name=f"set_{name}_fact",
        summary=f"Set a fact of {words}",
    )
    async def set_wide_fact(
        scope: Annotated[ScopeKey, of.writing], key: Key, body: FactIn, db_session: Db, clock: Now
    ) -> Response:
        """Set a fact. It holds in all chats of the scope, except where a nearer scope has a value.

        Returns 201 if the key had no value in the scope.
        """
        created = await book.set_in_scope(db_session, scope, key, body.value, now=clock())
        return await _get(db_session, Viewpoint.of_scope(scope), key, status=201 if created else 200)

    @wide.delete("/{key}", status_code=204, name=f"delete_{name}_fact", summary=f"Delete a fact of {words}")
    async def delete_wide_fact(scope: Annotated[ScopeKey, of.writing], key: Key, db_session: Db, clock: Now) -> None:
        """Delete a fact from the scope. Its former values stay in its history."""
        await book.delete_in_scope(db_session, scope, key, now=clock())

    return wide


routers = (router, *(_make_router(scope) for scope in WIDE_SCOPES))


async def _list(db_session: DbSession, view: Viewpoint, limit: int, cursor: str | None) -> Response:
    after = decode_cursor(cursor, str)[0] if cursor else ""
    held = await book.list_held(db_session, view)
    found = sorted(key for key in held if key > after)[: limit + 1]
    items = await _present(db_session, view, [held[key] for key in found[:limit]])
    return OrjsonResponse(make_page(items, [(key,) for key in found]))


async def _get(db_session: DbSession, view: Viewpoint, key: str, *, status: int = 200) -> Response:
    held = await book.get_held(db_session, view, key)
    (item,) = await _present(db_session, view, [held])
    return OrjsonResponse(item, status_code=status)


async def _list_values(db_session: DbSession, view: Viewpoint, key: str, limit: int, cursor: str | None) -> Response:
    values = await book.list_values(db_session, view, key)
    return OrjsonResponse(make_history_page(values, lambda fact: {"value": fact.content}, limit, cursor))


async def _present(db_session: DbSession, view: Viewpoint, facts: Sequence[Known]) -> list[dict[str, Any]]:
    """Return facts as JSON, each with its messages and its rating."""
    sources = await list_sources(db_session, view, facts)
    ratings = await list_ratings(db_session, view, facts)
    return [_fact_out(one, ratings.get(one.statement_id, Rating()), sources.get(one.statement_id, [])) for one in facts]


def _fact_out(fact: Known, rating: Rating, sources: list[str]) -> dict[str, Any]:
    return {
        "id": fact.statement_id,
        "key": fact.key,
        "value": fact.content,
        "scope": fact.scope,
        "character": fact.character,
        "origin": fact.origin,
        "edited": fact.edited,
        "category": rating.category,
        "importance": rating.importance,
        "tags": list(rating.tags),
        "sources": sources,
        "created_at": fact.learnt_at,
    }
