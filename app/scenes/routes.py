"""HTTP routes of scenes."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.chats.service import ChatRef
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import MAX_SEQ, JsonAnswer
from app.scenes import book
from app.scenes.schemas import (
    BreakOut,
    RegenerateScene,
    RegeneratingScene,
    SceneOut,
    ScenePatch,
    ScheduledOut,
    scene_out,
    scheduled_out,
)

BreakSeq = Annotated[int, Path(ge=1, le=MAX_SEQ, description="The seq of the last message of the scene.", examples=[2])]
SceneId = Annotated[UUID, Path(description="The scene's id.")]

router = APIRouter(prefix="/v1/chats/{chat_id}/scenes", tags=["narratives"])


@router.get("", response_model=Page[SceneOut])
async def list_scenes(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the scenes in story order; the open scene is the last."""
    after_seq = decode_cursor(cursor, int)[0] if cursor else 0
    found = await book.list_scenes(db_session, ref, line=line, after_seq=after_seq, limit=limit + 1)
    items = [scene_out(listed) for listed in found[:limit]]
    next_cursor = encode_cursor(items[-1]["last_seq"]) if len(found) > limit else None
    return JsonAnswer({"items": items, "next_cursor": next_cursor})


@router.put("/breaks/{seq}", response_model=BreakOut, responses={201: {"model": BreakOut}})
async def set_break(ref: WritingChat, seq: BreakSeq, db_session: Db, clock: Now) -> Response:
    """End a scene on a message (201). An existing break stays as it is (200)."""
    is_new, around = await book.set_break(db_session, ref, seq, now=clock())
    return JsonAnswer({"items": [scene_out(listed) for listed in around]}, status_code=201 if is_new else 200)


@router.delete("/breaks/{seq}", status_code=204)
async def delete_break(ref: WritingChat, seq: BreakSeq, db_session: Db, clock: Now) -> None:
    """Delete a break: its scene joins the next one. The recap is kept in case the break is set again."""
    await book.lift_break(db_session, ref, seq, now=clock())


@router.post("/detect", status_code=202, response_model=ScheduledOut)
async def detect_break(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Search the open scene for a break now, in the background, even if detection is off."""
    return JsonAnswer(scheduled_out(await book.ask_for_look(db_session, ref, now=clock())), status_code=202)


@router.get("/{scene_id}", response_model=SceneOut)
async def get_scene(ref: ReadingChat, scene_id: SceneId, db_session: Db, line: Line = None) -> Response:
    """Return one closed scene."""
    return JsonAnswer(scene_out(await book.get_scene(db_session, ref, scene_id, line=line)))


@router.patch("/{scene_id}", response_model=SceneOut)
async def edit_scene(ref: WritingChat, scene_id: SceneId, patch: ScenePatch, db_session: Db, clock: Now) -> Response:
    """Replace a scene's title or recap with your own text."""
    await book.edit_scene(db_session, ref, scene_id, patch.given(), now=clock())
    return JsonAnswer(await _changed(db_session, ref, scene_id))


@router.post("/{scene_id}/regenerate", status_code=202, response_model=RegeneratingScene)
async def regenerate_scene(
    ref: WritingChat, scene_id: SceneId, db_session: Db, clock: Now, wish: RegenerateScene | None = None
) -> Response:
    """Make a scene's recap again in the background, also if it has failed."""
    wish = wish or RegenerateScene()
    work_id = await book.regenerate_scene(
        db_session,
        ref,
        scene_id,
        instruction=wish.instruction,
        replace_edited=wish.replace_edited,
        now=clock(),
    )
    return JsonAnswer(await _changed(db_session, ref, scene_id) | {"work_id": work_id}, status_code=202)


async def _changed(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> dict[str, Any]:
    """Return the scene after the changes of this transaction."""
    await db_session.run_deferred()
    return scene_out(await book.get_scene(db_session, ref, scene_id))
