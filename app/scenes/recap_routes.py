"""HTTP of the running recap."""

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
    """The running recap of all scenes, as it stands in the prompt."""
    return JsonAnswer(await _recap_out(db_session, ref, line))


@router.put("", response_model=VersionOut)
async def write_recap(ref: WritingChat, body: NarrativeIn, db_session: Db, clock: Now) -> Response:
    """Replace the running recap by your own words; the next fold builds on them."""
    await recap.write_recap(db_session, ref, body.text, now=clock())
    return JsonAnswer(await _recap_out(db_session, ref))


@router.get("/versions", response_model=Page[VersionOut])
async def list_recap_versions(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Its versions, newest first: each is one fold, or what a person wrote."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    found = await recap.list_versions(db_session, ref, line=line, before=before, limit=limit + 1)
    return JsonAnswer(versions_page(found, limit))


@router.get("/versions/{version}", response_model=VersionOut)
async def get_recap_version(ref: ReadingChat, version: VersionPath, db_session: Db, line: Line = None) -> Response:
    """One version."""
    return JsonAnswer(version_out(await recap.get_version(db_session, ref, version, line=line)))


@router.put("/current", response_model=VersionOut)
async def choose_recap_version(ref: WritingChat, body: ChooseVersion, db_session: Db, clock: Now) -> Response:
    """Go on with another version; the next scene brings in what follows it."""
    await recap.choose_version(db_session, ref, body.version, now=clock())
    await db_session.run_deferred()
    return JsonAnswer(version_out(await recap.get_version(db_session, ref, body.version)))


@router.delete("/versions/{version}", status_code=204)
async def delete_recap_version(ref: WritingChat, version: VersionPath, db_session: Db, clock: Now) -> None:
    """Delete a version; where it was the current one, the highest that is left is."""
    await recap.delete_version(db_session, ref, version, now=clock())


@router.post("/rebuild", status_code=202, response_model=ScheduledOut)
async def rebuild_recap(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """Have the running recap told anew from the first scene on, in the background.

    What you write or choose meanwhile stays: it ends the rebuild.
    """
    return JsonAnswer(scheduled_out(await recap.rebuild(db_session, ref, now=clock())), status_code=202)


async def _recap_out(db_session: DbSession, ref: ChatRef, line: UUID | None = None) -> dict[str, Any]:
    """The version as this transaction leaves it."""
    await db_session.run_deferred()
    return version_out(await recap.get_recap(db_session, ref, line=line))
