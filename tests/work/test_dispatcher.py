"""The worker's loop: what it takes first, how it shares, when it looks, and what it leaves when it ends."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit import work_queue
from app.kit.clock import SteppedClock, system_clock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.owners import Owner
from app.kit.work_queue import NewWork
from app.registry import LAYERS
from tests.background import (
    LONG_S,
    PATIENCE_S,
    CountedClock,
    locked_chat,
    running,
    until,
    while_the_model_is_asked,
    worker,
)
from tests.book import book, change, due_rows, statuses
from tests.conftest import NOON, client_of, sqlalchemy_url
from tests.scripted_model import ScriptedModel
from tests.summarising.quoted import quoted_in
from tests.talk import append, context, put, said, talk

# --- what it takes first ---


async def test_memos_just_before_the_anchor_are_made_first(
    api: httpx.AsyncClient, database_url: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 64))
    anchor_seq = (await context(api))["history"]["anchor_seq"]
    assert anchor_seq == 49
    clock.step(2)
    async with worker(database_url, clock, model, slots=1) as dispatcher:
        assert await dispatcher.drain() == 8 + 1  # the index of words
    batches = [str(quoted_in(request["messages"][-1]["content"], "messages")) for request in model.requests]
    made = [next(n for n in range(1, 65) if f"number {n}." in batch) for batch in batches]
    assert made == [41, 33, 25, 17, 9, 1, 49, 57]


async def test_no_more_is_claimed_than_there_are_free_slots(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 80))
    clock.step(2)
    gate = model.hold()
    async with worker(database_url, clock, model, slots=3) as dispatcher:
        draining = asyncio.create_task(dispatcher.drain())
        await gate.reached(3)
        leased = [row for row in await due_rows(database, tenant) if row["lease"]]
        assert len(leased) == 3
        assert sum(row["attempts"] for row in await due_rows(database, tenant)) == 3
        gate.release()
        assert await draining == 10 + 1  # the index of words
    assert model.peak == 3


async def test_two_workers_at_once_make_every_memo_exactly_once(
    api: httpx.AsyncClient, database_url: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 320))
    clock.step(2)
    async with worker(database_url, clock, model) as one, worker(database_url, clock, model) as other:
        shares = await asyncio.gather(one.drain(), other.drain())
    assert len(model.calls) == 40
    assert sum(shares) == 40 + 2  # the index of words
    assert min(shares) > 0
    assert await statuses(api) == ["ready"] * 40
    assert {memo["attempts"] for memo in await book(api)} == {1}


@pytest.mark.parametrize("slots", [1, 4])
async def test_an_active_chat_does_not_wait_for_anothers_import(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
    slots: int,
) -> None:
    await append(api, talk(1, 1_000), "imported")
    clock.step(1)
    await append(api, [said(n, content=f"live {n}") for n in range(1, 9)])
    clock.step(2)
    async with worker(database_url, clock, model, slots=slots) as dispatcher, running(dispatcher):
        await until(database, chat_key(tenant, "c"))
    assert any("live" in str(request) for request in model.requests[: 2 * slots])


async def test_with_a_single_slot_chats_take_turns(
    api: httpx.AsyncClient, database_url: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    for chat in ("a", "b", "c"):
        await append(api, [said(n, content=f"in chat {chat}, {n}") for n in range(1, 33)], chat)
        clock.step(1)
    clock.step(2)
    async with worker(database_url, clock, model, slots=1) as dispatcher:
        assert await dispatcher.drain() == 12
    told = [next(chat for chat in "abc" if f"in chat {chat}," in str(request)) for request in model.requests]
    assert told == ["a", "b", "c"] * 4


async def test_work_of_a_user_and_a_tenant_takes_its_turn(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    """No layer makes these items, so what shows that they were claimed is that they were put off."""
    await append(api, talk(1, 1_000))
    clock.step(1)
    owners = [Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant)]
    for owner in owners:
        async with database.unit_of_work() as db_session:
            await work_queue.schedule(db_session, owner, "unheard of", [NewWork("1")], now=clock(), settle_s=0)
    clock.step(2)
    gate = model.hold()
    async with worker(database_url, clock, model, slots=4) as dispatcher, running(dispatcher):
        await gate.reached(2)
        for owner in owners:
            await until(database, owner.key, "attempts = 0 AND run_after > first_due_at AND lease IS NULL")
        await gate.reached(4)
        assert len(model.requests) == 4, "the flood has all slots again"
        gate.release()


async def test_a_line_claimed_by_another_process_is_skipped(
    api: httpx.AsyncClient, dispatcher: Dispatcher, database: Database, clock: SteppedClock
) -> None:
    await append(api, talk(1, 16))
    clock.step(2)
    async with asyncio.timeout(PATIENCE_S), database.unit_of_work() as claiming:
        await claiming.raw.execute("SELECT 1 FROM work WHERE at_seq = 1 FOR UPDATE")
        assert await dispatcher.drain() == 1
    assert await statuses(api) == ["pending", "ready"]
    assert await dispatcher.drain() == 1


# --- how it shares ---


async def test_no_tenant_takes_over_half_the_slots_while_others_wait(
    api: httpx.AsyncClient,
    app: FastAPI,
    database: Database,
    database_url: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, [said(n, content=f"greedy {n}") for n in range(1, 321)])
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, "another-tenant", ["read", "write"], NOON)
    clock.step(1)
    async with client_of(app, key.text) as other:
        await append(other, [said(n, content=f"patient {n}") for n in range(1, 49)])
    clock.step(2)
    gate = model.hold()
    async with worker(database_url, clock, model, slots=8) as dispatcher:
        draining = asyncio.create_task(dispatcher.drain())
        await gate.reached(8)
        assert sum("patient" in str(request) for request in model.requests) == 4
        gate.release()
        assert await draining == 46 + 2  # the index of words
    assert sum("patient" in str(request) for request in model.requests[:16]) >= 4


async def test_a_tenant_alone_has_all_the_slots(
    api: httpx.AsyncClient, database_url: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 64))
    clock.step(2)
    gate = model.hold()
    async with worker(database_url, clock, model, slots=8) as dispatcher:
        draining = asyncio.create_task(dispatcher.drain())
        await gate.reached(8)
        gate.release()
        await draining


# --- when it looks ---


async def test_the_loop_claims_work_when_it_starts(
    api: httpx.AsyncClient, dispatcher: Dispatcher, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    async with running(dispatcher):
        await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"]


async def test_the_loop_claims_work_when_it_is_woken(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    async with worker(database_url, clock, model) as dispatcher, running(dispatcher):
        for first in (1, 9, 17):
            await append(api, talk(first, first + 7))
            clock.step(2)
            dispatcher.wake()
            await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"] * 3


async def test_the_loop_claims_work_when_the_next_row_is_due(
    database_url: str, tenant: str, key: str, database: Database, model: ScriptedModel, app: FastAPI, nothing_due: None
) -> None:
    app.state.clock = system_clock  # ripening is waited for, so the clock has to run
    async with client_of(app, key) as api, AsyncExitStack() as stack:
        client = ModelClient(model.base_url, "scripted", timeout_s=60, max_attempts=1)
        stack.push_async_callback(client.aclose)
        dispatcher = Dispatcher(JobContext(database, system_clock, client), LAYERS, slots=2, poll_s=LONG_S)
        await append(api, talk(1, 8))
        assert (await due_rows(database, tenant))[0]["run_after"] > datetime.now(UTC)
        await stack.enter_async_context(running(dispatcher))
        await until(database, chat_key(tenant, "c"))
        assert await statuses(api) == ["ready"]


async def test_work_ready_while_all_slots_were_taken_follows_at_once(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 40))
    clock.step(2)
    async with worker(database_url, clock, model, slots=1) as dispatcher, running(dispatcher):
        await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"] * 5
    assert model.peak == 1


async def test_the_loop_soon_rechecks_lines_locked_by_others(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, nothing_due: None
) -> None:
    counted = CountedClock(clock)
    await append(api, talk(1, 8))
    clock.step(2)
    dispatcher = Dispatcher(JobContext(database, counted), LAYERS, slots=8, poll_s=LONG_S)
    async with AsyncExitStack() as stack:
        async with database.unit_of_work() as claiming:
            await claiming.raw.execute("SELECT 1 FROM work WHERE owner_key = $1 FOR UPDATE", chat_key(tenant, "c"))
            await stack.enter_async_context(running(dispatcher))
            await counted.reads.reaches(3)
        await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"]


async def test_the_loop_survives_errors_of_postgresql(fresh_database_url: str, clock: SteppedClock) -> None:
    counted = CountedClock(clock)
    async with AsyncExitStack() as stack:
        database = Database(sqlalchemy_url(fresh_database_url), pool_size=4)
        stack.push_async_callback(database.close)
        async with database.raw() as connection:
            await connection.execute("ALTER TABLE work RENAME TO not_yet")
        await stack.enter_async_context(
            running(Dispatcher(JobContext(database, counted), LAYERS, slots=8, poll_s=LONG_S))
        )
        await counted.reads.reaches(2)  # the second only because the first was refused


async def test_the_loop_outlives_the_loss_of_its_connections(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    async with worker(database_url, clock, model) as dispatcher, running(dispatcher):
        await append(api, talk(1, 8))
        clock.step(2)
        gate = model.hold(1)
        dispatcher.wake()
        await gate.reached()
        async with database.raw() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        gate.release()
        await until(database, chat_key(tenant, "c"))
    assert await statuses(api) == ["ready"]


# --- what it leaves ---


async def test_a_lease_is_renewed_for_as_long_as_the_model_thinks(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    gate = model.hold(1)
    async with worker(database_url, clock, model) as dispatcher, running(dispatcher):
        await gate.reached()
        await _until_renewed(database, tenant)
        gate.release()
        await until(database, chat_key(tenant, "c"))
    assert len(model.calls) == 1


async def test_a_lease_is_renewed_while_a_worker_drains(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    async with worker(database_url, clock, model) as dispatcher, while_the_model_is_asked(dispatcher, model):
        await _until_renewed(database, tenant)
    assert len(model.calls) == 1


@pytest.mark.parametrize("has_renewed", [False, True])
async def test_a_worker_that_stood_still_keeps_its_own_items(
    api: httpx.AsyncClient,
    database_url: str,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
    has_renewed: bool,
) -> None:
    """Its machine was suspended, so only the clock of the day shows how long ago it renewed its leases, if ever."""
    await append(api, talk(1, 8))
    clock.step(2)
    gate = model.hold(1)
    async with worker(database_url, clock, model) as dispatcher:
        await dispatcher._poll()  # not in its loop, which would renew the lease
        await gate.reached()
        if has_renewed:
            await dispatcher._renew_once()
        await change(database, tenant, "work", "leased_until = clock_timestamp() - interval '1 hour'")
        clock.step(60)
        await dispatcher._poll()
        gate.release()
        await dispatcher.drain()
    assert len(model.calls) == 1


async def _until_renewed(database: Database, tenant: str) -> None:
    """Let the leases expire, and wait until they are renewed."""
    await change(database, tenant, "work", "leased_until = clock_timestamp() - interval '1 hour'")
    await until(database, chat_key(tenant, "c"), "leased_until > clock_timestamp()")


async def test_a_loop_stopped_during_a_notification_ends(dispatcher: Dispatcher) -> None:
    for steps in (0, 1, 10, 100, 1_000, 10_000):  # the last ones find it waiting
        task = asyncio.create_task(dispatcher.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        dispatcher.wake()
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE_S)
        assert task.cancelled()


async def test_a_loop_that_ends_gives_its_claims_back_unused(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    clock: SteppedClock,
) -> None:
    await append(api, talk(1, 16))
    clock.step(2)
    gate = model.hold(2)
    async with running(dispatcher):
        await gate.reached(2)
    rows = await due_rows(database, tenant)
    assert [(row["attempts"], row["lease"], row["error"]) for row in rows] == [(0, None, None)] * 2
    gate.release()
    assert await dispatcher.drain() == 2
    assert [memo["attempts"] for memo in await book(api)] == [1, 1]


async def test_a_loop_stopped_during_a_write_leaves_no_partial_memo(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    clock: SteppedClock,
) -> None:
    for round_ in range(12):
        await append(api, talk(8 * round_ + 1, 8 * round_ + 8))
        clock.step(2)
        gate = model.hold(1)
        async with running(dispatcher):
            await gate.reached()
            gate.release()
            for _ in range(10 * round_):
                await asyncio.sleep(0)
        memos = await book(api)
        rows = [row for row in await due_rows(database, tenant) if row["layer"] == "memos"]
        assert [memo["status"] for memo in memos].count("pending") == len(rows)
        assert all((row["attempts"], row["lease"]) == (0, None) for row in rows)
        await dispatcher.drain()
        assert await due_rows(database, tenant) == []
    assert await statuses(api) == ["ready"] * 12


async def test_a_chat_locked_for_long_holds_up_no_other(
    api: httpx.AsyncClient, dispatcher: Dispatcher, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    await append(api, talk(1, 8), "other")
    clock.step(2)
    async with asyncio.timeout(PATIENCE_S), locked_chat(database, tenant), running(dispatcher):
        await until(database, chat_key(tenant, "other"))
    await dispatcher.drain()
    assert await statuses(api) == ["ready"]


async def test_an_erased_chat_takes_its_due_work_with_it(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    clock: SteppedClock,
) -> None:
    await append(api, talk(1, 8))
    await api.delete("/v1/chats/c")
    assert await due_rows(database, tenant) == []
    clock.step(2)
    assert await dispatcher.drain() == 0
    assert model.calls == []


async def test_a_chat_whose_messages_never_fill_a_batch_costs_no_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await put(api, settings={"memos": {"every_messages": 64}})
    await append(api, talk(1, 63))
    clock.step(LONG_S)
    assert await dispatcher.drain() == 0
    assert model.calls == []
