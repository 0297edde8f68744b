"""Remembers what contexts recalled, so that no text is recalled in three turns in a row.

The data is in Redis, shared by all processes of the service, and may be lost. Without Redis, and for some
seconds after it fails, each process remembers its own contexts: a context never fails because Redis is down.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import orjson
from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from app.kit.clock import Clock
from app.search.turns import Remembered, add_turn

log = logging.getLogger(__name__)

REDIS_S: Final = 0.25
"""How long a context waits for Redis."""

AWAY_S: Final = 5.0
"""How long Redis is not asked after it has failed."""

KEPT_S: Final = 7 * 86_400
"""How long Redis remembers a line after its last recall."""

MAX_LINES: Final = 10_000
"""How many lines a process remembers without Redis."""

_CONNECTIONS: Final = 16


class RecallMemory:
    """Stores for each line which sources its contexts have recalled (`Remembered`).

    Args:
        clock: The service's clock.
        redis_url: The Redis that all processes share; None to remember in this process only.

    """

    def __init__(self, *, clock: Clock, redis_url: str | None) -> None:
        self._clock = clock
        self._redis_url = redis_url
        self._redis: Redis | None = None
        self._away_until: datetime | None = None
        self._local: OrderedDict[str, Remembered] = OrderedDict()

    async def read(self, line: tuple[UUID, UUID], *, only_chat: bool = False) -> Remembered:
        """Return what was recalled on a line (chat key, line id).

        What is recalled for callers who see only the chat itself (`only_chat`) is remembered separately.
        """
        name, now = _name_of(line, only_chat), self._clock()
        redis = self._ask(now)
        if redis is not None:
            try:
                async with asyncio.timeout(REDIS_S):
                    stored = await redis.get(name)
            except (RedisError, OSError, TimeoutError) as error:
                self._note_failure(error)
            else:
                self._note_answer(now)
                return _load(stored)
        return self._local.get(name, {})

    async def add(
        self,
        line: tuple[UUID, UUID],
        remembered: Remembered,
        newest_seq: int,
        sources: Collection[str],
        *,
        only_chat: bool = False,
    ) -> None:
        """Add what a context recalled to `remembered`, which `read` has returned, and store the result."""
        name, now, merged = _name_of(line, only_chat), self._clock(), add_turn(remembered, newest_seq, sources)
        self._local[name] = merged
        self._local.move_to_end(name)
        if len(self._local) > MAX_LINES:
            self._local.popitem(last=False)
        redis = self._ask(now)
        if redis is not None:
            stored = orjson.dumps({str(seq): sorted(known) for seq, known in merged.items()})
            try:
                async with asyncio.timeout(REDIS_S):
                    await redis.set(name, stored, ex=KEPT_S)
            except (RedisError, OSError, TimeoutError) as error:
                self._note_failure(error)
            else:
                self._note_answer(now)

    async def close(self) -> None:
        """Close the connections to Redis."""
        redis, self._redis = self._redis, None
        if redis is not None:
            await redis.aclose(close_connection_pool=True)

    def _ask(self, now: datetime) -> Redis | None:
        """Return the client; None without Redis, or a short time after it failed."""
        until = self._away_until
        is_away = until is not None and until - timedelta(seconds=AWAY_S) <= now < until
        if self._redis_url is None or is_away:
            return None
        if self._redis is None:
            self._redis = Redis(
                connection_pool=BlockingConnectionPool.from_url(
                    self._redis_url, max_connections=_CONNECTIONS, timeout=REDIS_S
                )
            )
        return self._redis

    def _note_failure(self, error: Exception) -> None:
        """Do not ask Redis for a while; log only the first failure of an outage."""
        if self._away_until is None:
            log.warning("Redis is not reachable (%s); each process remembers what it recalled", type(error).__name__)
        self._away_until = self._clock() + timedelta(seconds=AWAY_S)

    def _note_answer(self, asked_at: datetime) -> None:
        """Log that Redis answers again, unless it has failed since it was asked at `asked_at`."""
        if self._away_until is not None and asked_at >= self._away_until:
            log.info("Redis is reachable again; the processes share what they recalled")
            self._away_until = None


def _load(stored: bytes | None) -> Remembered:
    return {int(seq): frozenset(sources) for seq, sources in orjson.loads(stored).items()} if stored else {}


def _name_of(line: tuple[UUID, UUID], only_chat: bool) -> str:
    return f"memobook:recall:{line[0].hex}:{line[1].hex}{':chat' if only_chat else ''}"
