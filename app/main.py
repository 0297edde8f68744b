"""The ASGI application: routers, error handlers, lifespan."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import lru_cache

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.routing import BaseRoute

from app import RELEASE
from app.chats.routes import router as chat_router
from app.chats.routes import user_router
from app.context.routes import router as context_router
from app.embeddings.configured import make_embedder
from app.embeddings.metered import meter
from app.embeddings.time_limit import limit_time
from app.keys.rate_limiter import RateLimiter
from app.keys.routes import router as key_router
from app.keys.service import DatabaseKeyring
from app.keys.token_bucket import Rate
from app.kit.clock import Clock, system_clock
from app.kit.etags import NoStore
from app.kit.fast_path import FastPathMiddleware
from app.kit.gate.client_watch import ClientWatch
from app.kit.idle_connections import IdleConnections
from app.kit.settings import Settings, load_settings
from app.kit.worker_notifier import WorkerNotifier
from app.layers.layer import Layer
from app.layers.recently_used import keep_aging
from app.layers.routes import router as state_router
from app.lines.routes import router as line_router
from app.messages.routes import router as message_router
from app.operations.readiness import DatabaseChecks
from app.operations.routes import router as operation_router
from app.pipeline import open_database
from app.problems import BodyLimit, Problem, install_handlers
from app.registry import LAYERS
from app.reimport.routes import router as reimport_router
from app.search.recall_memory import RecallMemory
from app.search.routes import router as search_router
from app.tools.routes import make_tool_router
from app.transfer.routes import IMPORT_PATH, ImportSlots
from app.transfer.routes import router as transfer_router
from app.web.docs import docs_router
from app.web.request_ids import RequestIds
from app.web.schema import Api, reading_order

MAX_BODY_BYTES = 8 * 1024 * 1024

DESCRIPTION = """Append messages, and get the context of the next model call.
In the background, old messages become memories: memos, a summary, diaries, scenes, facts or long-term memories.

Start with `PUT /v1/chats/{chat_id}`, append with `POST /v1/chats/{chat_id}/messages`, and read
`GET /v1/chats/{chat_id}/context`.
Errors are `application/problem+json` (RFC 9457). If the service requires a key, press **Authorize** first.

Terms:

- **line**: one course of a chat, like a branch. A message's position on its line is its **seq**.
- **turn**: a message of the user and the reply to it. **Swipes** are the alternative texts of a message.
- **context** or **prompt**: the input of one model call. Its parts are **segments**, such as `memos` or `history`.
- **history**: the newest messages, word for word. It begins at the **anchor**. A **cut** removes its oldest messages,
  usually once memories **cover** them (are made from them).
- **layer**: a part of the service, usually for one kind of memory, such as `memos` or `diary`.
- **memo**: two or three highlights of one **batch** of messages. The newest memos, the **window**, are in the context.
- **scene**: a stretch of one place, time and cast. A **break** ends it, and a **recap** summarises it. The **running
  recap** summarises all scenes.
- **fold**: a step that works new material into a growing text, such as the summary, and makes its next **version**.
- **stale**: made from messages or other texts that have changed since.
- **extractive**: made by quoting sentences, without a model.
- **person**: an author who changes memory or settings by a request that is neither a message nor a tool call.
- **scope**: where a fact, a core block or a memory holds: `chat`, `character` (the user with one character), `user`, or
  `global` (all chats of the tenant). A chat is the nearest scope, the tenant the widest.
- **tokens** are counted in o200k, an encoding of OpenAI's models."""

_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's telemetry would send request paths, rejected values and error texts to a collector set in the environment.
These can contain users' texts."""

_PROBLEMS: dict[int | str, dict[str, object]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        401: "The API key or token is missing or invalid.",
        403: "The key or token does not permit this request.",
        404: "Does not exist, or belongs to another tenant.",
        408: "The request did not arrive in time.",
        409: "Conflicts with the chat's current state.",
        413: "The body is larger than 8 MiB, or the imported file larger than `MEMOBOOK_MAX_IMPORT_BYTES`.",
        414: "The URL is longer than 16 KiB.",
        422: "The request is invalid; `errors` lists the invalid parts.",
        429: "Too many requests were sent, or too many are waiting. Retry after `Retry-After` seconds.",
        431: "The request has more than 100 headers, or more than 64 KiB of them.",
        503: "PostgreSQL is unavailable, or the chat stays locked (`chat_busy`). Retry after `Retry-After` seconds.",
    }.items()
}


def list_routers(layers: tuple[Layer, ...]) -> list[APIRouter]:
    """Return the routers of the API, those with the most requests first."""
    return [
        context_router,
        chat_router,
        reimport_router,
        message_router,
        line_router,
        state_router,
        *(router for layer in layers for router in layer.routers),
        transfer_router,
        user_router,
        search_router,
        make_tool_router(layers),
        key_router,
        operation_router,
    ]


@lru_cache(maxsize=1)
def _make_routes(layers: tuple[Layer, ...]) -> tuple[list[APIRouter], list[BaseRoute]]:
    """Return the routers and the routes of an application with these layers.

    The applications of a process share the routes, because they hold no state, and FastAPI needs half a second of CPU
    time to prepare them at the first request.
    """
    routers = [*list_routers(layers), docs_router()]
    every = APIRouter(responses=_PROBLEMS, generate_unique_id_function=_operation_id)
    for router in routers:
        every.include_router(router)
    return routers, every.routes


def create_app(
    settings: Settings | None = None,
    *,
    clock: Clock = system_clock,
    layers: tuple[Layer, ...] = LAYERS,
    connections: IdleConnections | None = None,
) -> FastAPI:
    """Return the application.

    By default, it opens its own connections to the database, and closes them when its lifespan ends. `connections` are
    used instead and left open; they have to lead to the database of the settings.
    """
    settings = settings or load_settings()
    notifier = WorkerNotifier(settings.redis_url)
    embedder = make_embedder(settings)
    database = open_database(
        settings.sqlalchemy_url,
        layers,
        clock=clock,
        settle_s=settings.settle_s,
        notify=notifier.notify,
        pool_size=settings.database_pool,
        limits=settings.wait_limits,
        statement_s=settings.database_timeout_s,
        with_vectors=embedder is not None,
        connections=connections,
    )
    routers, routes = _make_routes(layers)
    app = Api(
        routes=list(routes),
        tags=reading_order(routers),
        title="Memobook",
        version=RELEASE,
        summary="The memory service behind companion and roleplay chat.",
        description=DESCRIPTION,
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        telemetry=_NO_TELEMETRY,
    )
    app.state.settings = settings
    app.state.clock = clock
    app.state.database = database
    app.state.notifier = notifier
    app.state.layers = layers
    app.state.rate_limiter = RateLimiter(
        clock=clock,
        key=_rate(settings.rate_limit_key, settings.rate_limit_burst_s),
        token=_rate(settings.rate_limit_token, settings.rate_limit_burst_s),
        redis_url=settings.redis_url,
    )
    app.state.recall_memory = RecallMemory(clock=clock, redis_url=settings.redis_url)
    app.state.embedder = embedder
    app.state.embedder_of = lambda tenant: (
        embedder
        and limit_time(
            meter(embedder, database, clock, tenant=tenant, layer="search"), settings.embeddings_query_timeout_s
        )
    )
    app.state.routers = routers
    app.state.import_slots = ImportSlots()
    app.state.database_checks = DatabaseChecks()
    app.state.keyring = DatabaseKeyring(
        database,
        clock=clock,
        jwt_secret=settings.jwt_secret.get_secret_value() if settings.jwt_secret else None,
        trusted_origins=settings.cors_origins,
        rate_limiter=app.state.rate_limiter,
    )
    install_handlers(app)
    app.add_middleware(FastPathMiddleware, routes=context_router.routes)
    app.add_middleware(ClientWatch)
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES, max_bytes_of={IMPORT_PATH: settings.max_import_bytes})
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "If-None-Match", "X-Request-Id"],
            expose_headers=["ETag", "X-Request-Id", "Retry-After"],
        )
    app.add_middleware(NoStore)
    app.add_middleware(RequestIds)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(app.state.notifier.run()), asyncio.create_task(keep_aging(), name="age caches")]
    # Imported objects are never freed; scanning them in each garbage collection caused pauses of 70 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await app.state.notifier.close()
        await app.state.rate_limiter.close()
        await app.state.recall_memory.close()
        if app.state.embedder:
            await app.state.embedder.aclose()
        await app.state.database.close()


def _rate(per_s: float, burst_s: float) -> Rate | None:
    """Return the rate that a setting describes, or None if it is 0, which means no limit.

    The burst is at least one request.
    """
    return Rate(per_s, max(1.0, per_s * burst_s)) if per_s else None


def _operation_id(route: APIRoute) -> str:
    """Return the name of the route's function, which generated clients use for the operation."""
    return route.name
