"""The tools of all layers, and those that need several layers."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.bindings.models import Binding
from app.chats.settings import ChatSettings
from app.kit.db import DbSession
from app.knowledge.narrowing import list_wide_calls
from app.layers.layer import Layer
from app.layers.tool import Tool
from app.search.tools import MEMORY_SEARCH
from app.tools.errors import ToolNotFound

OWN_TOOLS = (MEMORY_SEARCH,)
"""The tools that belong to no layer."""


def list_tools(layers: Sequence[Layer]) -> list[Tool]:
    """Return the tools of the layers, in the order of the layers, and then those that belong to none."""
    return [*(tool for layer in layers for tool in layer.tools), *OWN_TOOLS]


def list_offered(layers: Sequence[Layer], settings: ChatSettings) -> list[Tool]:
    """Return the tools that a chat with these settings is offered, in the order of `list_tools`."""
    tools = list_tools([layer for layer in layers if layer.is_enabled(settings)])
    return [tool for tool in tools if tool.is_offered(settings)]


def get_tool(layers: Sequence[Layer], name: str) -> Tool:
    """Return the tool with this name. Raises ToolNotFound, which lists the available tools."""
    tools = list_tools(layers)
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        known = ", ".join(tool.name for tool in tools)
        raise ToolNotFound(f"There is no such tool. The tools are: {known}.")
    return found


async def describe_calls(
    db_session: DbSession, layers: Sequence[Layer], calls: Sequence[Binding], *, only_chat: bool = False
) -> Mapping[UUID, str]:
    """Return what each call of a line wrote, by its id, in words without a full stop.

    With `only_chat`, the words do not say what a call wrote for the chat's user or tenant.
    """
    found = {one.binding_id: f"Wrote into the layer {one.layer} (entry {one.binding_id})" for one in calls}
    if only_chat and calls:
        wide = await list_wide_calls(db_session, (calls[0].chat_key, calls[0].line_id), list(found))
        calls = [one for one in calls if one.binding_id not in wide]
    for layer in layers:
        if of_layer := [one for one in calls if one.layer == layer.name]:
            line = (of_layer[0].chat_key, of_layer[0].line_id)
            found |= await layer.describe_writes(db_session, line, [one.binding_id for one in of_layer])
    return found
