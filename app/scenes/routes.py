"""HTTP of scenes."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.chats.service import ChatRef
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import JsonAnswer
from app.scenes import service
from app.scenes.schemas import (
    BreakIn,
    BreakOut,
    DueOut,
    RegenerateScene,
    SceneOut,
    ScenePatch,
    due_out,
    scene_out,
)

SceneId = Annotated[UUID, Path(description="The scene's id.")]

router = APIRouter(prefix="/v1/chats/{chat_id}/scenes", tags=["narratives"])


@router.get("", response_model=Page[SceneOut])
async def list_scenes(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """The scenes in story order, the open one last: what a navigator needs to jump."""
    after_seq = decode_cursor(cursor, int)[0] if cursor else 0
    found = await service.list_scenes(db_session, ref, line=line, after_seq=after_seq, limit=limit + 1)
    items = [scene_out(listed) for listed in found[:limit]]
    next_cursor = encode_cursor(items[-1]["last_seq"]) if len(found) > limit else None
    return JsonAnswer({"items": items, "next_cursor": next_cursor})


@router.post("/break", response_model=BreakOut)
async def toggle_break(ref: WritingChat, body: BreakIn, db_session: Db, clock: Now) -> Response:
    """Set a break on the last message of a scene; where one is already it is lifted, and its recap kept."""
    is_set, changed = await service.toggle_break(db_session, ref, body.seq, now=clock())
    return JsonAnswer({"set": is_set, "items": [scene_out(listed) for listed in changed]})


@router.post("/detect", status_code=202, response_model=DueOut)
async def detect_break(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Have a break looked for in the open scene now, in the background."""
    return JsonAnswer(due_out(await service.ask_for_look(db_session, ref, now=clock())), status_code=202)


@router.get("/{scene_id}", response_model=SceneOut)
async def get_scene(ref: ReadingChat, scene_id: SceneId, db_session: Db) -> Response:
    """One closed scene."""
    return JsonAnswer(scene_out(await service.get_scene(db_session, ref, scene_id)))


@router.patch("/{scene_id}", response_model=SceneOut)
async def edit_scene(ref: WritingChat, scene_id: SceneId, patch: ScenePatch, db_session: Db, clock: Now) -> Response:
    """Replace a scene's title or recap by your own words."""
    await service.edit_scene(db_session, ref, scene_id, title=patch.title, recap=patch.recap, now=clock())
    return JsonAnswer(await _changed(db_session, ref, scene_id))


@router.post("/{scene_id}/regenerate", status_code=202, response_model=SceneOut)
async def regenerate_scene(
    ref: WritingChat, scene_id: SceneId, db_session: Db, clock: Now, wish: RegenerateScene | None = None
) -> Response:
    """Have a scene's recap made again in the background; a failed one too."""
    wish = wish or RegenerateScene()
    await service.regenerate_scene(
        db_session,
        ref,
        scene_id,
        instruction=wish.instruction,
        replace_edited=wish.replace_edited,
        now=clock(),
    )
    return JsonAnswer(await _changed(db_session, ref, scene_id), status_code=202)


async def _changed(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> dict[str, Any]:
    """The scene as this transaction leaves it."""
    await db_session.run_deferred()
    return scene_out(await service.get_scene(db_session, ref, scene_id))
