"""What Prometheus scrapes: it can be read, says what the database says, and is for administrators."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from app import RELEASE
from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.limits import TokenLimits
from app.kit.owners import Owner
from app.kit.settings import Settings
from app.kit.work_queue import NewWork
from app.main import create_app
from tests.background import holding, until_waited_for
from tests.conftest import client_of
from tests.operations.limited import CALL_TOKENS, limited_api, limited_worker, make_key
from tests.scripted_model import ScriptedModel, refuses
from tests.statements import watched
from tests.talk import append, ok, talk

MONTH_S = 30 * 86_400.0

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
async def admin(database: Database, tenant: str) -> str:
    """A key that may do everything."""
    return await make_key(database, f"{tenant}-admin", "read", "write", "admin")


@pytest.fixture
async def scraper(app: FastAPI, admin: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app, admin) as client:
        yield client


async def scrape(client: httpx.AsyncClient) -> Samples:
    """The samples by name and labels, as the library's own parser reads them."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def sample(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def work(samples: Samples) -> dict[str, float]:
    """Return the number of memos by status."""
    statuses = ("due", "running", "failed", "held")
    return {status: sample(samples, "memobook_work", status=status, layer="memos") for status in statuses}


async def test_calls_tokens_failures_and_waits_are_counted(
    api: httpx.AsyncClient,
    scraper: httpx.AsyncClient,
    tenant: str,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
) -> None:
    await append(api, talk(1, 24))
    model.script(refuses(503))
    clock.step(2)
    await dispatcher.drain()
    samples, labels = await scrape(scraper), {"tenant": tenant, "layer": "memos"}
    assert sample(samples, "memobook_model_calls_total", **labels) == 3
    assert sample(samples, "memobook_model_failures_total", **labels) == 1
    assert sample(samples, "memobook_model_tokens_total", direction="prompt", **labels) == 240
    assert sample(samples, "memobook_model_tokens_total", direction="completion", **labels) == 60
    assert sample(samples, "memobook_model_wait_seconds_total", **labels) > 0


async def test_counters_do_not_fall_when_a_month_begins(
    api: httpx.AsyncClient, scraper: httpx.AsyncClient, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for first, calls in ((1, 1), (9, 2)):
        await append(api, talk(first, first + 7))
        clock.step(MONTH_S)
        await dispatcher.drain()
        samples = await scrape(scraper)
        assert sample(samples, "memobook_model_calls_total", tenant=tenant, layer="memos") == calls


async def test_work_is_reported_by_status_with_zeros(
    api: httpx.AsyncClient, scraper: httpx.AsyncClient, database: Database, nothing_due: None
) -> None:
    assert work(await scrape(scraper)) == {"due": 0, "running": 0, "failed": 0, "held": 0}
    await append(api, talk(1, 32))
    async with database.raw() as connection:
        for at_seq, values in (
            (1, "failed_at = now()"),
            (9, "lease = gen_random_uuid(), leased_until = now() + interval '50 seconds'"),
            (17, "lease = gen_random_uuid(), leased_until = now() - interval '1 hour'"),
        ):
            await connection.execute(f"UPDATE work SET {values} WHERE at_seq = {at_seq}")
    assert work(await scrape(scraper)) == {"due": 2, "running": 1, "failed": 1, "held": 0}


async def test_work_of_users_and_tenants_is_counted(
    api: httpx.AsyncClient,
    scraper: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    nothing_due: None,
) -> None:
    async with database.unit_of_work() as db_session:
        for owner in (Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant)):
            await work_queue.schedule(db_session, owner, "memos", [NewWork("1")], now=clock(), settle_s=0)
    await append(api, talk(1, 8))
    assert work(await scrape(scraper)) == {"due": 3, "running": 0, "failed": 0, "held": 0}


async def test_work_of_lines_that_are_not_current_is_not_counted(
    api: httpx.AsyncClient, scraper: httpx.AsyncClient, nothing_due: None
) -> None:
    await append(api, talk(1, 8))
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    assert work(await scrape(scraper))["due"] == 1


async def test_due_work_of_a_tenant_at_its_limit_is_held(
    api: httpx.AsyncClient,
    database: Database,
    database_url: str,
    admin: str,
    tenant: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    limits = TokenLimits(None, {tenant: CALL_TOKENS})
    await append(api, talk(1, 24))
    clock.step(2)
    async with (
        limited_worker(database, clock, model, limits) as dispatcher,
        limited_api(database_url, clock, admin, limits) as scraper,
    ):
        await dispatcher.drain()
        assert work(await scrape(scraper)) == {"due": 0, "running": 0, "failed": 0, "held": 2}
        clock.step(MONTH_S)
        assert work(await scrape(scraper)) == {"due": 2, "running": 0, "failed": 0, "held": 0}


async def test_process_and_version_metrics_are_returned(scraper: httpx.AsyncClient) -> None:
    samples = await scrape(scraper)
    assert sample(samples, "memobook_build_info", version=RELEASE) == 1
    assert sample(samples, "process_resident_memory_bytes") > 0


async def test_every_metric_says_what_it_is(scraper: httpx.AsyncClient) -> None:
    answer = await scraper.get("/metrics", headers={"Accept": "application/openmetrics-text;version=none"})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert all(family.documentation for family in families.values())
    kinds = {name: family.type for name, family in families.items() if name.startswith("memobook_")}
    assert kinds == {
        "memobook_build_info": "gauge",
        "memobook_model_calls": "counter",
        "memobook_model_failures": "counter",
        "memobook_model_tokens": "counter",
        "memobook_model_wait_seconds": "counter",
        "memobook_process_refusals": "counter",
        "memobook_process_wait_seconds": "counter",
        "memobook_process_waiting": "gauge",
        "memobook_process_waits": "counter",
        "memobook_work": "gauge",
        "memobook_work_lateness_seconds": "gauge",
        "memobook_workers": "gauge",
    }


async def test_a_scrape_is_four_statements_however_much_there_is(
    api: httpx.AsyncClient, app: FastAPI, scraper: httpx.AsyncClient
) -> None:
    await append(api, talk(1, 80))
    await scrape(scraper)  # the key is known from here on
    async with watched(app.state.database) as seen:
        await scrape(scraper)
    assert len(seen.asked) == 4


async def test_with_keys_only_an_administrator_reads_it(
    api: httpx.AsyncClient, app: FastAPI, scraper: httpx.AsyncClient
) -> None:
    ok(await api.get("/metrics"), 403)
    async with client_of(app, None) as nobody:
        ok(await nobody.get("/metrics"), 401)
    await scrape(scraper)


async def test_without_any_key_loopback_reads_it(fresh_database_url: str, clock: SteppedClock) -> None:
    async with limited_api(fresh_database_url, clock, None, TokenLimits()) as anyone:
        assert work(await scrape(anyone))["due"] == 0
        ok(await anyone.get("/metrics", headers={"X-Forwarded-For": "10.0.0.1"}), 403)


async def test_without_postgresql_it_is_unavailable(clock: SteppedClock, tmp_path: Path) -> None:
    url = f"postgresql://memobook@/memobook?host={tmp_path}"
    async with limited_api(url, clock, None, TokenLimits()) as anyone:
        answer = await anyone.get("/metrics")
        assert ok(answer, 503)["code"] == "unavailable"
        assert answer.headers["Retry-After"] == "2"


async def test_waits_and_refusals_of_the_process_are_counted(
    database_url: str, admin: str, key: str, tenant: str, clock: SteppedClock
) -> None:
    settings = Settings(database_url=database_url, max_waiting_per_chat=1, _env_file=None)
    app = create_app(settings, clock=clock)
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, 'c')}' FOR UPDATE"
    async with client_of(app, key) as client, client_of(app, admin) as scraper:
        await append(client, talk(1, 1))
        async with holding(database_url, lock) as holder:
            waiting = [asyncio.create_task(client.delete("/v1/chats/c/messages/m1")) for _ in range(3)]
            await until_waited_for(holder)
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            during = await scrape(scraper)
        statuses = [answer.status_code for answer in await asyncio.gather(*waiting)]
        after = await scrape(scraper)
    await app.state.database.close()
    assert sorted(statuses) == [204, 404, 429]
    assert sample(during, "memobook_process_waiting") == 1
    assert sample(after, "memobook_process_waiting") == 0
    assert sample(after, "memobook_process_waits_total") == 1
    assert sample(after, "memobook_process_wait_seconds_total") > 0
    reasons = ("chat", "tenant", "total", "timeout", "disconnect", "rate_limit")
    refusals = [sample(after, "memobook_process_refusals_total", reason=reason) for reason in reasons]
    assert refusals == [1, 0, 0, 0, 0, 0]
