"""The errors of tool calls."""

from app.kit.errors import Invalid, NotFound


class ToolNotFound(NotFound):
    """There is no tool with this name."""

    code = "tool_not_found"
    title = "Unknown tool"


class WrongArguments(Invalid):
    """The arguments are invalid; the detail is addressed to the model that made the call."""

    code = "wrong_arguments"
    title = "Wrong arguments"
