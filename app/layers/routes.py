"""HTTP of what all layers have."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.chats.deps import Line, ReadingChat
from app.chats.service import get_line
from app.kit.deps import Db
from app.kit.wire import JsonAnswer
from app.layers.deps import Layers
from app.layers.state import read_state

router = APIRouter(prefix="/v1/chats/{chat_id}", tags=["chats"])


class StateOut(BaseModel):
    """What every layer knows of a line."""

    line: UUID = Field(description="The line.")
    layers: dict[str, Any] = Field(description="The state of each layer, by its name: as a rule the rows it stores.")


@router.get("/state", response_model=StateOut)
async def read_layers_state(ref: ReadingChat, db_session: Db, layers: Layers, line: Line = None) -> Response:
    """Everything that the layers know of a chat, stale and deleted rows included, to look into or to keep.

    The answer grows with the chat.
    """
    chat = await get_line(db_session, ref, line)
    states = {layer.name: await read_state(db_session, layer, (ref.key, chat.line_id)) for layer in layers}
    return JsonAnswer({"line": chat.line_id, "layers": states})
