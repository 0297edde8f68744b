import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.kit.idle_connections import Connection, IdleConnections
from tests.conftest import sqlalchemy_url


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = create_async_engine(
        sqlalchemy_url(database_url), isolation_level="AUTOCOMMIT", pool_size=2, max_overflow=0, pool_timeout=5
    )
    yield made
    await made.dispose()


@pytest.fixture
async def idle(engine: AsyncEngine) -> AsyncIterator[IdleConnections]:
    made = IdleConnections(engine)
    yield made
    await made.close()


async def backend(connection: Connection) -> int:
    return int(await connection.fetchval("SELECT pg_backend_pid()"))


async def test_the_connection_used_last_is_used_next(idle: IdleConnections) -> None:
    first, second = await idle.take(), await idle.take()
    idle.put_back(first)
    idle.put_back(second)
    assert await idle.take() is second
    idle.put_back(second)


async def test_a_waiting_taker_gets_the_next_returned_connection(idle: IdleConnections) -> None:
    first, second = await idle.take(), await idle.take()
    waiting = asyncio.create_task(idle.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    pid = await backend(first.driver_connection)  # type: ignore[arg-type]  # asyncpg's own
    idle.put_back(first)
    given = await waiting
    assert await backend(given.driver_connection) == pid  # type: ignore[arg-type]  # asyncpg's own
    idle.put_back(given)
    idle.put_back(second)


async def test_more_takers_than_connections_are_all_served(idle: IdleConnections) -> None:
    served = 0

    async def use() -> None:
        nonlocal served
        for _ in range(20):
            pooled = await idle.take()
            try:
                await backend(pooled.driver_connection)  # type: ignore[arg-type]  # asyncpg's own
                served += 1
            finally:
                idle.put_back(pooled)

    await asyncio.gather(*[use() for _ in range(10)])
    assert served == 200


async def test_a_connection_that_died_is_replaced(idle: IdleConnections) -> None:
    pooled = await idle.take()
    dead = await backend(pooled.driver_connection)  # type: ignore[arg-type]  # asyncpg's own
    idle.put_back(pooled)
    pooled.driver_connection.terminate()  # type: ignore[union-attr]  # asyncpg's own
    pooled = await idle.take()
    assert await backend(pooled.driver_connection) != dead  # type: ignore[arg-type]  # asyncpg's own
    idle.put_back(pooled)
