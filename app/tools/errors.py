"""What can be wrong with a call of a tool."""

from app.kit.errors import Invalid, NotFound


class ToolNotFound(NotFound):
    """There is no tool of that name."""

    code = "tool_not_found"
    title = "Unknown tool"


class WrongArguments(Invalid):
    """The arguments are not what the tool takes; the detail is for the model that gave them."""

    code = "wrong_arguments"
    title = "Wrong arguments"
