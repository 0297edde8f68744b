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

    Messages are matched by id; messages without an id are matched by role, name and text, in order. If a sent message
    without an id and a stored message have the same role and are between the same two matched messages, the sent one
    becomes a new text of the stored one. If the last messages of the list equal messages that were deleted at the end
    of the chat, those are restored. Messages that differ are edited in place, missing messages are deleted, and new
    messages at the end are appended. If a new text is one of the message's swipes, that swipe is selected; swipes that
    the message does not have yet are added. If an optional field is left out, a matched message keeps its value; null
    clears it.

    If messages were inserted or reordered, a new line becomes current, and the former line can still be read. The
    newest `MEMOBOOK_KEPT_REPLACED_LINES` (20) of the lines that re-imports have replaced are kept. A line that a
    restore or a switch made current is always kept, and so is the first line of a forked chat.
    """
    outcome = await service.put_messages(db_session, ref, wanted.messages, limits=limits, now=clock())
    return OrjsonResponse(
        {"added": outcome.added, "changed": outcome.changed, "removed": outcome.removed, "line": outcome.line_id}
    )
