"""The HTTP routes of tools.

The arguments of a call are validated by hand, because their schema depends on the tool, and because the language
model must be able to act on the error messages.
"""

from functools import reduce
from operator import or_
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError

from app.bindings import service as bindings
from app.chats.chat_lock import ChatRef
from app.chats.deps import Line, ReadingChat, WritingChat, read_writing
from app.chats.service import get_chat
from app.chats.settings import effective
from app.kit.auth import KeyedRoute, Reader
from app.kit.deps import Db, Now
from app.kit.errors import MAX_ERRORS, AppError
from app.kit.fast_path import handled_by, read_body, read_query
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.validation_errors import CHAT_ID_PATTERN, error_location
from app.kit.wire import OrjsonResponse, Text
from app.layers.deps import Layers
from app.layers.layer import Layer
from app.layers.tool import Tool, ToolCall
from app.tools import calls, toolbox
from app.tools.errors import WrongArguments
from app.tools.schemas import CallOut, CallQuery, DiscardedOut, DiscardQuery, ToolResultOut, ToolsOut
from app.tools.wording import Format, word_argument_error, word_tool, word_wrong

ToolName = Annotated[Text, Path(description="The tool's name.", examples=["save_memory"])]


def make_tool_router(layers: tuple[Layer, ...]) -> APIRouter:
    """Return the routes of the tools that the layers offer; OpenAPI shows the arguments of each tool."""
    router = APIRouter(prefix="/v1", tags=["tools"], route_class=KeyedRoute)
    router.add_api_route("/tools", list_tools, methods=["GET"], response_model=ToolsOut)
    router.add_api_route("/chats/{chat_id}/tools/discard", discard_calls, methods=["POST"], response_model=DiscardedOut)
    router.add_api_route("/chats/{chat_id}/tools/calls", list_calls, methods=["GET"], response_model=Page[CallOut])
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
    caller: Reader,
    layers: Layers,
    db_session: Db,
    format_: Annotated[
        Format, Query(alias="format", description="The provider format in which to return them.")
    ] = "openai",
    chat_id: Annotated[
        str | None,
        Query(
            pattern=CHAT_ID_PATTERN,
            description="List only the tools of the layers that are on in this chat, and `memory_search` unless the "
            "chat's `recall.mode` is `off`. Calls of other tools are accepted, too.",
        ),
    ] = None,
) -> Response:
    """List the tools to offer to the model that plays a character."""
    if chat_id is not None:
        settings = effective((await get_chat(db_session, ChatRef.of(caller, chat_id))).settings)
        tools = toolbox.list_offered(layers, settings)
    else:
        tools = toolbox.list_tools(layers)
    described = [word_tool(tool.name, tool.description, tool.arguments.model_json_schema(), format_) for tool in tools]
    return OrjsonResponse({"tools": described})


async def discard_calls(
    ref: WritingChat, query: Annotated[DiscardQuery, Query()], db_session: Db, clock: Now
) -> Response:
    """Drop the open tool calls of a discarded generation, with what they wrote.

    A call is open until its reply is appended. Diary entries that a person has edited, or keeps (`kept`), are not
    dropped.
    """
    discarded = await bindings.discard(db_session, ref, character=query.character, now=clock())
    return OrjsonResponse({"discarded": discarded})


async def list_calls(
    ref: ReadingChat,
    db_session: Db,
    layers: Layers,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the tool calls of a line, oldest first.

    Copies of a line do not list calls that wrote nothing or were dropped. The line itself lists these calls while they
    are among the newest 1,000 calls of the chat. A call that was sent again is listed once.
    """
    after = decode_cursor(cursor, UUID)[0] if cursor else None
    found = await calls.list_calls(db_session, ref, line=line, after=after, limit=limit + 1)
    more = len(found) > limit
    items = await calls.present(db_session, layers, found[:limit], only_chat=ref.only_chat)
    return OrjsonResponse(
        {"items": items, "next_cursor": encode_cursor(found[limit - 1].call_id) if more else None},
    )


def _document_call(tools: list[Tool]) -> Any:
    """Return the declaration of the route, for OpenAPI; `_call_tool` handles the requests."""
    arguments_type: Any = reduce(or_, [tool.arguments for tool in tools])

    async def call_tool(
        ref: WritingChat,
        tool: ToolName,
        query: Annotated[CallQuery, Query()],
        arguments: arguments_type,
    ) -> Response:
        """Run a tool that the model has called. The body is the arguments of the call.

        A call that is sent again within ten minutes changes nothing, unless a message was appended or the newest one
        was changed in between. If what the call wrote was deleted or changed since, the answer says so.

        What the tool writes belongs to one reply: an assistant message that is not a thought and calls no tools.
        Contexts contain what the tool writes only while this reply is on the line with the same text. Without
        `message_id`, the newest message decides:

        - If it is a reply, of any character, what the tool writes belongs to this reply.
        - If it is any other message, even one that calls tools, what the tool writes belongs to the character's next
          reply.
        - If the chat has no messages, what the tool writes belongs to no reply, and contexts contain it at once.

        Until the reply is appended, the call is open. An open call is dropped by the user's next message, by
        `POST …/tools/discard`, or if the message to be answered is deleted or hidden by a person.

        Send `message_id` in these cases:

        - The newest message is a reply of another character, or you call the tool before you append the message to be
          answered. Send the id that your character's reply will have.
        - No reply will follow the message that makes the call. Send the id of the message that makes the call: it then
          counts as the reply, although it calls tools.

        A call with `message_id` waits for exactly this message. It is not dropped if the message to be answered is
        appended later, deleted or hidden.

        When the end of the chat is cut off, what belongs to the replies that are cut off is deleted.
        """
        raise NotImplementedError(ref, tool, query, arguments)

    return call_tool


async def _call_tool(request: Request) -> Response:
    ref, state = await read_writing(request), request.app.state
    query, name, now = read_query(request, CallQuery), request.path_params["tool"], state.clock()
    given = calls.Given(name, query.character, await request.body(), now)
    try:
        tool = toolbox.get_tool(state.layers, name)
        arguments = await _read_arguments(request, tool)
        async with state.database.unit_of_work(ref.tenant, ref.key) as db_session:
            embedder = state.embedder_of(ref.tenant)
            call = ToolCall(db_session, ref, query.character, now, query.target, embedder)
            answer = await tool.run(call, arguments)
            await calls.record(db_session, ref, given, answer)
    except AppError as error:
        await calls.record_refusal(state.database, ref, given, error)
        raise
    return OrjsonResponse({"ok": True, "result": answer.text})


async def _read_arguments(request: Request, tool: Tool) -> Any:
    """Return the arguments of a call. Raises WrongArguments."""
    try:
        return await read_body(request, tool.arguments)
    except RequestValidationError as error:
        found = error.errors()
        raise WrongArguments(
            word_wrong(tool.name, found[:MAX_ERRORS], tool.example),
            errors=[{"loc": error_location(one), "msg": word_argument_error(one)} for one in found],
        ) from None
