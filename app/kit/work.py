"""The bell: arq on Redis tells the workers that something is due, and nothing depends on it.

What is due stands in PostgreSQL (`kit/work_queue.py`). Redis may be lost with everything in it: a worker's own loop
finds the work without it, only later.
"""

import asyncio
import logging
from contextlib import suppress

import orjson
from arq import ArqRedis, create_pool
from arq.connections import RedisSettings
from redis.exceptions import RedisError

from app.kit.ids import uuid7

log = logging.getLogger(__name__)

LOOK = "look"
"""The only arq job there is: it makes a worker look at what is due."""

BURST_S = 0.02
"""Rings within so long are one."""


def redis_settings(url: str) -> RedisSettings:
    """Where Redis is, without waiting for it when it is away."""
    settings = RedisSettings.from_dsn(url)
    settings.conn_retries = 0
    return settings


class Bell:
    """Rings the workers through Redis, outside any request. While Redis is away nobody hears it, and nothing waits."""

    def __init__(self, redis_url: str | None) -> None:
        self._url = redis_url
        self._rung = asyncio.Event()
        self._redis: ArqRedis | None = None

    def ring(self) -> None:
        """Something is due; returns at once."""
        self._rung.set()

    async def run(self) -> None:
        """Pass rings on until cancelled."""
        while self._url is not None:
            await self._rung.wait()
            self._rung.clear()
            try:
                async with asyncio.timeout(2):
                    self._redis = self._redis or await create_pool(
                        redis_settings(self._url), job_serializer=orjson.dumps, job_deserializer=orjson.loads
                    )
                    await self._redis.enqueue_job(LOOK, _job_id=str(uuid7()))
            except (RedisError, OSError, TimeoutError) as error:
                log.info("Redis is away (%s); workers find what is due by themselves", type(error).__name__)
                await self.close()
            await asyncio.sleep(BURST_S)

    async def is_reachable(self) -> bool:
        """Whether Redis answers."""
        if self._url is None:
            return False
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(1):
                redis = await create_pool(redis_settings(self._url))
                try:
                    return bool(await redis.ping())
                finally:
                    await redis.aclose()
        return False

    async def close(self) -> None:
        """Close the connection to Redis."""
        redis, self._redis = self._redis, None
        if redis is not None:
            with suppress(RedisError, OSError):
                await redis.aclose()
