"""A clock that is an hour off, on any machine, delays no work by more than a minute."""

from datetime import timedelta

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.settings import Settings
from app.kit.workers import count_workers, has_reported
from app.local.running import Urls
from app.main import create_app
from tests.book import change, due_rows, statuses
from tests.conftest import NOON, SETTLE_S, client_of
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, get, talk

HOUR_S = 3_600.0


@pytest.mark.parametrize("ahead_s", [-HOUR_S, HOUR_S])
async def test_work_of_an_api_with_another_time_is_done(
    dispatcher: Dispatcher, clock: SteppedClock, database_url: str, servers: Urls, key: str, ahead_s: float
) -> None:
    settings = Settings(database_url=database_url, redis_url=servers.redis_url, settle_s=SETTLE_S, _env_file=None)
    app = create_app(settings, clock=SteppedClock(NOON + timedelta(seconds=ahead_s)))
    async with client_of(app, key) as api:
        await append(api, talk(1, 16))
        clock.step(SETTLE_S)
        await dispatcher.drain()
        assert await statuses(api) == ["ready"] * 2
    await app.state.database.close()


@pytest.mark.parametrize("failures", [1, 3, 5])
@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
async def test_a_retry_is_made_after_the_workers_clock_was_set(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    failures: int,
    step_s: float,
) -> None:
    await append(api, talk(1, 8))
    clock.step(SETTLE_S)
    model.otherwise = refuses(503)
    await dispatcher.drain()
    for _ in range(failures - 1):
        (row,) = await due_rows(database, tenant)
        clock.step((row["run_after"] - clock()).total_seconds())
        await dispatcher.drain()
    (row,) = await due_rows(database, tenant)
    assert row["attempts"] == failures
    model.otherwise = "【Highlight 1】: Mira lit the lamp."
    clock.step((row["run_after"] - clock()).total_seconds() - 5 + step_s)
    await dispatcher.drain()
    assert await statuses(api) == ["ready"]


@pytest.mark.parametrize("left", ["interval '1 hour'", "interval '-1 hour'"])
async def test_a_lost_lease_ends_after_postgresqls_clock_was_set(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str, left: str
) -> None:
    await append(api, talk(1, 8))
    lease = f"lease = gen_random_uuid(), leased_until = clock_timestamp() + {left}"
    await change(database, tenant, "work", lease)
    assert (await get(api, "/memos"))["items"][0]["status"] == "pending"
    clock.step(SETTLE_S)
    await dispatcher.drain()
    assert await statuses(api) == ["ready"]


async def test_a_worker_that_reported_in_the_future_is_not_counted(database: Database) -> None:
    async with database.raw() as connection:
        before = await count_workers(connection)
        worker = await connection.fetchval(
            "INSERT INTO workers (worker_id, seen_at) VALUES (gen_random_uuid(), now() + interval '1 hour')"
            " RETURNING worker_id"
        )
        try:
            assert await count_workers(connection) == before
            assert not await has_reported(connection, worker)
        finally:
            await connection.execute("DELETE FROM workers WHERE worker_id = $1", worker)


async def test_work_whose_time_has_not_come_is_left_alone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 8))
    clock.step(SETTLE_S - 1)
    assert await dispatcher.drain() == 0
    clock.step(1)
    model.otherwise = refuses(503, retry_after="3600")
    assert await dispatcher.drain() == 1
    clock.step(HOUR_S - 1)
    assert await dispatcher.drain() == 0
    clock.step(1)
    assert await dispatcher.drain() == 1
