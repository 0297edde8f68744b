"""A tenant that has used its monthly tokens: only its own background work waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.limits import TokenLimits
from app.kit.owners import Owner
from app.kit.usage import ModelCall, count_call
from app.kit.work_queue import NewWork
from app.registry import LAYERS
from tests.background import CountedClock, running
from tests.book import due_rows, statuses
from tests.conftest import client_of
from tests.operations.limited import CALL_TOKENS, limited_worker, make_key
from tests.scripted_model import ScriptedModel, refuses, says
from tests.talk import append, context, edit, get, ok, put, talk

HALF_A_DAY_S = 43_200.0
MONTH_S = 30 * 86_400.0


async def use(database: Database, tenant: str, clock: SteppedClock, tokens: int) -> None:
    """Count tokens that the tenant used in this month."""
    call = ModelCall(tenant, "memos", clock(), failed=False, prompt_tokens=tokens, completion_tokens=0, wait_ms=1)
    async with database.raw() as connection:
        await count_call(connection, call)


async def test_a_tenant_at_its_limit_gets_no_work_until_next_month(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 40))
    clock.step(2)
    async with limited_worker(database, clock, model, TokenLimits(2 * CALL_TOKENS)) as dispatcher:
        assert await dispatcher.drain() == 2
        assert sorted(await statuses(api)) == ["pending"] * 3 + ["ready"] * 2
        clock.step(MONTH_S - HALF_A_DAY_S - 3)  # the last second of April
        assert await dispatcher.drain() == 0
        assert {(row["attempts"], row["lease"]) for row in await due_rows(database, tenant)} == {(0, None)}
        clock.step(1)
        assert await dispatcher.drain() == 2
        clock.step(MONTH_S + 2 * HALF_A_DAY_S)
        assert await dispatcher.drain() == 1
    assert await statuses(api) == ["ready"] * 5


async def test_a_limit_that_is_not_used_up_holds_nothing(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 8))
    await use(database, tenant, clock, 999)
    clock.step(2)
    async with limited_worker(database, clock, model, TokenLimits(1_000)) as dispatcher:
        assert await dispatcher.drain() == 1


async def test_a_raised_limit_frees_what_was_held(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 8))
    await use(database, tenant, clock, 1_000)
    clock.step(2)
    for limits, made in ((TokenLimits(1_000), 0), (TokenLimits(1_000, {tenant: 1_001}), 1)):
        async with limited_worker(database, clock, model, limits) as dispatcher:
            assert await dispatcher.drain() == made


async def test_work_running_when_the_limit_is_reached_is_finished(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 40))
    clock.step(2)
    async with limited_worker(database, clock, model, TokenLimits(1), slots=3) as dispatcher:
        assert await dispatcher.drain() == 3
    assert sorted(await statuses(api)) == ["pending"] * 2 + ["ready"] * 3


async def test_failures_without_reported_usage_do_not_count(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 8))
    model.script(refuses(503), refuses(503))
    async with limited_worker(database, clock, model, TokenLimits(1)) as dispatcher:
        for _ in range(3):
            clock.step(60)
            assert await dispatcher.drain() == 1
    assert await statuses(api) == ["ready"]


async def test_answers_without_text_count_for_the_limit(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 8))
    model.otherwise = says(None, finish_reason="length", reasoning_content="Let me think.")
    async with limited_worker(database, clock, model, TokenLimits(CALL_TOKENS)) as dispatcher:
        clock.step(2)
        assert await dispatcher.drain() == 1
        await append(api, talk(9, 16))
        clock.step(60)
        assert await dispatcher.drain() == 0
    assert await statuses(api) == ["ready", "pending"]


async def test_other_tenants_are_served_while_one_is_held(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    app: FastAPI,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    for chat in ("a", "b", "c"):
        await append(api, talk(1, 400), chat)
    await use(database, tenant, clock, 1)
    clock.step(1)
    async with _another(app, database, f"{tenant}-other") as other:
        await append(other, talk(1, 16))
        clock.step(2)
        limits = TokenLimits(1, {f"{tenant}-other": None})
        async with limited_worker(database, clock, model, limits, slots=2) as dispatcher:
            assert await dispatcher.drain() == 2
        assert await statuses(other) == ["ready"] * 2
    assert set(await statuses(api)) == {"pending"}


async def test_work_of_users_and_tenants_is_held_too(
    database: Database, tenant: str, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    """No layer makes these items, so each attempt fails; what counts is when they are tried."""
    async with database.unit_of_work() as db_session:
        for owner in (Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant)):
            await work_queue.schedule(db_session, owner, "unheard of", [NewWork("1")], now=clock(), settle_s=0)
    await use(database, tenant, clock, 1)
    async with limited_worker(database, clock, model, TokenLimits(1)) as dispatcher:
        assert await dispatcher.drain() == 0
        clock.step(MONTH_S)
        assert await dispatcher.drain() == 2


async def test_without_a_model_nothing_is_counted_and_nothing_held(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, nothing_due: None
) -> None:
    await append(api, talk(1, 8))
    await use(database, tenant, clock, 5)
    clock.step(2)
    dispatcher = Dispatcher(JobContext(database, clock), LAYERS, slots=2, poll_s=30, limits=TokenLimits(1))
    assert await dispatcher.drain() == 1
    assert await statuses(api) == ["ready"]
    async with database.raw() as connection:
        used = await connection.fetchval("SELECT sum(calls) FROM model_usage WHERE tenant = $1", tenant)
    assert used == 1


async def test_requests_are_answered_as_ever_at_the_limit(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await put(api, settings={"history": {"keep_messages": 4, "grow_messages": 4}})
    await use(database, tenant, clock, 1)
    async with limited_worker(database, clock, model, TokenLimits(1)) as dispatcher:
        for first in range(1, 41, 8):
            await append(api, talk(first, first + 7), context={})
            clock.step(2)
            assert await dispatcher.drain() == 0
        await edit(api, "m1", content="Something else was said.")
        memo = (await get(api, "/memos"))["items"][0]
        ok(await api.post(f"/v1/chats/c/memos/{memo['id']}/regenerate"), 202)
        await dispatcher.drain()
        history = (await context(api))["history"]
    assert model.calls == []
    assert history["anchor_seq"] > 1, "a full cut waits for held work until it is forced"


async def test_the_loop_does_not_poll_for_held_work(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    counted = CountedClock(clock)
    await append(api, talk(1, 80))
    await use(database, tenant, clock, 1)
    clock.step(2)
    async with limited_worker(database, counted, model, TokenLimits(1)) as dispatcher, running(dispatcher):
        for _ in range(50):
            await context(api)  # time for many looks
        before = counted.reads.count
        for _ in range(50):
            await context(api)
        assert 1 <= counted.reads.count == before <= 4
        gate = model.hold(1)
        clock.step(MONTH_S)
        dispatcher.wake()
        await gate.reached()
        gate.release()


@asynccontextmanager
async def _another(app: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another tenant."""
    async with client_of(app, await make_key(database, tenant, "read", "write")) as client:
        yield client
