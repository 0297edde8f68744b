"""The worker process in this one: notifications wake it, and whatever Redis does, it works and it ends."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.settings import Settings
from app.local.directory import DataDirectory
from app.local.running import Urls
from app.local.servers import running_servers
from app.main import create_app
from app.worker import make_model, run_worker
from tests.book import statuses
from tests.conftest import client_of
from tests.scripted_model import ScriptedModel
from tests.slowness import SLOWNESS
from tests.talk import append, ok, put, talk

PATIENCE_S = 20 * SLOWNESS
LONG_S = 3_600.0
"""A poll interval that is longer than any test."""


@pytest.fixture
async def own_redis() -> AsyncIterator[str]:
    """The URL of a Valkey of the test's own, which is started again when it is killed."""
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        directory = DataDirectory(Path(path) / "data")
        directory.make()
        async with running_servers(
            directory,
            database_url="postgresql://not.used",
            redis_url=None,
            postgres_settings={},
            say=lambda _line: None,
        ) as urls:
            yield urls.redis_url


def process_of(redis_url: str) -> psutil.Process:
    """The server behind the URL of a socket."""
    socket = redis_url.removeprefix("unix://")
    return next(child for child in psutil.Process().children() if socket in " ".join(child.cmdline()))


def settings_for(database_url: str, redis_url: str | None, model: ScriptedModel, poll_s: float) -> Settings:
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        llm_base_url=model.base_url,
        llm_model="scripted",
        settle_s=0,
        poll_s=poll_s,
        _env_file=None,
    )


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[asyncio.Task[None]]:
    """A worker, until the block ends; it must end in time then, and not before."""
    task = asyncio.create_task(run_worker(settings))
    try:
        yield task
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            async with asyncio.timeout(PATIENCE_S):
                await task


@asynccontextmanager
async def serving(settings: Settings, clock: SteppedClock, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with its notifier. Its clock is behind the worker's: what it makes due is ripe."""
    app = create_app(settings, clock=clock)
    async with app.router.lifespan_context(app), client_of(app, key) as client:
        yield client


async def until_made(database: Database, tenant: str) -> None:
    """Wait until nothing of the chat is due."""
    async with asyncio.timeout(PATIENCE_S), database.raw() as connection:
        waiting = "SELECT count(*), pg_sleep(0.02) FROM work WHERE owner_key = $1"
        while await connection.fetchval(waiting, chat_key(tenant, "c")):
            pass


async def test_a_notification_makes_the_worker_write_a_memo(
    database_url: str,
    servers: Urls,
    database: Database,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    settings = settings_for(database_url, servers.redis_url, model, LONG_S)
    async with working(settings), serving(settings, clock, key) as api:
        for first in (1, 9, 17):
            await append(api, talk(first, first + 7))
            await until_made(database, tenant)
        assert await statuses(api) == ["ready"] * 3


async def test_memos_are_made_while_redis_is_away(
    database_url: str,
    database: Database,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    settings = settings_for(database_url, "unix:///nowhere/redis.sock", model, poll_s=1)
    async with working(settings), serving(settings, clock, key) as api:
        for first in (1, 9):
            await append(api, talk(first, first + 7))
            await until_made(database, tenant)
        assert await statuses(api) == ["ready"] * 2
        assert ok(await api.get("/readyz"), 200)["redis"] == "down"


async def test_a_redis_that_hangs_slows_no_request_and_stops_no_memo(
    database_url: str,
    own_redis: str,
    database: Database,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    settings = settings_for(database_url, own_redis, model, poll_s=1)
    async with working(settings), serving(settings, clock, key) as api:
        await append(api, talk(1, 8))
        await until_made(database, tenant)
        process_of(own_redis).suspend()
        for first in (9, 17):
            await append(api, talk(first, first + 7))
            await until_made(database, tenant)
        assert await statuses(api) == ["ready"] * 3
        assert ok(await api.get("/readyz"), 200)["status"] == "degraded"
    process_of(own_redis).resume()


async def test_notifications_work_again_after_redis_was_killed(
    database_url: str,
    own_redis: str,
    database: Database,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    settings = settings_for(database_url, own_redis, model, LONG_S)
    async with working(settings), serving(settings, clock, key) as api:
        await append(api, talk(1, 8))
        await until_made(database, tenant)
        process_of(own_redis).kill()
        for first in (9, 17, 25):  # notified while Redis is down or coming back: found when it is back
            await append(api, talk(first, first + 7))
            await until_made(database, tenant)
        assert await statuses(api) == ["ready"] * 4


async def test_each_layer_asks_as_the_deployment_says(
    database_url: str,
    database: Database,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    settings = settings_for(database_url, None, model, poll_s=1).model_copy(
        update={
            "llm_max_tokens": 4_000,
            "llm_extra_body": {"seed": 1},
            "llm_model_of": {"memos": "large"},
            "llm_temperature_of": {"memos": 0.9},
        }
    )
    async with working(settings), serving(settings, clock, key) as api:
        summary = {"threshold_messages": 4, "keep_messages": 2}
        await put(api, settings={"preset": "diary", "memos": {"enabled": True}, "summary": summary})
        await append(api, talk(1, 8))
        await until_made(database, tenant)
    sent = {request["model"]: request for request in model.requests}
    assert set(sent) == {"large", "scripted"}
    assert {request["max_tokens"] for request in sent.values()} == {4_000}
    assert {request["seed"] for request in sent.values()} == {1}
    assert sent["large"]["temperature"] == 0.9 != sent["scripted"]["temperature"]


async def test_without_a_model_no_client_is_created(database_url: str) -> None:
    assert make_model(Settings(database_url=database_url, _env_file=None)) is None
