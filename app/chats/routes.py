"""HTTP routes of chats.

The caller chooses a user's id, which may contain a slash, so the path parameter matches the rest of the path (`:path`).
"""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from app.chats import renaming, service
from app.chats.deps import Line, ReadingChat, WritingChat
from app.chats.presenters import present_chats
from app.chats.presets import PRESET_TEXTS
from app.chats.schemas import CharacterRename, ChatOut, ChatPut, PresetOut, Presets
from app.chats.settings import effective, schema
from app.chats.tags import read_tag
from app.kit.auth import KeyedRoute, Reader, Writer
from app.kit.deps import Db, Now, Pool
from app.kit.etags import TAGGED, KnownTags, is_known, not_modified, tagged
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import OrjsonResponse

router = APIRouter(prefix="/v1", tags=["chats"], route_class=KeyedRoute)
user_router = APIRouter(prefix="/v1", tags=["chats"], route_class=KeyedRoute)
"""Matched last: the id of a user may contain slashes, so the path of this route also matches all paths below a user."""


@router.put("/chats/{chat_id}", response_model=ChatOut, responses={201: {"model": ChatOut}})
async def put_chat(ref: WritingChat, put: ChatPut, db_session: Db, clock: Now) -> Response:
    """Create a chat (201) or merge into an existing one (200)."""
    chat, created = await service.put_chat(db_session, ref, put, now=clock())
    (out,) = await present_chats(db_session, [chat])
    return OrjsonResponse(out, status_code=201 if created else 200)


@router.get("/chats/{chat_id}", response_model=ChatOut, responses=TAGGED)
async def get_chat(ref: ReadingChat, db_session: Db, known: KnownTags, line: Line = None) -> Response:
    """Get a chat."""
    chat = await service.get_line(db_session, ref, line)
    tag = await read_tag(db_session, ref, chat, "chat")
    if is_known(known, tag):
        return not_modified(tag)
    (out,) = await present_chats(db_session, [chat])
    return tagged(out, tag)


@router.get("/chats", response_model=Page[ChatOut])
async def list_chats(
    caller: Reader,
    db_session: Db,
    user_id: Annotated[str | None, Query(max_length=200, description="Only this user's chats.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List chats, newest first.

    With `user_id`, or for a token limited to a user, the chats with the latest activity come first.
    """
    before = decode_cursor(cursor, datetime, UUID) if cursor else None
    chats = await service.list_chats(
        db_session,
        caller,
        user_id=user_id,
        limit=limit + 1,
        before=(before[0], before[1]) if before else None,
    )
    by_activity = user_id is not None or caller.user_id is not None
    keys = [(chat.last_active_at if by_activity else chat.created_at, chat.chat_key) for chat in chats]
    return OrjsonResponse(make_page(await present_chats(db_session, chats[:limit]), keys))


@router.post("/chats/{chat_id}/characters/{name:path}/rename", response_model=ChatOut)
async def rename_character(
    ref: WritingChat,
    name: Annotated[str, Path(min_length=1, max_length=200, description="The character's name, or a former one.")],
    body: CharacterRename,
    db_session: Db,
    clock: Now,
) -> Response:
    """Rename a character on the current line.

    Its messages and its diary get the new name; the texts of memories stay as they are. In later requests, the former
    name still identifies the character.
    """
    chat = await renaming.rename(db_session, ref, name, body.name, now=clock())
    await db_session.run_deferred()
    (out,) = await present_chats(db_session, [chat])
    return OrjsonResponse(out)


@router.delete("/chats/{chat_id}", status_code=204)
async def erase_chat(ref: WritingChat, db_session: Db) -> None:
    """Erase a chat and everything derived from it."""
    await service.erase_chat(db_session, ref)


@user_router.delete("/users/{user_id:path}", status_code=204)
async def erase_user(
    user_id: Annotated[str, Path(min_length=1, max_length=200, description="The user's id, chosen by the caller.")],
    caller: Writer,
    pool: Pool,
) -> None:
    """Erase a user with all chats. If the request is interrupted, send it again."""
    await service.erase_user(pool, caller, user_id)


@router.get("/presets")
async def list_presets(caller: Reader) -> Presets:  # noqa: ARG001 - requires a key
    """List the presets with their settings."""
    items = []
    for name, text in PRESET_TEXTS.items():
        settings = effective({"preset": name})
        items.append(PresetOut(name=name, description=text, settings=settings))
    return Presets(items=items, settings_schema=schema().whole.model_json_schema())
