"""HTTP routes of the running recap."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.chats.service import ChatRef
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor
from app.kit.wire import JsonAnswer
from app.narratives.schemas import NarrativeIn, VersionOut, VersionPath, version_out, versions_page
from app.scenes import recap
from app.scenes.schemas import ChooseVersion, ScheduledOut, scheduled_out

router = APIRouter(prefix="/v1/chats/{chat_id}/recap", tags=["narratives"])


@router.get("", response_model=VersionOut)
async def get_recap(ref: ReadingChat, db_session: Db, line: Line = None) -> Response:
    """Return the version of the running recap that is in use."""
    return JsonAnswer(await _recap_out(db_session, ref, line))


@router.put("", response_model=VersionOut)
async def write_recap(ref: WritingChat, body: NarrativeIn, db_session: Db, clock: Now) -> Response:
    """Replace the running recap with your own text. The next fold builds on it."""
    await recap.write_recap(db_session, ref, body.text, now=clock())
    return JsonAnswer(await _recap_out(db_session, ref))


@router.get("/versions", response_model=Page[VersionOut])
async def list_recap_versions(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the versions of the running recap, newest first. Each is one fold, or a text that a person wrote."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    found = await recap.list_versions(db_session, ref, line=line, before=before, limit=limit + 1)
    return JsonAnswer(versions_page(found, limit))


@router.get("/versions/{version}", response_model=VersionOut)
async def get_recap_version(ref: ReadingChat, version: VersionPath, db_session: Db, line: Line = None) -> Response:
    """Return one version of the running recap."""
    return JsonAnswer(version_out(await recap.get_version(db_session, ref, version, line=line)))


@router.put("/current", response_model=VersionOut)
async def choose_recap_version(ref: WritingChat, body: ChooseVersion, db_session: Db, clock: Now) -> Response:
    """Make another version current. With the next new scene, everything that follows it is folded in again."""
    await recap.choose_version(db_session, ref, body.version, now=clock())
    await db_session.run_deferred()
    return JsonAnswer(version_out(await recap.get_version(db_session, ref, body.version)))


@router.delete("/versions/{version}", status_code=204)
async def delete_recap_version(ref: WritingChat, version: VersionPath, db_session: Db, clock: Now) -> None:
    """Delete a version. If it was the current one, the highest remaining version becomes current."""
    await recap.delete_version(db_session, ref, version, now=clock())


@router.post("/rebuild", status_code=202, response_model=ScheduledOut)
async def rebuild_recap(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Rebuild the running recap from the first scene on, in the background.

    If you write a text or choose a version meanwhile, that stays and the rebuild is cancelled.
    """
    return JsonAnswer(scheduled_out(await recap.rebuild(db_session, ref, now=clock())), status_code=202)


async def _recap_out(db_session: DbSession, ref: ChatRef, line: UUID | None = None) -> dict[str, Any]:
    """Return the version in use after the changes of this transaction."""
    await db_session.run_deferred()
    return version_out(await recap.get_recap(db_session, ref, line=line))
