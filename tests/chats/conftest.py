"""Several processes of the service on one database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import AsyncExitStack
from typing import TypeVar

import httpx
import pytest
from sqlalchemy import AdaptedConnection, event

from app.kit.clock import SteppedClock
from app.kit.db import open_connections
from app.kit.idle_connections import IdleConnections
from app.kit.settings import Settings
from app.main import create_app
from tests.conftest import APP_POOL, client_of, sqlalchemy_url
from tests.slowness import SLOWNESS

PROCESSES = 6
Found = TypeVar("Found")


def wait_longer(connection: AdaptedConnection, _record: object) -> None:
    """Let a new connection wait for a lock longer than the 3 s of the service, and longer still on a slow machine.

    A race is about the order of changes, and not about how long one waits for its turn. A deadlock is found in any
    case: PostgreSQL looks for it after a second.
    """
    connection.run_async(lambda driver: driver.execute(f"SET lock_timeout = '{round(15 * SLOWNESS)}s'"))


@pytest.fixture(scope="session")
async def connections_of_processes(database_url: str) -> AsyncIterator[list[IdleConnections]]:
    """The connections of each process of the service, for all tests: planning a statement can prolong a lock."""
    opened = [open_connections(sqlalchemy_url(database_url), pool_size=APP_POOL) for _ in range(PROCESSES)]
    for connections in opened:
        event.listen(connections.engine.sync_engine, "connect", wait_longer)
    yield opened
    for connections in opened:
        await connections.close()


@pytest.fixture
async def clients(
    given_settings: Settings, connections_of_processes: list[IdleConnections], clock: SteppedClock, key: str
) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients of as many processes of the service, none of which shares a connection with another."""
    async with AsyncExitStack() as stack:
        clients = []
        for connections in connections_of_processes:
            app = create_app(given_settings, clock=clock, connections=connections)
            stack.push_async_callback(app.state.database.close)
            clients.append(await stack.enter_async_context(client_of(app, key)))
            await clients[-1].get("/v1/chats")  # connected, so that they start together
        yield clients
    assert not any(one.is_in_transaction() for each in connections_of_processes for one in each.list_idle())


async def gathered(requests: Iterable[Awaitable[Found]]) -> list[Found]:
    """All at once."""
    return list(await asyncio.gather(*requests))
