"""Limits how many requests per second a key, or the holder of browser tokens, may send.

The buckets are in Redis, so that all processes of the service share them. Without Redis, and for some seconds after it
fails, each process uses buckets of its own: a request never fails because Redis is down.
"""

import asyncio
import hashlib
import logging
import math
from datetime import datetime, timedelta
from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from app.keys.errors import RateLimited
from app.keys.token_bucket import LocalBuckets, Rate
from app.kit.auth import Caller
from app.kit.clock import Clock

log = logging.getLogger(__name__)

REDIS_S: Final = 0.25
"""How long a request waits for Redis, in seconds."""

AWAY_S: Final = 5.0
"""For this many seconds after a failure of Redis, this process uses its own buckets."""

MAX_ENTRIES: Final = 100_000
_CONNECTIONS: Final = 16

_TAKE: Final = """
local time = redis.call('TIME')
local now, interval, burst = time[1] + time[2] / 1000000, tonumber(ARGV[1]), tonumber(ARGV[2])
local full = math.max(now, math.min(tonumber(redis.call('GET', KEYS[1]) or '0'), now + burst))
local wait = full + interval - burst - now
local allowed = wait <= 0.000002
if allowed then full = full + interval end
redis.call('SET', KEYS[1], string.format('%.6f', full), 'PX', math.ceil(burst * 1000) + 1000)
return allowed and '0' or string.format('%.6f', wait)
"""
"""A Lua script that does what `LocalBuckets.take` does, by the clock of Redis."""


class RateLimiter:
    """Counts the requests of callers, and refuses those that come too early.

    Args:
        clock: The service's clock, for the buckets of this process.
        key: The rate of each key; None for no limit.
        token: The rate of each holder of tokens; None for no limit. All tokens of a key for the same user and chat
            count together, so a new token does not permit more requests.
        redis_url: The Redis with the buckets that all processes share; None to use only buckets of this process.

    """

    def __init__(self, *, clock: Clock, key: Rate | None, token: Rate | None, redis_url: str | None) -> None:
        self.refusals = 0
        self._clock = clock
        self._key = key
        self._token = token
        self._local = LocalBuckets(max_entries=MAX_ENTRIES)
        self._redis_url = redis_url
        self._redis: Redis | None = None
        self._away_until: datetime | None = None
        self._failures = 0
        self._is_down = False

    async def check(self, caller: Caller) -> None:
        """Count a request of the caller. Raises RateLimited if it comes too early."""
        is_token = caller.user_id is not None or caller.chat_id is not None
        rate = self._token if is_token else self._key
        if rate is None or (caller.key_id is None and not is_token):  # requests without a key are local
            return
        wait_s = await self._take(_name_of(caller), rate)
        if wait_s > 0:
            self.refusals += 1
            raise RateLimited(
                f"The {'token' if is_token else 'key'} may send {rate.per_s:g} requests per second.",
                retry_after_s=math.ceil(wait_s),
            )

    async def close(self) -> None:
        """Close the connections to Redis."""
        redis, self._redis = self._redis, None
        if redis is not None:
            await redis.aclose(close_connection_pool=True)

    async def _take(self, name: str, rate: Rate) -> float:
        now, failures = self._clock(), self._failures
        if self._redis_url is not None and not self._is_away(now):
            try:
                async with asyncio.timeout(REDIS_S):
                    wait_s = await self._take_in_redis(self._redis_url, name, rate)
            except (RedisError, OSError, TimeoutError) as error:
                self._note_failure(error, now)
            else:
                self._note_answer(failures)
                return wait_s
        return self._local.take(name, rate, now.timestamp())

    def _note_failure(self, error: Exception, now: datetime) -> None:
        """Stop using Redis for `AWAY_S` seconds; log the failure unless Redis is already known to be down."""
        self._away_until = now + timedelta(seconds=AWAY_S)
        self._failures += 1
        if not self._is_down:
            log.warning("Redis is not reachable (%s); each process limits rates itself", type(error).__name__)
        self._is_down = True

    def _note_answer(self, failures: int) -> None:
        """Log that Redis answers again.

        `failures` is the number of failures when the request began. If it has risen since, nothing is logged.
        """
        if self._is_down and failures == self._failures:
            log.info("Redis is reachable again; the processes share their limits")
            self._is_down = False

    async def _take_in_redis(self, url: str, name: str, rate: Rate) -> float:
        if self._redis is None:
            self._redis = Redis(
                connection_pool=BlockingConnectionPool.from_url(url, max_connections=_CONNECTIONS, timeout=REDIS_S)
            )
            self._script = self._redis.register_script(_TAKE)
        return float(await self._script(keys=[f"memobook:rate:{name}"], args=[rate.interval_s, rate.burst_s]))

    def _is_away(self, now: datetime) -> bool:
        """Return whether Redis failed less than `AWAY_S` ago; False if the clock was set back since the failure."""
        until = self._away_until
        return until is not None and until - timedelta(seconds=AWAY_S) <= now < until


def _name_of(caller: Caller) -> str:
    """Return the name of the caller's bucket: a hash, so that Redis contains no ids of users."""
    parts = [caller.tenant, caller.key_id, caller.user_id, caller.chat_id]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
