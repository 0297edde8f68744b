"""HTTP routes of the rolling summary."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from app.chats.chat_lock import ChatRef
from app.chats.deps import Line, ReadingChat, WritingChat
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor
from app.kit.wire import OrjsonResponse
from app.narratives.schemas import ChooseVersion, RegenerateNarrative, VersionPath, versions_page
from app.summary import book
from app.summary.schemas import RegeneratingSummary, SummaryIn, SummaryOut, summary_out

router = APIRouter(prefix="/v1/chats/{chat_id}/summary", tags=["narratives"], route_class=KeyedRoute)


@router.get("", response_model=SummaryOut)
async def get_summary(ref: ReadingChat, db_session: Db, line: Line = None) -> Response:
    """Return the summary. It enters the prompt once all messages that it covers have left the history.

    A text that a person wrote with `keep: true` enters the prompt at once.
    """
    return OrjsonResponse(await _summary_out(db_session, ref, line))


@router.put("", response_model=SummaryOut)
async def write_summary(ref: WritingChat, body: SummaryIn, db_session: Db, clock: Now) -> Response:
    """Replace the summary with your own text.

    By default, every later version contains it word for word, followed by a summary of later messages.
    With `keep: false`, the next fold may change its words.
    """
    await book.write_summary(db_session, ref, body.text, keep=body.keep, now=clock())
    return OrjsonResponse(await _summary_out(db_session, ref))


@router.put("/current", response_model=SummaryOut)
async def choose_summary_version(ref: WritingChat, body: ChooseVersion, db_session: Db, clock: Now) -> Response:
    """Make another version of the summary current.

    The messages that it does not cover are folded again. Later versions stay in the list.
    """
    await book.choose_version(db_session, ref, body.version, now=clock())
    await db_session.run_deferred()
    return OrjsonResponse(summary_out(await book.get_version(db_session, ref, body.version, line=None)))


@router.post("/regenerate", status_code=202, response_model=RegeneratingSummary)
async def regenerate_summary(
    ref: WritingChat, db_session: Db, clock: Now, wish: RegenerateNarrative | None = None
) -> Response:
    """Make the newest fold of the summary again in the background. The result replaces the former one.

    Without `replace_edited`, `kept_text` stays, and the request is refused if a person wrote the newest version. With
    `replace_edited`, the person's text and `kept_text` are removed, and the messages that the removed text covered are
    folded again.
    """
    wish = wish or RegenerateNarrative()
    work_id = await book.regenerate_summary(
        db_session, ref, instruction=wish.instruction, replace_edited=wish.replace_edited, now=clock()
    )
    return OrjsonResponse(await _summary_out(db_session, ref) | {"work_id": work_id}, status_code=202)


@router.get("/versions", response_model=Page[SummaryOut])
async def list_summary_versions(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the versions of the summary, newest first."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    found = await book.list_versions(db_session, ref, line=line, before=before, limit=limit + 1)
    return OrjsonResponse(versions_page(found, limit, summary_out))


@router.get("/versions/{version}", response_model=SummaryOut)
async def get_summary_version(ref: ReadingChat, version: VersionPath, db_session: Db, line: Line = None) -> Response:
    """Return one version of the summary."""
    return OrjsonResponse(summary_out(await book.get_version(db_session, ref, version, line=line)))


async def _summary_out(db_session: DbSession, ref: ChatRef, line: UUID | None = None) -> dict[str, Any]:
    await db_session.run_deferred()
    return summary_out(await book.get_summary(db_session, ref, line=line))
