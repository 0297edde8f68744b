"""Connections at hand: taking one out of SQLAlchemy's pool costs as much as a query, so idle ones stay out of it."""

from typing import TypeAlias, cast

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
"""An asyncpg connection; the class itself cannot be subscripted when it runs."""


class Shelf:
    """The idle connections of a process, last used first.

    The engine's pool opens them, bounds them and lets those wait who find none: while somebody waits, what is put
    back goes there.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._idle: list[PoolProxiedConnection] = []
        self._waiting = 0

    async def take(self) -> PoolProxiedConnection:
        """An open connection; waits for one as long as the pool does."""
        while self._idle:
            pooled = self._idle.pop()
            if is_open(pooled):
                return pooled
            pooled.invalidate()
            pooled.close()
        self._waiting += 1
        try:
            return await self._engine.raw_connection()
        finally:
            self._waiting -= 1

    def put_back(self, pooled: PoolProxiedConnection) -> None:
        """Return a connection that is in no transaction."""
        if self._waiting or not is_open(pooled):
            pooled.close()
        else:
            self._idle.append(pooled)

    async def close(self) -> None:
        """Close the idle connections; those in use close when they are put back."""
        idle, self._idle = self._idle, []
        for pooled in idle:
            pooled.close()
        await self._engine.dispose()


def is_open(pooled: PoolProxiedConnection) -> bool:
    """Whether a connection is still there; raw statements hide from the pool that one has died."""
    driver = cast("Connection | None", pooled.driver_connection)
    return driver is not None and not driver.is_closed()
