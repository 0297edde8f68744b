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
    """Replace all messages with a list: a re-import. Only what differs is changed.

    Messages are matched by id. Those without an id are matched by role, name and text, in order; if the text was
    changed, a message with the same role between the same neighbours matches, and counts as edited. Messages that
    differ are changed in place, missing ones are deleted, and new ones at the end are appended. A deleted message is
    restored if the list has its id. Without ids, messages that were deleted at the end of the chat are restored if the
    list ends with their texts. The schema MessagePut has the rules for swipes and omitted fields.

    If the list inserts or reorders messages, a new line becomes current, and the former one can still be read. The
    newest `MEMOBOOK_KEPT_REPLACED_LINES` (20) of such former lines are kept.
    """
    outcome = await service.put_messages(db_session, ref, wanted.messages, limits=limits, now=clock())
    return OrjsonResponse(
        {"added": outcome.added, "changed": outcome.changed, "removed": outcome.removed, "line": outcome.line_id}
    )
