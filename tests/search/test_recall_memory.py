"""What contexts recalled is remembered in Redis, and each of its outages is logged once."""

import logging
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from redis.asyncio import Redis

from app.kit.clock import SteppedClock
from app.local.running import Urls
from app.search.recall_memory import AWAY_S, RecallMemory

LINE = (UUID(int=1), UUID(int=2))


@pytest.fixture
async def memory(clock: SteppedClock, servers: Urls) -> AsyncIterator[RecallMemory]:
    remembering = RecallMemory(clock=clock, redis_url=servers.redis_url)
    yield remembering
    await remembering.close()


@pytest.fixture
async def redis(servers: Urls) -> AsyncIterator[Redis]:
    """A client that pauses Redis; at the end Redis goes on."""
    client: Redis = Redis.from_url(servers.redis_url)
    yield client
    await client.client_unpause()
    await client.aclose()


async def test_each_outage_is_logged_once(
    memory: RecallMemory, redis: Redis, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app.search")
    outage = [
        ("WARNING", "Redis is not reachable"),
        ("INFO", "Redis is reachable again; the processes share what they recalled"),
    ]
    for n in (1, 2):
        await memory.add(LINE, await memory.read(LINE), n, ["memory:1"])
        await redis.client_pause(600_000, all=False)
        for _ in range(2):
            await memory.add(LINE, {}, n, ["memory:1"])
            clock.step(AWAY_S)
        await redis.client_unpause()
        await memory.read(LINE)
        logged = [(one.levelname, one.message.split(" (")[0]) for one in caplog.records]
        assert logged == outage * n
