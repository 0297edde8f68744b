"""HTTP of the model's tools.

The arguments of a call are read by hand: what they are depends on the tool, and what is wrong with them is told in
words that a model can act on.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError

from app.chats.deps import WritingChat, read_writing
from app.kit.auth import Reader
from app.kit.hot import handled_by, read_body, read_query
from app.kit.wire import JsonAnswer, Text
from app.tools.errors import WrongArguments
from app.tools.schemas import CallQuery, ToolResultOut, ToolsOut
from app.tools.toolbox import TOOLS, SaveMemory, Tool, ToolCall, get_tool
from app.tools.wording import Format, word_error, word_tool, word_wrong

ToolName = Annotated[Text, Path(description="The tool's name.", examples=["save_memory"])]

router = APIRouter(prefix="/v1", tags=["tools"])


@router.get("/tools", response_model=ToolsOut)
async def list_tools(
    caller: Reader,  # noqa: ARG001 - whoever asks may read
    format_: Annotated[Format, Query(alias="format", description="Whose request they go into.")] = "openai",
) -> Response:
    """The tools to offer to the model that plays a character."""
    told = [word_tool(tool.name, tool.description, tool.arguments.model_json_schema(), format_) for tool in TOOLS]
    return JsonAnswer({"tools": told})


async def call_tool(
    ref: WritingChat,
    tool: ToolName,
    query: Annotated[CallQuery, Query()],
    arguments: SaveMemory,
    request: Request,
) -> Response:
    """Run a tool that the model has called, with the bare arguments of the call; a retry changes nothing.

    Append the message that makes the call first: what is written belongs to the newest message, and goes with it when
    the end of the chat is cut off there. Where that message alone is edited or deleted, it stays.
    """
    state = request.app.state
    async with state.database.unit_of_work() as db_session:
        call = ToolCall(db_session, ref, query.character, state.clock(), state.settings.memo_settle_s)
        result = await get_tool(tool).run(call, arguments)
    return JsonAnswer({"ok": True, "result": result})


async def _call_tool(request: Request) -> Response:
    ref = await read_writing(request)
    tool = get_tool(request.path_params["tool"])
    arguments = await _read_arguments(request, tool)
    return await call_tool(ref, tool.name, read_query(request, CallQuery), arguments, request)


router.add_api_route(
    "/chats/{chat_id}/tools/{tool}",
    call_tool,
    methods=["POST"],
    response_model=ToolResultOut,
    route_class_override=handled_by(_call_tool),
)


async def _read_arguments(request: Request, tool: Tool) -> Any:
    """The arguments of a call. Raises WrongArguments."""
    try:
        return await read_body(request, tool.arguments)
    except RequestValidationError as error:
        found = error.errors()
        raise WrongArguments(
            word_wrong(tool.name, found, tool.example),
            errors=[{"loc": list(one["loc"]), "msg": word_error(one)} for one in found],
        ) from None
