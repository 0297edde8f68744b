"""Dependencies of routes about a chat: the chat of the path, a line, a seq."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from app.chats.chat_lock import ChatRef
from app.chats.covering_layer import CoveringLayer
from app.kit.auth import Reader, Writer, reader, writer
from app.kit.deps import set_share
from app.kit.fast_path import read_path
from app.kit.validation_errors import CHAT_ID_PATTERN
from app.kit.wire import MAX_SEQ, Text

ChatId = Annotated[
    str,
    Path(
        pattern=CHAT_ID_PATTERN,
        description="The chat's id, chosen by the caller.",
        examples=["lighthouse"],
    ),
]
MessageIdPath = Annotated[Text, Path(min_length=1, max_length=128, description="The message's id.", examples=["m1"])]
Line = Annotated[UUID | None, Query(description="The line to read; the current one by default.")]
Seq = Annotated[int, Field(ge=0, le=MAX_SEQ)]


async def reading(chat_id: ChatId, caller: Reader) -> ChatRef:
    """Return the chat of the path, for a caller with read access."""
    return ChatRef.of(caller, chat_id)


async def writing(request: Request, chat_id: ChatId, caller: Writer) -> ChatRef:
    """Return the chat of the path, for a caller with write access. Requests that change the same chat take turns."""
    ref = ChatRef.of(caller, chat_id)
    set_share(request, ref.tenant, ref.key)
    return ref


async def read_reading(request: Request) -> ChatRef:
    """Return what `reading` returns, for a route on the fast path."""
    return ChatRef.of(await reader(request), read_path(request, "chat_id", CHAT_ID_PATTERN))


async def read_writing(request: Request) -> ChatRef:
    """Return what `writing` returns, for a route on the fast path."""
    return ChatRef.of(await writer(request), read_path(request, "chat_id", CHAT_ID_PATTERN))


async def layers(request: Request) -> Sequence[CoveringLayer]:
    """Return the memory layers of the app."""
    found: Sequence[CoveringLayer] = request.app.state.layers
    return found


ReadingChat = Annotated[ChatRef, Depends(reading)]
WritingChat = Annotated[ChatRef, Depends(writing)]
Layers = Annotated[Sequence[CoveringLayer], Depends(layers)]
