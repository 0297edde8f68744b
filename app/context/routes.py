"""HTTP routes of contexts, and of appending messages, because an append can also return the next context."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.chats.deps import Line, ReadingChat, Seq, WritingChat, read_reading, read_writing
from app.context.report import list_inclusion
from app.context.schemas import AppendIn, AppendOut, ContextOptions, ContextOut, ContextQuery, InclusionOut
from app.context.service import assemble_context, assemble_unless_known
from app.kit.auth import KeyedRoute
from app.kit.deps import Db, Now, Pool
from app.kit.errors import AppError
from app.kit.etags import TAGGED, KnownTags, not_modified, read_known, tagged
from app.kit.fast_path import handled_by, read_body, read_query
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import OrjsonResponse
from app.layers.deps import Layers
from app.messages.service import append_messages
from app.search.deps import Recalls, recalling_of

router = APIRouter(prefix="/v1/chats/{chat_id}", route_class=KeyedRoute)


async def append(
    ref: WritingChat, body: AppendIn, pool: Pool, layers: Layers, clock: Now, recalling: Recalls
) -> Response:
    """Append messages. Returns 200 if all of them existed already.

    A message whose id exists is neither appended again nor changed. If its role or text differs from the first time,
    the answer is a 409 `message_id_taken`, and nothing is appended.
    """
    async with pool.unit_of_work(ref.tenant, ref.key) as db_session:
        appended = await append_messages(db_session, ref, body.messages, now=clock())
    answer: dict[str, Any] = {"messages": appended.messages, "created": appended.created}
    if body.context is not None:
        try:
            answer["context"] = await assemble_context(
                pool, ref, body.context, layers, own=body.context.segments, recalling=recalling, now=clock()
            )
        except AppError as error:  # the messages are committed already
            answer["context"] = None
            answer["context_problem"] = {
                "title": error.title,
                "status": error.status,
                "code": error.code,
                "detail": error.detail,
                **error.extra,
            }
    return OrjsonResponse(answer, status_code=201 if appended.created else 200)


async def _append(request: Request) -> Response:
    state = request.app.state
    ref = await read_writing(request)
    return await append(
        ref, await read_body(request, AppendIn), state.database, state.layers, state.clock, recalling_of(state)
    )


router.add_api_route(
    "/messages",
    append,
    methods=["POST"],
    status_code=201,
    response_model=AppendOut,
    responses={200: {"model": AppendOut}},
    tags=["messages"],
    route_class_override=handled_by(_append),
)


async def get_context(
    ref: ReadingChat,
    options: Annotated[ContextQuery, Query()],
    pool: Pool,
    layers: Layers,
    clock: Now,
    recalling: Recalls,
    known: KnownTags,
) -> Response:
    """Return the context of the next model call."""
    return _answer(
        *await assemble_unless_known(pool, ref, options, layers, recalling=recalling, known=known, now=clock())
    )


def _answer(tag: str | None, context: dict[str, Any] | None) -> Response:
    return not_modified(tag) if tag is not None and context is None else tagged(context or {}, tag)


async def _get_context(request: Request) -> Response:
    state = request.app.state
    ref = await read_reading(request)
    options, known = read_query(request, ContextQuery), read_known(request)
    return await get_context(ref, options, state.database, state.layers, state.clock, recalling_of(state), known)


router.add_api_route(
    "/context",
    get_context,
    methods=["GET"],
    response_model=ContextOut,
    response_model_exclude_unset=True,
    responses=TAGGED,
    tags=["context"],
    route_class_override=handled_by(_get_context),
)


@router.post(
    "/context",
    response_model=ContextOut,
    response_model_exclude_unset=True,
    responses=TAGGED,
    tags=["context"],
)
async def post_context(
    ref: ReadingChat,
    options: ContextOptions,
    pool: Pool,
    layers: Layers,
    clock: Now,
    recalling: Recalls,
    known: KnownTags,
) -> Response:
    """Return the context with the caller's own segments."""
    return _answer(
        *await assemble_unless_known(
            pool, ref, options, layers, own=options.segments, recalling=recalling, known=known, now=clock()
        )
    )


@router.get("/inclusion", response_model=Page[InclusionOut], tags=["context"])
async def get_inclusion(
    ref: ReadingChat,
    db_session: Db,
    layers: Layers,
    line: Line = None,
    after_seq: Annotated[Seq, Query(description="Return only messages after this seq.")] = 0,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Return how the context includes each message, or why it does not.

    What a small `max_tokens` would leave out counts as included.
    """
    if cursor:
        (after_seq,) = decode_cursor(cursor, int)
    items = await list_inclusion(db_session, ref, layers, line=line, after_seq=after_seq, limit=limit + 1)
    more = len(items) > limit
    return OrjsonResponse(
        {"items": items[:limit], "next_cursor": encode_cursor(items[limit - 1]["seq"]) if more else None}
    )
