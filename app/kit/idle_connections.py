"""Idle connections, kept outside SQLAlchemy's pool because a checkout from that pool takes as long as a query."""

from typing import TypeAlias, cast

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
"""An asyncpg connection. The alias is a string because the class cannot be subscripted at run time."""


class IdleConnections:
    """The idle connections of a process, most recently used first.

    The engine's pool opens connections, limits their number, and makes callers wait if none is free. While a caller
    waits, connections that are put back go to the pool.

    Attributes:
        engine: The engine whose pool opens the connections.

    """

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._idle: list[PoolProxiedConnection] = []
        self._waiting = 0

    async def take(self) -> PoolProxiedConnection:
        """Return an open connection; waits for one up to the pool's timeout."""
        while self._idle:
            pooled = self._idle.pop()
            if is_open(pooled):
                return pooled
            pooled.invalidate()
            pooled.close()
        self._waiting += 1
        try:
            return await self.engine.raw_connection()
        finally:
            self._waiting -= 1

    def put_back(self, pooled: PoolProxiedConnection) -> None:
        """Put back a connection, which must not be in a transaction."""
        if self._waiting or not is_open(pooled):
            pooled.close()
        else:
            self._idle.append(pooled)

    def list_idle(self) -> list[Connection]:
        """Return the open connections that are not in use."""
        return [cast("Connection", pooled.driver_connection) for pooled in self._idle if is_open(pooled)]

    async def close(self) -> None:
        """Close the idle connections and the pool."""
        idle, self._idle = self._idle, []
        for pooled in idle:
            pooled.close()
        await self.engine.dispose()


def is_open(pooled: PoolProxiedConnection) -> bool:
    """Return whether a connection is open; the pool does not notice connections lost during raw statements."""
    driver = cast("Connection | None", pooled.driver_connection)
    return driver is not None and not driver.is_closed()
