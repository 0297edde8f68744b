"""HTTP routes of scenes."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Response

from app.chats.chat_lock import ChatRef
from app.chats.deps import Line, ReadingChat, WritingChat
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import MAX_SEQ, OrjsonResponse
from app.narratives.schemas import ChooseVersion, NarrativeIn, VersionOut, VersionPath, version_out, versions_page
from app.scenes import book, recap
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

router = APIRouter(prefix="/v1/chats/{chat_id}/scenes", tags=["narratives"], route_class=KeyedRoute)


@router.get("", response_model=Page[SceneOut])
async def list_scenes(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the scenes in story order. The open scene is the last."""
    after_seq = decode_cursor(cursor, int)[0] if cursor else 0
    found = await book.list_scenes(db_session, ref, line=line, after_seq=after_seq, limit=limit + 1)
    items = [scene_out(listed) for listed in found]
    return OrjsonResponse(make_page(items[:limit], [(item["last_seq"],) for item in items]))


@router.put("/breaks/{seq}", response_model=BreakOut, responses={201: {"model": BreakOut}})
async def set_break(ref: WritingChat, seq: BreakSeq, db_session: Db, clock: Now) -> Response:
    """End a scene on a message (201). An existing break stays as it is (200)."""
    is_new, around = await book.set_break(db_session, ref, seq, now=clock())
    return OrjsonResponse({"items": [scene_out(listed) for listed in around]}, status_code=201 if is_new else 200)


@router.delete("/breaks/{seq}", status_code=204)
async def delete_break(ref: WritingChat, seq: BreakSeq, db_session: Db, clock: Now) -> None:
    """Delete a break: its scene joins the next one. The recap is kept in case the break is set again."""
    await book.lift_break(db_session, ref, seq, now=clock())


@router.post("/detect", status_code=202, response_model=ScheduledOut)
async def detect_break(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Search in the background for a break in the open scene, even if detection is off."""
    return OrjsonResponse(scheduled_out(await book.ask_for_look(db_session, ref, now=clock())), status_code=202)


@router.get("/{scene_id}", response_model=SceneOut)
async def get_scene(ref: ReadingChat, scene_id: SceneId, db_session: Db, line: Line = None) -> Response:
    """Return one closed scene."""
    return OrjsonResponse(scene_out(await book.get_scene(db_session, ref, scene_id, line=line)))


@router.patch("/{scene_id}", response_model=SceneOut)
async def edit_scene(ref: WritingChat, scene_id: SceneId, patch: ScenePatch, db_session: Db, clock: Now) -> Response:
    """Edit a scene's title or recap."""
    await book.edit_scene(db_session, ref, scene_id, patch.given(), now=clock())
    return OrjsonResponse(await _changed(db_session, ref, scene_id))


@router.post("/{scene_id}/regenerate", status_code=202, response_model=RegeneratingScene)
async def regenerate_scene(
    ref: WritingChat, scene_id: SceneId, db_session: Db, clock: Now, wish: RegenerateScene | None = None
) -> Response:
    """Make a scene's recap again in the background."""
    wish = wish or RegenerateScene()
    work_id = await book.regenerate_scene(
        db_session,
        ref,
        scene_id,
        instruction=wish.instruction,
        replace_edited=wish.replace_edited,
        now=clock(),
    )
    return OrjsonResponse(await _changed(db_session, ref, scene_id) | {"work_id": work_id}, status_code=202)


async def _changed(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> dict[str, Any]:
    """Return the scene after the changes of this transaction."""
    await db_session.run_deferred()
    return scene_out(await book.get_scene(db_session, ref, scene_id))


recap_router = APIRouter(prefix="/v1/chats/{chat_id}/recap", tags=["narratives"], route_class=KeyedRoute)


@recap_router.get("", response_model=VersionOut)
async def get_recap(ref: ReadingChat, db_session: Db, line: Line = None) -> Response:
    """Return the running recap."""
    return OrjsonResponse(await _recap_out(db_session, ref, line))


@recap_router.put("", response_model=VersionOut)
async def write_recap(ref: WritingChat, body: NarrativeIn, db_session: Db, clock: Now) -> Response:
    """Replace the running recap with your own text. The next fold may change its words."""
    await recap.write_recap(db_session, ref, body.text, now=clock())
    return OrjsonResponse(await _recap_out(db_session, ref))


@recap_router.get("/versions", response_model=Page[VersionOut])
async def list_recap_versions(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the versions of the running recap, newest first."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    found = await recap.list_versions(db_session, ref, line=line, before=before, limit=limit + 1)
    return OrjsonResponse(versions_page(found, limit))


@recap_router.get("/versions/{version}", response_model=VersionOut)
async def get_recap_version(ref: ReadingChat, version: VersionPath, db_session: Db, line: Line = None) -> Response:
    """Return one version of the running recap."""
    return OrjsonResponse(version_out(await recap.get_version(db_session, ref, version, line=line)))


@recap_router.put("/current", response_model=VersionOut)
async def choose_recap_version(ref: WritingChat, body: ChooseVersion, db_session: Db, clock: Now) -> Response:
    """Make another version of the running recap current.

    If this version does not cover all closed scenes, the service adds the others to it, which makes new versions.
    """
    await recap.choose_version(db_session, ref, body.version, now=clock())
    await db_session.run_deferred()
    return OrjsonResponse(version_out(await recap.get_version(db_session, ref, body.version)))


@recap_router.delete("/versions/{version}", status_code=204)
async def delete_recap_version(ref: WritingChat, version: VersionPath, db_session: Db, clock: Now) -> None:
    """Delete a version. If it was the current one, the highest remaining version becomes current."""
    await recap.delete_version(db_session, ref, version, now=clock())


@recap_router.post("/rebuild", status_code=202, response_model=ScheduledOut)
async def rebuild_recap(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Rebuild the running recap from the first scene on, in the background.

    If you write a text or choose a version meanwhile, the rebuild is cancelled.
    """
    return OrjsonResponse(scheduled_out(await recap.rebuild(db_session, ref, now=clock())), status_code=202)


async def _recap_out(db_session: DbSession, ref: ChatRef, line: UUID | None = None) -> dict[str, Any]:
    """Return the version in use after the changes of this transaction."""
    await db_session.run_deferred()
    return version_out(await recap.get_recap(db_session, ref, line=line))
