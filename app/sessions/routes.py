"""HTTP routes of sessions."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.kit.auth import KeyedRoute
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import MAX_SEQ, OrjsonResponse
from app.sessions import book
from app.sessions.schemas import SessionOut, session_out

SessionNumber = Annotated[int, Path(ge=1, le=MAX_SEQ, description="The session's number.", examples=[1])]

router = APIRouter(prefix="/v1/chats/{chat_id}/sessions", tags=["lines"], route_class=KeyedRoute)


@router.get("", response_model=Page[SessionOut])
async def list_sessions(
    ref: ReadingChat, db_session: Db, line: Line = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the sessions in story order. The last one is open.

    A session ends by hand or, depending on the settings `sessions`, after a long pause, at a set hour of the day, or
    after a number of turns.
    """
    after_number = decode_cursor(cursor, int)[0] if cursor else 0
    found = await book.list_sessions(db_session, ref, line=line, after_number=after_number, limit=limit + 1)
    items = [session_out(listed) for listed in found]
    return OrjsonResponse(make_page(items[:limit], [(item["number"],) for item in items]))


@router.post("/break", status_code=201, response_model=SessionOut, responses={200: {"model": SessionOut}})
async def end_session(ref: WritingChat, db_session: Db, clock: Now) -> Response:
    """End the open session and begin a new one (201).

    The history is cut once memories cover what the cut removes; at least `history.keep_messages` messages stay. If the
    open session has no messages, it stays open and is returned (200).
    """
    is_new, listed = await book.end_session(db_session, ref, now=clock())
    return OrjsonResponse(session_out(listed), status_code=201 if is_new else 200)


@router.get("/{number}", response_model=SessionOut)
async def get_session(ref: ReadingChat, number: SessionNumber, db_session: Db, line: Line = None) -> Response:
    """Return one session."""
    return OrjsonResponse(session_out(await book.get_session(db_session, ref, number, line=line)))
