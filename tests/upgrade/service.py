"""A service on a database of the caller's choice, with a stepped clock and workers that run when they are asked to."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import asyncpg
import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from app.registry import LAYERS
from tests.conftest import SETTLE_S, client_of
from tests.slowness import SLOWNESS

MOST_ROUNDS = 40
"""The most rounds of work that follow from one change."""


@dataclass(frozen=True, slots=True)
class Service:
    """The application on one database.

    Attributes:
        apis: A client for each tenant, with the tenant's key.
        clock: The service's time.
        writer: A worker with a model; without one if no model is given.
        quoter: A worker without a model.

    """

    apis: Mapping[str, httpx.AsyncClient]
    clock: SteppedClock
    writer: Dispatcher
    quoter: Dispatcher

    async def settle(self, worker: Dispatcher, step: timedelta = timedelta(seconds=SETTLE_S)) -> None:
        """Step the clock and run the worker until no more work is due."""
        for _ in range(MOST_ROUNDS):
            self.clock.step(step.total_seconds())
            if not await worker.drain():
                return
        raise AssertionError("the work does not end")


@asynccontextmanager
async def open_service(
    database_url: str, redis_url: str, clock: SteppedClock, keys: Mapping[str, str | None], model_url: str | None = None
) -> AsyncIterator[Service]:
    """Open the application on a migrated database; `keys` are the tenants' keys."""
    settings = Settings(database_url=database_url, redis_url=redis_url, settle_s=SETTLE_S, _env_file=None)
    app = create_app(settings, clock=clock)
    database = app.state.database
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        opened.push_async_callback(app.state.recall_memory.close)
        apis = {tenant: await opened.enter_async_context(client_of(app, key)) for tenant, key in keys.items()}
        quoter = writer = Dispatcher(JobContext(database, clock), LAYERS, slots=1, poll_s=30)
        if model_url:
            model = ModelClient(model_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=1, max_attempts=1)
            opened.push_async_callback(model.aclose)
            writer = Dispatcher(JobContext(database, clock, model), LAYERS, slots=1, poll_s=30)
        yield Service(apis, clock, writer, quoter)


async def make_database(servers: Urls, template: str = "template1") -> tuple[str, str]:
    """Make a database as `memobook up` does, with the extensions; return its name and its URL."""
    name = f"upgrade_{uuid4().hex}"
    async with connected(servers.database_url) as connection:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    head, query = servers.database_url.split("?", 1)
    return name, f"{head.rpartition('/')[0]}/{name}?{query}"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection that is closed afterwards."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await connection.close()
