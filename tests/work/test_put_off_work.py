"""Work that could not be made because PostgreSQL was away or its chat was locked: it is due again, as it was."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS
from tests.background import PATIENCE_S, CountedClock, locked_chat, running, until, until_waited_for, worker
from tests.book import change, due_rows, statuses
from tests.proxies import FreezingProxy
from tests.scripted_model import ScriptedModel
from tests.slowness import SLOWNESS
from tests.talk import append, talk

RETRIED_WITHIN_S = 8


@pytest.fixture
async def hasty_dispatcher(
    database_url: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> AsyncIterator[Dispatcher]:
    """A worker's loop that drops a draft which cannot be saved at once."""
    async with worker(database_url, clock, model, save_s=0) as dispatcher:
        yield dispatcher


async def wait_s(database: Database, row: asyncpg.Record) -> float:
    """In how many seconds a worker may claim the item, by PostgreSQL's clock."""
    async with database.raw() as connection:
        return float(
            await connection.fetchval("SELECT extract(epoch FROM $1 - clock_timestamp())", row["leased_until"])
        )


async def test_a_draft_is_saved_once_its_chat_is_free(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    async with locked_chat(database, tenant) as holder:
        draining = asyncio.create_task(dispatcher.drain())
        await until_waited_for(holder, times=2)
    assert await draining == 1
    assert await statuses(api) == ["ready"]
    assert len(model.calls) == 1


@pytest.mark.parametrize(("due_for_s", "least_s", "most_s"), [(2, 0.5, 3), (3_600, 4, RETRIED_WITHIN_S)])
async def test_a_locked_chat_costs_no_attempt(
    api: httpx.AsyncClient,
    hasty_dispatcher: Dispatcher,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    due_for_s: float,
    least_s: float,
    most_s: float,
) -> None:
    await append(api, talk(1, 8))
    clock.step(due_for_s)
    await change(database, tenant, "work", f"attempts = {MAX_ATTEMPTS - 1}, error = 'the model was away'")
    async with locked_chat(database, tenant):
        draining = asyncio.create_task(hasty_dispatcher.drain())
        await until(database, chat_key(tenant, "c"), f"attempts = {MAX_ATTEMPTS}")
        await until(database, chat_key(tenant, "c"), f"attempts = {MAX_ATTEMPTS - 1}")
        (row,) = await due_rows(database, tenant)
        assert (row["error"], row["failed_at"]) == ("the model was away", None)
        left_s = await wait_s(database, row)
        assert left_s <= most_s
        assert left_s >= least_s or SLOWNESS > 1  # a slow machine looks later
    assert await draining == 2
    assert await statuses(api) == ["ready"]


async def test_the_loop_soon_retries_work_of_a_locked_chat(
    api: httpx.AsyncClient, hasty_dispatcher: Dispatcher, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    async with running(hasty_dispatcher):  # it polls every hour
        async with asyncio.timeout(PATIENCE_S), locked_chat(database, tenant):
            await until(database, chat_key(tenant, "c"), "attempts = 1")
            await until(database, chat_key(tenant, "c"), "attempts = 0")
        await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"]


async def test_an_outage_of_postgresql_costs_no_attempt(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
    short_path: Path,
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await change(database, tenant, "work", f"attempts = {MAX_ATTEMPTS - 1}")
    proxy = FreezingProxy(database_url, short_path)
    counted = CountedClock(clock)
    async with worker(proxy.url, counted, model, slots=2, save_s=0) as dispatcher:
        gate = model.hold(1)
        async with proxy:
            draining = asyncio.create_task(dispatcher.drain())
            await gate.reached()
        before = counted.reads.count
        gate.release()
        await counted.reads.reaches(before + 3)  # it could not count the call, save the memo, or give the item back
        (row,) = await due_rows(database, tenant)
        assert row["attempts"] == MAX_ATTEMPTS, "the claim counted"
        async with proxy:
            await until(database, chat_key(tenant, "c"), f"attempts = {MAX_ATTEMPTS - 1}")
            (row,) = await due_rows(database, tenant)
            assert (row["error"], row["failed_at"]) == (None, None)
            assert await wait_s(database, row) <= RETRIED_WITHIN_S
            assert await draining == 2
    assert await statuses(api) == ["ready"]
