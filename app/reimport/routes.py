"""HTTP of re-imports."""

from fastapi import APIRouter, Response

from app.chats.deps import WritingChat
from app.kit.auth import KeyedRoute
from app.kit.deps import Db, Now
from app.kit.wire import OrjsonResponse
from app.lines.limits import Limits
from app.messages.schemas import MessagesPut, MessagesPutOut
from app.reimport import service

router = APIRouter(prefix="/v1/chats/{chat_id}/messages", tags=["messages"], route_class=KeyedRoute)


@router.put("", response_model=MessagesPutOut)
async def put_messages(ref: WritingChat, wanted: MessagesPut, db_session: Db, clock: Now, limits: Limits) -> Response:
    """Replace the chat's messages with this list, changing only what differs: a re-import.

    Messages are matched by id; messages without an id are matched by role, name and text, in order. A sent message
    without an id also matches a stored message if both have the same role and are between the same two matched
    messages; its text then counts as edited. Messages that differ are changed in place, missing messages are deleted,
    and new messages at the end are appended. If the last messages of the list equal messages that were deleted at the
    end of the chat, those are restored. The schema MessagePut has the rules for swipes and for omitted fields.

    If the list inserts or reorders messages, a new line becomes current, and the former line can still be read. The
    newest `MEMOBOOK_KEPT_REPLACED_LINES` (20) of the lines that re-imports have replaced are kept. A line that a
    restore or a switch made current is always kept, and so is the first line of a forked chat.
    """
    outcome = await service.put_messages(db_session, ref, wanted.messages, limits=limits, now=clock())
    return OrjsonResponse(
        {"added": outcome.added, "changed": outcome.changed, "removed": outcome.removed, "line": outcome.line_id}
    )
