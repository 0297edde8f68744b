"""HTTP of messages; appending them, with a context in the same answer, is in `context`.

A message's id is the caller's and may hold a slash, so in a path it takes up all there is (`:path`); what has
something behind the id is declared before what has not.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from app.chats import service
from app.chats.coverage import Coverage
from app.chats.deps import Layers, Line, MessageIdPath, ReadingChat, Seq, WritingChat
from app.chats.layers import CoveringLayer
from app.chats.message_schemas import (
    MessageDetail,
    MessagePatch,
    MessagesPut,
    MessagesPutOut,
    RevisionOut,
    SwipeIn,
    SwipeSelect,
    VisibilityIn,
    VisibilityOut,
)
from app.chats.models import Message
from app.chats.service import Bounds
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import MAX_SEQ, JsonAnswer

router = APIRouter(prefix="/v1/chats/{chat_id}/messages", tags=["messages"])


@router.put("", response_model=MessagesPutOut)
async def put_messages(ref: WritingChat, wanted: MessagesPut, db_session: Db, clock: Now) -> Response:
    """Make the chat be this list: a re-import that touches only what differs.

    Messages are matched by id, those without one by role, name and text in order. What differs is edited in place,
    what is missing leaves a tombstone, what is new at the end is appended. If messages were inserted or reordered, a
    new line begins, and the former one stays readable. An optional field that a matched message leaves out stays as
    it is; null clears it.
    """
    outcome = await service.put_messages(db_session, ref, wanted.messages, now=clock())
    return JsonAnswer(
        {"added": outcome.added, "changed": outcome.changed, "removed": outcome.removed, "line": outcome.line_id}
    )


@router.get("", response_model=Page[MessageDetail])
async def list_messages(
    ref: ReadingChat,
    db_session: Db,
    layers: Layers,
    line: Line = None,
    after_seq: Annotated[Seq | None, Query(description="Only later ones.")] = None,
    before_seq: Annotated[Seq | None, Query(description="Only earlier ones; alone, the last of them.")] = None,
    around_seq: Annotated[Seq | None, Query(description="A page with this one in its middle.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """A page of messages in `seq` order; bounds are exclusive."""
    if cursor:
        (after_seq,), around_seq = decode_cursor(cursor, int), None
    line_id = (await service.get_line(db_session, ref, line)).line_id
    bounds = Bounds(after_seq, before_seq, around_seq)
    messages, more = await service.list_page(db_session, ref, line_id, bounds, limit)
    items = await _details(db_session, layers, messages)
    return JsonAnswer({"items": items, "next_cursor": encode_cursor(messages[-1].seq) if more else None})


@router.delete("", status_code=204)
async def cut_off_messages(
    ref: WritingChat,
    from_seq: Annotated[int, Query(ge=1, le=MAX_SEQ, description="The first message that goes.", examples=[2])],
    db_session: Db,
    clock: Now,
) -> None:
    """Cut off the end: the messages from `from_seq` on leave tombstones, and the story goes on before them."""
    await service.cut_off_end(db_session, ref, from_seq, now=clock())


@router.post("/visibility", response_model=VisibilityOut)
async def set_visibility(ref: WritingChat, body: VisibilityIn, db_session: Db, clock: Now) -> Response:
    """Hide and show ranges of messages, all at once."""
    ranges = [(given.first_seq, given.last_seq, "user" if given.hidden else None) for given in body.ranges]
    changed = await service.set_visibility(db_session, ref, ranges, now=clock())
    return JsonAnswer({"changed": changed})


@router.get("/{message_id:path}/revisions", response_model=Page[RevisionOut])
async def list_revisions(
    ref: ReadingChat,
    message_id: MessageIdPath,
    db_session: Db,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """What a message said before its edits, newest first."""
    before = decode_cursor(cursor, int)[0] if cursor else None
    line_id = (await service.get_line(db_session, ref, line)).line_id
    message = await service.get_message(db_session, ref, line_id, message_id)
    revisions = await service.list_revisions(db_session, message, before=before, limit=limit + 1)
    items = [
        {
            "number": revision.number,
            "role": revision.role,
            "name": revision.name,
            "content": revision.content,
            "swipe": revision.swipe,
            "replaced_at": revision.replaced_at,
        }
        for revision in revisions[:limit]
    ]
    more = len(revisions) > limit
    return JsonAnswer({"items": items, "next_cursor": encode_cursor(items[-1]["number"]) if more else None})


@router.get("/{message_id:path}", response_model=MessageDetail)
async def get_message(
    ref: ReadingChat, message_id: MessageIdPath, db_session: Db, layers: Layers, line: Line = None
) -> Response:
    """One message."""
    line_id = (await service.get_line(db_session, ref, line)).line_id
    return await _answer(db_session, layers, await service.get_message(db_session, ref, line_id, message_id))


@router.patch("/{message_id:path}", response_model=MessageDetail)
async def edit_message(
    ref: WritingChat, message_id: MessageIdPath, patch: MessagePatch, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Edit a message, exclude it from memory, pin or hide it; what it said before is kept."""
    message = await service.edit_message(db_session, ref, message_id, patch.given(), now=clock())
    return await _answer(db_session, layers, message)


@router.delete("/{message_id:path}", status_code=204)
async def delete_message(ref: WritingChat, message_id: MessageIdPath, db_session: Db, clock: Now) -> None:
    """Delete a message; it leaves a tombstone, and its id and seq are never free again."""
    await service.delete_message(db_session, ref, message_id, now=clock())


@router.post("/{message_id:path}/swipes", status_code=201, response_model=MessageDetail)
async def add_swipe(
    ref: WritingChat, message_id: MessageIdPath, swipe: SwipeIn, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Add an alternative text and select it; the others are kept, and nothing but this list shows them."""
    message = await service.add_swipe(db_session, ref, message_id, swipe.content, now=clock())
    return await _answer(db_session, layers, message, status=201)


@router.put("/{message_id:path}/swipes/selected", response_model=MessageDetail)
async def select_swipe(
    ref: WritingChat, message_id: MessageIdPath, chosen: SwipeSelect, db_session: Db, layers: Layers, clock: Now
) -> Response:
    """Select one of the alternative texts."""
    message = await service.select_swipe(db_session, ref, message_id, chosen.index, now=clock())
    return await _answer(db_session, layers, message)


async def _answer(
    db_session: DbSession, layers: Sequence[CoveringLayer], message: Message, *, status: int = 200
) -> Response:
    """A message as this transaction leaves it."""
    (detail,) = await _details(db_session, layers, [message])
    return JsonAnswer(detail, status_code=status)


async def _details(
    db_session: DbSession, layers: Sequence[CoveringLayer], messages: Sequence[Message]
) -> list[dict[str, Any]]:
    """Messages of a line with their swipes and with what covers each of them."""
    if not messages:
        return []
    first, last = messages[0], messages[-1]
    covers = [
        cover
        for layer in layers
        if layer.names_messages
        for cover in await layer.list_coverage(db_session, first.chat_key, first.line_id, first.seq, last.seq)
    ]
    swipes = await service.list_swipes(db_session, messages)
    return [
        service.message_detail(
            message,
            swipes[message.seq],
            _memo_of(message, covers),
        )
        for message in messages
    ]


def _memo_of(message: Message, covers: Sequence[Coverage]) -> UUID | None:
    memo = next((cover.id for cover in covers if cover.first_seq <= message.seq <= cover.last_seq), None)
    return UUID(memo) if memo else None
