"""HTTP of the state of all layers."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.chats.deps import Line, ReadingChat
from app.chats.service import get_line
from app.kit.auth import KeyedRoute
from app.kit.deps import Db
from app.kit.wire import OrjsonResponse
from app.layers.deps import Layers
from app.layers.state import read_state

router = APIRouter(prefix="/v1/chats/{chat_id}", tags=["chats"], route_class=KeyedRoute)


class StateOut(BaseModel):
    """The state of every layer on a line."""

    line: UUID = Field(description="The line.")
    layers: dict[str, Any] = Field(description="The state of each layer, by its name; usually the rows it stores.")


@router.get("/state", response_model=StateOut)
async def read_layers_state(ref: ReadingChat, db_session: Db, layers: Layers, line: Line = None) -> Response:
    """Return the state of all layers on a line.

    It includes stale and deleted rows. Its size grows with the chat.
    """
    chat = await get_line(db_session, ref, line)
    line_key = (ref.key, chat.line_id)
    states = {
        layer.name: await read_state(db_session, layer, line_key, only_chat=ref.only_chat)
        for layer in layers
        if layer.settings
    }
    return OrjsonResponse({"line": chat.line_id, "layers": states})
