"""Wake-ups for workers, sent through arq on Redis. Correctness does not depend on them.

Due work is stored in PostgreSQL (`kit/work_queue.py`). If Redis loses all its data, the polling loop of each worker
still finds the work, only later.
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

WAKE = "look"
"""The only arq job: it makes a worker look for due work."""

BURST_S = 0.02
"""Wake-ups within this time are combined into one."""


def redis_settings(url: str) -> RedisSettings:
    """Return the connection settings for `url`, without retries, so that calls do not block while Redis is down."""
    settings = RedisSettings.from_dsn(url)
    settings.conn_retries = 0
    return settings


class WorkerNotifier:
    """Wakes the workers through Redis, outside of requests. If Redis is down the wake-up is dropped; nothing blocks."""

    def __init__(self, redis_url: str | None) -> None:
        self._url = redis_url
        self._rung = asyncio.Event()
        self._redis: ArqRedis | None = None

    def ring(self) -> None:
        """Wake the workers; returns immediately."""
        self._rung.set()

    async def run(self) -> None:
        """Send wake-ups to Redis until cancelled. Returns at once if no Redis is configured."""
        while self._url is not None:
            await self._rung.wait()
            self._rung.clear()
            try:
                async with asyncio.timeout(2):
                    self._redis = self._redis or await create_pool(
                        redis_settings(self._url), job_serializer=orjson.dumps, job_deserializer=orjson.loads
                    )
                    await self._redis.enqueue_job(WAKE, _job_id=str(uuid7()))
            except (RedisError, OSError, TimeoutError) as error:
                log.info("Redis is not reachable (%s); workers find due work by polling", type(error).__name__)
                await self.close()
            await asyncio.sleep(BURST_S)

    async def is_reachable(self) -> bool:
        """Return whether Redis responds within a second."""
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
