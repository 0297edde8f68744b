"""HTTP of chats and of reading messages; appending them, with a context in the same answer, is in `context`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from app.chats import service
from app.chats.deps import Layers, Line, MessageIdPath, ReadingChat, Seq, WritingChat
from app.chats.layers import Layer
from app.chats.models import Chat, Message
from app.chats.presets import PRESET_TEXTS
from app.chats.schemas import ChatOut, ChatPut, MessageDetail, PresetOut, Presets
from app.chats.service import Bounds
from app.chats.settings import ChatSettings, effective
from app.kit.auth import Reader, Writer
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import JsonAnswer

router = APIRouter(prefix="/v1", tags=["chats"])
message_router = APIRouter(prefix="/v1", tags=["messages"])


@router.put("/chats/{chat_id}", response_model=ChatOut, responses={201: {"model": ChatOut}})
async def put_chat(ref: WritingChat, put: ChatPut, db_session: Db, clock: Now) -> Response:
    """Create a chat (201) or merge into it (200)."""
    chat, created = await service.put_chat(db_session, ref, put, now=clock())
    (out,) = await _chats_out(db_session, [chat])
    return JsonAnswer(out, status_code=201 if created else 200)


@router.get("/chats/{chat_id}", response_model=ChatOut)
async def get_chat(ref: ReadingChat, db_session: Db) -> Response:
    """A chat with its effective settings and counters."""
    (out,) = await _chats_out(db_session, [await service.get_chat(db_session, ref)])
    return JsonAnswer(out)


@router.get("/chats", response_model=Page[ChatOut])
async def list_chats(
    caller: Reader,
    db_session: Db,
    user_id: Annotated[str | None, Query(max_length=200, description="Only this user's, by last activity.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Chats by creation, newest first; one user's by last activity."""
    before = decode_cursor(cursor, datetime, UUID) if cursor else None
    chats = await service.list_chats(
        db_session,
        caller,
        user_id=user_id,
        limit=limit + 1,
        before=(before[0], before[1]) if before else None,
    )
    by_activity = user_id is not None or caller.user_id is not None
    page, more = chats[:limit], len(chats) > limit
    last = page[-1] if page else None
    key = (last.last_active_at if by_activity else last.created_at, last.chat_key) if last else ()
    items = await _chats_out(db_session, page)
    return JsonAnswer({"items": items, "next_cursor": encode_cursor(*key) if more else None})


@router.delete("/chats/{chat_id}", status_code=204)
async def erase_chat(ref: WritingChat, db_session: Db) -> None:
    """Erase a chat with everything made of it."""
    await service.erase_chat(db_session, ref)


@router.delete("/users/{user_id}", status_code=204)
async def erase_user(
    user_id: Annotated[str, Path(min_length=1, max_length=200, description="The caller's id of the user.")],
    caller: Writer,
    db_session: Db,
) -> None:
    """Erase all chats of a user."""
    await service.erase_user(db_session, caller, user_id)


@router.get("/presets")
async def list_presets(caller: Reader) -> Presets:  # noqa: ARG001 - needs a key like everything else
    """Every preset with its settings, and what each setting means."""
    items = []
    for name, text in PRESET_TEXTS.items():
        settings = effective({"preset": name})
        items.append(
            PresetOut(name=name, description=text, settings=settings, missing_layers=settings.missing_layers())
        )
    return Presets(items=items, settings_schema=ChatSettings.model_json_schema())


@message_router.get("/chats/{chat_id}/messages", response_model=Page[MessageDetail])
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
    line_id = await service.get_line(db_session, ref, line)
    bounds = Bounds(after_seq, before_seq, around_seq)
    messages, more = await service.list_page(db_session, ref, line_id, bounds, limit)
    items = await _details(db_session, layers, line_id, messages)
    return JsonAnswer({"items": items, "next_cursor": encode_cursor(messages[-1].seq) if more else None})


@message_router.get("/chats/{chat_id}/messages/{message_id}", response_model=MessageDetail)
async def get_message(
    ref: ReadingChat, message_id: MessageIdPath, db_session: Db, layers: Layers, line: Line = None
) -> Response:
    """One message."""
    line_id = await service.get_line(db_session, ref, line)
    message = await service.get_message(db_session, ref, line_id, message_id)
    (detail,) = await _details(db_session, layers, line_id, [message])
    return JsonAnswer(detail)


async def _details(
    db_session: DbSession, layers: Sequence[Layer], line_id: UUID, messages: Sequence[Message]
) -> list[dict[str, Any]]:
    """Messages with what covers each of them."""
    if not messages:
        return []
    first, last = messages[0], messages[-1]
    covers = [
        cover
        for layer in layers
        for cover in await layer.list_covers(db_session, first.chat_key, line_id, first.seq, last.seq)
        if cover.kind == "memo"
    ]
    return [
        service.message_detail(message, next((c.id for c in covers if c.first_seq <= message.seq <= c.last_seq), None))
        for message in messages
    ]


async def _chats_out(db_session: DbSession, chats: Sequence[Chat]) -> list[dict[str, Any]]:
    counted = await service.count_work(db_session, chats)
    return [_chat_out(chat, due, failed) for chat, (due, failed) in zip(chats, counted, strict=True)]


def _chat_out(chat: Chat, due: int, failed: int) -> dict[str, Any]:
    return {
        "chat_id": chat.chat_id,
        "user_id": chat.user_id,
        "characters": chat.characters,
        "user_persona": chat.user_persona,
        "system_prompt": chat.system_prompt,
        "settings": effective(chat.settings).model_dump(),
        "time_zone": chat.time_zone,
        "language": chat.language,
        "metadata": chat.chat_metadata,
        "counters": {
            "messages": chat.message_count,
            "turns": chat.turn_count,
            "tokens": chat.token_count,
            "memos": chat.memo_count,
        },
        "line": chat.line_id,
        "anchor_seq": chat.anchor_seq,
        "head_seq": chat.head_seq,
        "work": {"due": due, "failed": failed},
        "created_at": chat.created_at,
        "last_active_at": chat.last_active_at,
    }
