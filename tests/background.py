"""Run background work: let time pass, make what is due, and start workers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from uuid import UUID

import asyncpg

from app.dispatcher import Dispatcher
from app.kit.clock import Clock, SteppedClock
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.pipeline import open_database
from app.registry import LAYERS
from tests.conftest import SETTLE_S, sqlalchemy_url
from tests.scripted_model import ScriptedModel, Tally
from tests.slowness import SLOWNESS

PATIENCE_S = 20 * SLOWNESS
LONG_S = 3_600.0
"""A poll interval that is longer than any test."""


class CountedClock:
    """Another clock, with the number of times that it was read: a worker reads it for each look for due work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reads = Tally()

    def __call__(self) -> datetime:
        """Return the time of the other clock."""
        self.reads.add()
        return self._clock()


@asynccontextmanager
async def worker(
    database_url: str, clock: Clock, model: ScriptedModel, *, slots: int = 8, save_s: float = 10.0
) -> AsyncIterator[Dispatcher]:
    """A worker with a pool and a model's client of its own, as another process would have."""
    async with AsyncExitStack() as stack:
        url = sqlalchemy_url(database_url)
        database = open_database(url, LAYERS, clock=clock, settle_s=SETTLE_S, notify=lambda: None, pool_size=slots + 2)
        stack.push_async_callback(database.close)
        client = ModelClient(model.base_url, "scripted", timeout_s=LONG_S, concurrency=slots, max_attempts=1)
        stack.push_async_callback(client.aclose)
        yield Dispatcher(JobContext(database, clock, client, save_s=save_s), LAYERS, slots=slots, poll_s=LONG_S)


@asynccontextmanager
async def running(dispatcher: Dispatcher) -> AsyncIterator[asyncio.Task[None]]:
    """The loop of a worker, until the block ends."""
    task = asyncio.create_task(dispatcher.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(database: Database, key: UUID, condition: str = "false") -> None:
    """Wait until the condition holds for all work under a key; by default until there is none."""
    async with asyncio.timeout(PATIENCE_S), database.raw() as connection:
        holds = f"SELECT NOT EXISTS (SELECT FROM work WHERE owner_key = $1 AND NOT ({condition})), pg_sleep(0.02)"
        while not await connection.fetchval(holds, key):
            pass


@asynccontextmanager
async def locked_chat(database: Database, tenant: str, chat_id: str = "c") -> AsyncIterator[Connection]:
    """Lock the chat's line, as a request does that changes it, until the block ends."""
    async with database.unit_of_work() as locking:
        await locking.raw.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await locking.raw.execute("SELECT 1 FROM chats WHERE chat_key = $1 FOR UPDATE", chat_key(tenant, chat_id))
        yield locking.raw


@asynccontextmanager
async def holding(database_url: str, statement: str) -> AsyncIterator[Connection]:
    """What a transaction does that commits when the block ends."""
    connection = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield connection
    finally:
        await connection.close()


async def until_waited_for(holder: Connection, times: int = 1) -> None:
    """Wait until transactions have waited for the lock of `holder` as often, one after another."""
    question = """SELECT (SELECT min(xact_start) FROM pg_stat_activity
        WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))), pg_sleep(0.01), pg_stat_clear_snapshot()"""
    waits: set[datetime] = set()
    async with asyncio.timeout(PATIENCE_S):
        while len(waits) < times:
            if (began_at := await holder.fetchval(question)) is not None:
                waits.add(began_at)


async def settle(dispatcher: Dispatcher, clock: SteppedClock, wait_s: float = 2) -> int:
    """Let time pass, by default the settle time, run what is due, and return the number of attempts."""
    clock.step(wait_s)
    return await dispatcher.drain()


async def settle_rounds(dispatcher: Dispatcher, clock: SteppedClock, rounds: int = 6, wait_s: float = 2) -> None:
    """Let time pass several times, so that work is run that other work made due."""
    for _ in range(rounds):
        await settle(dispatcher, clock, wait_s)


@asynccontextmanager
async def while_the_model_is_asked(dispatcher: Dispatcher, model: ScriptedModel) -> AsyncIterator[None]:
    """Run the block while the model holds its next answer back; then run all work that is due."""
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    try:
        yield
    finally:
        gate.release()
        await draining
