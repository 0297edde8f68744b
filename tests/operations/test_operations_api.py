"""What an operator asks over HTTP: does it live, is it ready, what is due, what has failed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from app import RELEASE
from app.dispatcher import Dispatcher
from app.kit import workers
from app.kit.clock import SteppedClock
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from tests.conftest import client_of
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, get, ok, put, talk, walk


@asynccontextmanager
async def service(clock: SteppedClock, **settings: str | None) -> AsyncIterator[httpx.AsyncClient]:
    """A process of the service with these settings, asked without a key."""
    app = create_app(Settings(**settings, _env_file=None), clock=clock)  # type: ignore[arg-type]  # all are text
    async with client_of(app, None) as client:
        yield client
    await app.state.database.close()


async def test_a_service_with_everything_is_ready(fresh_database_url: str, servers: Urls, clock: SteppedClock) -> None:
    model = {"llm_base_url": "http://localhost:1/v1", "llm_model": "scripted"}
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    await workers.report(connection, uuid4())
    await connection.close()
    async with service(clock, database_url=fresh_database_url, redis_url=servers.redis_url, **model) as client:
        assert ok(await client.get("/readyz"), 200) == {
            "status": "ok",
            "database": "ok",
            "redis": "ok",
            "model": "configured",
            "worker": "ok",
            "work": "on time",
        }
        assert ok(await client.get("/healthz"), 200) == {"status": "ok", "version": RELEASE}


async def test_without_redis_or_a_model_it_is_degraded_and_serves(
    fresh_database_url: str, servers: Urls, clock: SteppedClock, tmp_path: Path
) -> None:
    nowhere = f"unix://{tmp_path}/nothing.sock"
    for redis_url, redis in ((servers.redis_url, "ok"), (None, "not configured"), (nowhere, "down")):
        async with service(clock, database_url=fresh_database_url, redis_url=redis_url) as client:
            assert ok(await client.get("/readyz"), 200) == {
                "status": "degraded",
                "database": "ok",
                "redis": redis,
                "model": "not configured",
                "worker": "none",
                "work": "on time",
            }


async def test_without_redis_everything_answers(fresh_database_url: str, clock: SteppedClock, tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/nothing.sock"
    async with service(clock, database_url=fresh_database_url, redis_url=nowhere) as client:
        await put(client)
        await append(client, talk(1, 9), context={})
        assert (await get(client, ""))["work"]["due"] == 1
        memo = (await get(client, "/memos"))["items"][0]
        ok(await client.post(f"/v1/chats/c/memos/{memo['id']}/regenerate"), 202)


async def test_without_postgresql_it_is_healthy_but_not_ready(clock: SteppedClock, tmp_path: Path) -> None:
    async with service(clock, database_url=f"postgresql://memobook@/memobook?host={tmp_path}") as client:
        assert ok(await client.get("/readyz"), 503)["database"] == "down"
        assert ok(await client.get("/readyz"), 503)["status"] == "down"
        ok(await client.get("/healthz"), 200)


async def test_without_its_schema_it_is_not_ready(servers: Urls, clock: SteppedClock) -> None:
    async with service(clock, database_url=servers.database_url) as client:
        assert ok(await client.get("/readyz"), 503)["database"] == "not migrated"


async def test_a_schema_of_a_later_version_is_ready(fresh_database_url: str, clock: SteppedClock) -> None:
    for change, status, told in (
        ("UPDATE alembic_version SET version_num = 'of a later version'", 200, "ok"),
        ("DELETE FROM alembic_version", 503, "not migrated"),
    ):
        connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
        await connection.execute(change)
        await connection.close()
        async with service(clock, database_url=fresh_database_url) as client:
            assert ok(await client.get("/readyz"), status)["database"] == told


async def test_health_docs_and_schema_need_no_key(app: FastAPI, key: str) -> None:
    async with client_of(app, None) as nobody:
        for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
            assert (await nobody.get(path)).status_code == 200
        for path in ("/v1/work", "/v1/usage", "/metrics", "/v1/presets", "/v1/chats"):
            assert (await nobody.get(path)).status_code == 401


async def test_work_lists_due_items_and_their_last_error(
    api: httpx.AsyncClient, clock: SteppedClock, dispatcher: Dispatcher, model: ScriptedModel
) -> None:
    await append(api, talk(1, 16))
    due = ok(await api.get("/v1/work"), 200)["items"]
    assert [{name: row[name] for name in row if name != "id"} for row in due] == [
        {
            "chat_id": "c",
            "user_id": None,
            "layer": "memos",
            "status": "due",
            "held": None,
            "attempts": 0,
            "error": None,
            "refusals": [],
            "run_after": "2026-04-01T12:00:02Z",
            "failed_at": None,
        }
    ] * 2
    model.otherwise = refuses(503)
    clock.step(2)
    await dispatcher.drain()
    (row, _) = ok(await api.get("/v1/work", params={"status": "due"}), 200)["items"]
    assert (row["attempts"], row["run_after"]) == (1, "2026-04-01T12:00:03Z")
    assert "503" in row["error"]
    assert ok(await api.get("/v1/work", params={"status": "failed"}), 200)["items"] == []


async def test_work_that_is_being_done_is_running(
    api: httpx.AsyncClient, clock: SteppedClock, dispatcher: Dispatcher, model: ScriptedModel
) -> None:
    gate = model.hold()
    await append(api, talk(1, 8))
    clock.step(2)
    async with _draining(dispatcher):
        await gate.reached()
        assert [row["status"] for row in ok(await api.get("/v1/work"), 200)["items"]] == ["running"]
        assert ok(await api.get("/v1/work", params={"status": "due"}), 200)["items"] == []
        assert len(ok(await api.get("/v1/work", params={"status": "running"}), 200)["items"]) == 1
        gate.release()
    assert ok(await api.get("/v1/work"), 200)["items"] == []


async def test_failed_work_is_retried_on_request(
    api: httpx.AsyncClient, clock: SteppedClock, dispatcher: Dispatcher, model: ScriptedModel
) -> None:
    row = await _fail(api, clock, dispatcher, model)
    assert (row["status"], row["attempts"]) == ("failed", 6)
    assert row["failed_at"] is not None
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 1}

    ok(await api.post(f"/v1/work/{row['id']}/retry"), 202)
    (again,) = ok(await api.get("/v1/work"), 200)["items"]
    assert again == row | {
        "status": "due",
        "attempts": 0,
        "failed_at": None,
        "error": None,
        "run_after": again["run_after"],
    }
    model.otherwise = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."
    await dispatcher.drain()
    assert (await get(api, "/memos"))["items"][0]["status"] == "ready"
    assert ok(await api.post(f"/v1/work/{row['id']}/retry"), 404)["code"] == "work_not_found"


async def test_work_is_listed_in_pages_and_by_chat(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 40))
    await append(api, talk(1, 8), "d")
    pages = await walk(api, "/v1/work", limit=4)
    assert [len(page) for page in pages] == [4, 2]
    assert [row["chat_id"] for page in pages for row in page] == ["c"] * 5 + ["d"]
    assert len(ok(await api.get("/v1/work", params={"chat_id": "d"}), 200)["items"]) == 1
    assert ok(await api.get("/v1/work", params={"chat_id": "nobody"}), 200)["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"status": "lost"}, "status"),
        ({"limit": 0}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"chat_id": "x" * 201}, "chat_id"),
    ],
)
async def test_an_invalid_query_about_work_names_the_field(
    api: httpx.AsyncClient, query: dict[str, str | int], field: str
) -> None:
    problem = ok(await api.get("/v1/work", params=query), 422)
    assert problem["errors"][0]["loc"] == ["query", field]


@asynccontextmanager
async def _draining(dispatcher: Dispatcher) -> AsyncIterator[None]:
    """The worker makes what is due while the block runs."""
    async with asyncio.TaskGroup() as group:
        group.create_task(dispatcher.drain())
        yield


async def _fail(api: httpx.AsyncClient, clock: SteppedClock, dispatcher: Dispatcher, model: ScriptedModel) -> Json:
    """The row of a memo that was tried as often as it is ever tried."""
    model.otherwise = refuses(400)
    await append(api, talk(1, 8))
    for _ in range(6):
        clock.step(3_600)
        await dispatcher.drain()
    (row,) = ok(await api.get("/v1/work", params={"status": "failed"}), 200)["items"]
    assert isinstance(row, dict)
    return row
