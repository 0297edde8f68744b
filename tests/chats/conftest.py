"""Several processes of the service on one database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import AsyncExitStack
from typing import TypeVar

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from tests.conftest import SETTLE_S, client_of

PROCESSES = 6
Found = TypeVar("Found")


@pytest.fixture
async def clients(
    database_url: str, servers: Urls, clock: SteppedClock, key: str
) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients of as many processes of the service, none of which shares a connection with another."""
    settings = Settings(database_url=database_url, redis_url=servers.redis_url, settle_s=SETTLE_S, _env_file=None)
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(PROCESSES):
            app = create_app(settings, clock=clock)
            stack.push_async_callback(app.state.database.close)
            clients.append(await stack.enter_async_context(client_of(app, key)))
            await clients[-1].get("/v1/chats")  # connected, so that they start together
        yield clients


async def gathered(requests: Iterable[Awaitable[Found]]) -> list[Found]:
    """All at once."""
    return list(await asyncio.gather(*requests))
