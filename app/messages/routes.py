"""HTTP routes of messages. The append is in `context`, because it can return a context; the re-import in `reimport`.

The caller chooses a message's id, which may contain a slash, so the path parameter matches the rest of the path
(`:path`). Routes are matched in order, so the GET of the revisions is declared before the GET of the message.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from app.chats import service as chats
from app.chats.coverage import Coverage
from app.chats.covering_layer import CoveringLayer
from app.chats.deps import Layers, Line, MessageIdPath, ReadingChat, Seq, WritingChat
from app.chats.models import Message
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import MAX_SEQ, OrjsonResponse
from app.messages import editing, service, swipes
from app.messages.schemas import (
    MessageDetail,
    MessagePatch,
    RevisionOut,
    SwipeIn,
    SwipeSelect,
    VisibilityIn,
    VisibilityOut,
)
from app.messages.service import Bounds

router = APIRouter(prefix="/v1/chats/{chat_id}/messages", tags=["messages"], route_class=KeyedRoute)


@router.get("", response_model=Page[MessageDetail])
async def list_messages(
    ref: ReadingChat,
    db_session: Db,
    layers: Layers,
    line: Line = None,
    after_seq: Annotated[Seq | None, Query(description="Only messages after this seq.")] = None,
    before_seq: Annotated[
        Seq | None,
        Query(description="Only messages before this seq. Without `after_seq`, the page has the newest of these."),
    ] = None,
    around_seq: Annotated[Seq | None, Query(description="A page with the message at this seq in the middle.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List messages in the order of their seqs.

    A page has at most 4 MiB of text, so it can be shorter than `limit`.
    """
    if cursor:
        (after_seq,), around_seq = decode_cursor(cursor, int), None
    line_id = (await chats.get_line(db_session, ref, line)).line_id
    bounds = Bounds(after_seq, before_seq, around_seq)
    messages, more = await service.list_page(db_session, ref, line_id, bounds, limit)
    items = await _details(db_session, layers, messages)
    return OrjsonResponse({"items": items, "next_cursor": encode_cursor(messages[-1].seq) if more else None})


@router.delete("", status_code=204)
async def cut_off_messages(
    ref: WritingChat,
    from_seq: Annotated[int, Query(ge=1, le=MAX_SEQ, description="The first message to delete.", examples=[2])],
    db_session: Db,
    clock: Now,
) -> None:
    """Delete all messages from a seq on.

    Their ids and seqs are not reused on this line. A re-import that contains these ids restores the messages.
    """
    await editing.cut_off_end(db_session, ref, from_seq, now=clock())


@router.post("/visibility", response_model=VisibilityOut)
async def set_visibility(ref: WritingChat, body: VisibilityIn, db_session: Db, clock: Now) -> Response:
    """Hide and un-hide ranges of messages."""
    ranges = [(given.first_seq, given.last_seq, "user" if given.hidden else None) for given in body.ranges]
    changed = await editing.set_visibility(db_session, ref, ranges, now=clock())
    return OrjsonResponse({"changed": changed})


@router.get("/{message_id:path}/revisions", response_model=Page[RevisionOut])
async def list_revisions(
    ref: ReadingChat,
    message_id: MessageIdPath,
    db_session: Db,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the former texts of a message (its revisions), newest first."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    line_id = (await chats.get_line(db_session, ref, line)).line_id
    message = await service.get_message(db_session, ref, line_id, message_id)
    revisions, more = await service.list_revisions(db_session, message, before=before, limit=limit)
    items = [
        {
            "number": revision.number,
            "role": revision.role,
            "name": revision.name,
            "content": revision.content,
            "swipe": revision.swipe,
            "replaced_at": revision.replaced_at,
        }
        for revision in revisions
    ]
    return OrjsonResponse({"items": items, "next_cursor": encode_cursor(items[-1]["number"]) if more else None})


@router.get("/{message_id:path}", response_model=MessageDetail)
async def get_message(
    ref: ReadingChat, message_id: MessageIdPath, db_session: Db, layers: Layers, line: Line = None
) -> Response:
    """Get a message."""
    line_id = (await chats.get_line(db_session, ref, line)).line_id
    return await _answer(db_session, layers, await service.get_message(db_session, ref, line_id, message_id))


@router.patch("/{message_id:path}", response_model=MessageDetail)
async def edit_message(
    ref: WritingChat, message_id: MessageIdPath, patch: MessagePatch, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Edit, exclude, pin or hide a message."""
    message = await editing.edit_message(db_session, ref, message_id, patch.given(), now=clock())
    return await _answer(db_session, layers, message)


@router.delete("/{message_id:path}", status_code=204)
async def delete_message(ref: WritingChat, message_id: MessageIdPath, db_session: Db, clock: Now) -> None:
    """Delete a message.

    Its id and seq are not reused on this line. A re-import that contains this id restores the message.
    """
    await editing.delete_message(db_session, ref, message_id, now=clock())


@router.post("/{message_id:path}/swipes", status_code=201, response_model=MessageDetail)
async def add_swipe(
    ref: WritingChat, message_id: MessageIdPath, swipe: SwipeIn, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Add an alternative text and select it. The other texts are kept, but appear only in `swipes`."""
    message = await swipes.add_swipe(db_session, ref, message_id, swipe.content, now=clock())
    return await _answer(db_session, layers, message, status=201)


@router.put("/{message_id:path}/swipes/selected", response_model=MessageDetail)
async def select_swipe(
    ref: WritingChat, message_id: MessageIdPath, chosen: SwipeSelect, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Select one of the alternative texts."""
    message = await swipes.select_swipe(db_session, ref, message_id, chosen.index, now=clock())
    return await _answer(db_session, layers, message)


async def _answer(
    db_session: DbSession, layers: Sequence[CoveringLayer], message: Message, *, status: int = 200
) -> Response:
    """Return a response with the message, as this transaction leaves it."""
    (detail,) = await _details(db_session, layers, [message])
    return OrjsonResponse(detail, status_code=status)


async def _details(
    db_session: DbSession, layers: Sequence[CoveringLayer], messages: Sequence[Message]
) -> list[dict[str, Any]]:
    """Return messages of a line as JSON, each with its swipes and the memo that covers it."""
    if not messages:
        return []
    first, last = messages[0], messages[-1]
    covers = [
        cover
        for layer in layers
        if layer.sets_memo_id
        for cover in await layer.list_coverage(db_session, first.chat_key, first.line_id, first.seq, last.seq)
    ]
    listed = await swipes.list_swipes(db_session, messages)
    return [
        service.message_detail(
            message,
            listed[message.seq],
            _memo_of(message, covers),
        )
        for message in messages
    ]


def _memo_of(message: Message, covers: Sequence[Coverage]) -> UUID | None:
    memo = next((cover.id for cover in covers if cover.first_seq <= message.seq <= cover.last_seq), None)
    return UUID(memo) if memo else None
