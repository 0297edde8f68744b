"""The tools of all layers."""

from collections.abc import Sequence

from app.layers.layer import Layer
from app.layers.tool import Tool
from app.tools.errors import ToolNotFound


def list_tools(layers: Sequence[Layer]) -> list[Tool]:
    """The tools that the layers offer, in their order."""
    return [tool for layer in layers for tool in layer.tools]


def get_tool(layers: Sequence[Layer], name: str) -> Tool:
    """The tool of that name. Raises ToolNotFound, which lists the tools there are."""
    tools = list_tools(layers)
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        known = ", ".join(tool.name for tool in tools)
        raise ToolNotFound(f"There is no such tool. The tools are: {known}.")
    return found
