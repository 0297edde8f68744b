"""The tools of all layers."""

from collections.abc import Sequence

from app.layers.layer import Layer
from app.layers.tool import Tool
from app.tools.errors import ToolNotFound


def list_tools(layers: Sequence[Layer]) -> list[Tool]:
    """Return the tools that the layers offer, in the order of the layers."""
    return [tool for layer in layers for tool in layer.tools]


def get_tool(layers: Sequence[Layer], name: str) -> Tool:
    """Return the tool with this name. Raises ToolNotFound, which lists the available tools."""
    tools = list_tools(layers)
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        known = ", ".join(tool.name for tool in tools)
        raise ToolNotFound(f"There is no such tool. The tools are: {known}.")
    return found
