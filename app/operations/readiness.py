"""Checks whether the service can serve requests, and whether memories are being made.

The answer has to arrive even if the database does not respond. So the checks have a time limit, and a check that
exceeds it is cancelled but not awaited.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

import asyncpg

from app.kit.db import Connection, Database
from app.kit.errors import AppError, TooManyWaiting
from app.kit.limits import TokenLimits
from app.kit.usage import list_held_tenants
from app.kit.worker_notifier import WorkerNotifier
from app.kit.workers import count_workers, find_lateness_s
from app.operations.revisions import is_migrated

DatabaseState = Literal["ok", "down", "busy", "not migrated", "read-only", "disk full"]
RedisState = Literal["ok", "down", "not configured"]

CHECK_S: Final = 1.5
"""The maximum duration of a check in seconds. Probes usually give up after two seconds."""

REFUSAL_S: Final = 30.0
"""For how many seconds after a refused write the database counts as not writable."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class DatabaseReport:
    """The state of the database and of the workers.

    Attributes:
        state: Whether the database can be used, and if not, why.
        workers: The number of running workers.
        lateness_s: For how many seconds the oldest ripe work (`kit/work_queue.py`) has waited for a worker. The work
            of tenants that have reached their token limits does not count.

    """

    state: DatabaseState
    workers: int = 0
    lateness_s: float = 0.0


async def check_database(database: Database, *, now: datetime, limits: TokenLimits) -> DatabaseReport:
    """Return the state of the database and of the workers.

    The state is `busy` if too many requests already wait for a connection. It is `down` if the database does not
    answer, or no connection becomes free, within `CHECK_S`.
    """
    report = await _within(_ask(database, now, limits), CHECK_S)
    if report is None:
        return DatabaseReport("down")
    refusal = database.last_refusal
    if report.state == "ok" and refusal is not None and time.monotonic() - refusal.at_s < REFUSAL_S:
        return DatabaseReport(refusal.state, report.workers, report.lateness_s)
    return report


class DatabaseChecks:
    """Checks the database, one check at a time: requests that come during a check share its result."""

    def __init__(self) -> None:
        self._running: asyncio.Task[DatabaseReport] | None = None

    async def report(self, database: Database, *, now: datetime, limits: TokenLimits) -> DatabaseReport:
        """Return the result of `check_database`, or of the check that is already running."""
        if self._running is None or self._running.done():
            # An empty context does not contain this request's client. Otherwise the check would end when this client
            # disconnects (`kit/gate/client_watch.py`), although other requests wait for the result, too.
            check = check_database(database, now=now, limits=limits)
            self._running = asyncio.create_task(check, context=Context())
        return await asyncio.shield(self._running)


async def check_redis(notifier: WorkerNotifier) -> RedisState:
    """Return the state of a configured Redis within `CHECK_S`."""
    return "ok" if await _within(notifier.is_reachable(), CHECK_S) else "down"


async def _ask(database: Database, now: datetime, limits: TokenLimits) -> DatabaseReport:
    try:
        async with database.raw() as connection:
            if not await is_migrated(connection):
                return DatabaseReport("not migrated")
            held = await list_held_tenants(connection, limits, now=now)
            lateness_s = await find_lateness_s(connection, now=now, without=held)
            return DatabaseReport(
                "read-only" if await _is_read_only(connection) else "ok", await count_workers(connection), lateness_s
            )
    except TooManyWaiting:
        return DatabaseReport("busy")
    except (AppError, asyncpg.PostgresError):
        return DatabaseReport("down")


async def _is_read_only(connection: Connection) -> bool:
    is_read_only: bool = await connection.fetchval("SELECT current_setting('transaction_read_only')::bool")
    return is_read_only


async def _within(check: Coroutine[Any, Any, _Result], seconds: float) -> _Result | None:
    """Return the result of a check. If it takes longer than `seconds`, cancel it without awaiting it; return None."""
    running = asyncio.create_task(check)
    try:
        done, _ = await asyncio.wait([running], timeout=seconds)
    finally:
        running.cancel()
    return running.result() if done else None
