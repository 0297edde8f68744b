"""The HTTP routes of tools.

The arguments of a call are validated by hand, because their schema depends on the tool, and because the language
model must be able to act on the error messages.
"""

from functools import reduce
from operator import or_
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError

from app.chats.deps import WritingChat, read_writing
from app.kit.auth import Reader
from app.kit.errors import MAX_ERRORS
from app.kit.fast_path import handled_by, read_body, read_query
from app.kit.wire import OrjsonResponse, Text
from app.layers.deps import Layers
from app.layers.layer import Layer
from app.layers.tool import Tool, ToolCall
from app.tools import toolbox
from app.tools.errors import WrongArguments
from app.tools.schemas import CallQuery, ToolResultOut, ToolsOut
from app.tools.wording import Format, word_error, word_tool, word_wrong

ToolName = Annotated[Text, Path(description="The tool's name.", examples=["save_memory"])]


def make_tool_router(layers: tuple[Layer, ...]) -> APIRouter:
    """Return the routes of the tools that the layers offer; OpenAPI shows the arguments of each tool."""
    router = APIRouter(prefix="/v1", tags=["tools"])
    router.add_api_route("/tools", list_tools, methods=["GET"], response_model=ToolsOut)
    tools = toolbox.list_tools(layers)
    if tools:
        router.add_api_route(
            "/chats/{chat_id}/tools/{tool}",
            _document_call(tools),
            methods=["POST"],
            response_model=ToolResultOut,
            route_class_override=handled_by(_call_tool),
        )
    return router


async def list_tools(
    caller: Reader,  # noqa: ARG001 - requires a key that may read
    layers: Layers,
    format_: Annotated[
        Format, Query(alias="format", description="The provider format in which to return them.")
    ] = "openai",
) -> Response:
    """List the tools to offer to the model that plays a character."""
    described = [
        word_tool(tool.name, tool.description, tool.arguments.model_json_schema(), format_)
        for tool in toolbox.list_tools(layers)
    ]
    return OrjsonResponse({"tools": described})


def _document_call(tools: list[Tool]) -> Any:
    """Return the declaration of the route, for OpenAPI; `_call_tool` handles the requests."""
    arguments_type: Any = reduce(or_, [tool.arguments for tool in tools])

    async def call_tool(
        ref: WritingChat,
        tool: ToolName,
        query: Annotated[CallQuery, Query()],
        arguments: arguments_type,
    ) -> Response:
        """Run a tool that the model has called. The body is the arguments of the call. A retry changes nothing.

        Append the message that makes the call first: an entry that the tool writes belongs to the newest message, and
        is deleted if the chat is truncated before that message. If only the message is edited or deleted, the entry
        stays.
        """
        raise NotImplementedError(ref, tool, query, arguments)

    return call_tool


async def _call_tool(request: Request) -> Response:
    ref, state = await read_writing(request), request.app.state
    tool = toolbox.get_tool(state.layers, request.path_params["tool"])
    arguments = await _read_arguments(request, tool)
    query = read_query(request, CallQuery)
    async with state.database.unit_of_work() as db_session:
        result = await tool.run(ToolCall(db_session, ref, query.character, state.clock()), arguments)
    return OrjsonResponse({"ok": True, "result": result})


async def _read_arguments(request: Request, tool: Tool) -> Any:
    """Return the arguments of a call. Raises WrongArguments."""
    try:
        return await read_body(request, tool.arguments)
    except RequestValidationError as error:
        found = error.errors()[:MAX_ERRORS]
        raise WrongArguments(
            word_wrong(tool.name, found, tool.example),
            errors=[{"loc": list(one["loc"]), "msg": word_error(one)} for one in found],
        ) from None
