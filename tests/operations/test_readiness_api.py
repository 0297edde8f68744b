"""What `/readyz` says of a database that is frozen, full or read-only, and of workers that are gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit import workers
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.kit.gate.admission import MAX_WAITING, Ticket
from app.kit.settings import Settings
from app.main import create_app
from tests.conftest import client_of
from tests.proxies import FreezingProxy
from tests.scripted_model import ScriptedModel
from tests.slowness import SLOWNESS
from tests.statements import watched
from tests.talk import Json, append, ok, said, talk

FAULTS = {
    "53100": ("The database cannot write to its disk.", "disk full"),
    "58030": ("The database cannot write to its disk.", "disk full"),
    "53200": ("The database is out of memory.", "ok"),
    "57014": ("The database cancelled the statement.", "ok"),
}
"""By SQLSTATE: what a request is answered, and what `/readyz` says then."""


@asynccontextmanager
async def service(clock: SteppedClock, database_url: str, **settings: float) -> AsyncIterator[httpx.AsyncClient]:
    """A process of the service without keys."""
    app = create_app(Settings(database_url=database_url, _env_file=None, **settings), clock=clock)  # type: ignore[arg-type]
    async with client_of(app, None) as client:
        yield client
    await app.state.database.close()


async def fail_writes(connection: Connection, table: str, sqlstate: str) -> None:
    """Let every insert and update of a table fail as PostgreSQL fails with this SQLSTATE."""
    await connection.execute(
        f"""
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$;
        CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION fail();
        """
    )


async def readiness(client: httpx.AsyncClient, status: int) -> Json:
    """The answer of `/readyz`."""
    return ok(await client.get("/readyz"), status)


async def test_a_frozen_database_is_down(fresh_database_url: str, clock: SteppedClock, short_path: Path) -> None:
    async with (
        FreezingProxy(fresh_database_url, short_path) as proxy,
        service(clock, proxy.url, database_timeout_s=1 * SLOWNESS) as client,
    ):
        await append(client, [said(1)])
        assert (await readiness(client, 200))["database"] == "ok"
        proxy.freeze()
        refused = ok(await client.post("/v1/chats/c/messages", json={"messages": [said(2)]}), 503)
        assert refused["detail"] == "The database does not answer in time."
        assert ok(await client.get("/v1/chats/c/context"), 503)["detail"] == "The database does not answer in time."
        ready = await readiness(client, 503)
        assert (ready["status"], ready["database"], ready["worker"]) == ("down", "down", "none")
        proxy.thaw()
        assert (await readiness(client, 200))["database"] == "ok"
        await append(client, [said(2)])


async def test_an_answer_does_not_wait_for_a_frozen_database(
    fresh_database_url: str, clock: SteppedClock, short_path: Path
) -> None:
    async with FreezingProxy(fresh_database_url, short_path) as proxy, service(clock, proxy.url) as client:
        await append(client, [said(1)])
        proxy.freeze()
        assert (await readiness(client, 503))["database"] == "down", "with statements that may take 30 seconds"
        proxy.thaw()


@pytest.mark.parametrize("sqlstate", FAULTS)
async def test_a_database_without_resources_is_unavailable(
    fresh_database_url: str, clock: SteppedClock, sqlstate: str
) -> None:
    detail, state = FAULTS[sqlstate]
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    await fail_writes(connection, "messages", sqlstate)
    async with service(clock, fresh_database_url) as client:
        refused = await client.post("/v1/chats/c/messages", json={"messages": [said(1)]})
        assert ok(refused, 503)["detail"] == detail
        assert "retry-after" in refused.headers
        ready = await client.get("/readyz")
        assert ready.json()["database"] == state
        assert ready.status_code == (200 if state == "ok" else 503)
        await connection.execute("DROP TRIGGER fail ON messages")
        await append(client, [said(1)])
    await connection.close()


async def test_a_read_only_database_serves_no_writes(fresh_database_url: str, clock: SteppedClock) -> None:
    async with service(clock, fresh_database_url) as client:
        await append(client, [said(1)])
        name = fresh_database_url.split("?", 1)[0].rsplit("/", 1)[1]
        connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await connection.close()
    async with service(clock, fresh_database_url) as client:
        ok(await client.get("/v1/chats/c/context"), 200)
        assert (await readiness(client, 503))["database"] == "read-only"
        refused = ok(await client.post("/v1/chats/c/messages", json={"messages": [said(2)]}), 503)
        assert refused["detail"] == "The database is read-only."


async def test_a_full_disk_fails_no_work_for_good(
    api: httpx.AsyncClient, database: Database, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 8))
    clock.step(60)
    async with database.raw() as connection:
        await fail_writes(connection, "memos", "53100")
        try:
            await dispatcher.drain()
            waiting = ok(await api.get("/v1/work"), 200)["items"]
        finally:
            await connection.execute("DROP TRIGGER fail ON memos; DROP FUNCTION fail()")
    assert [(item["status"], item["error"]) for item in waiting] == [("due", "The database cannot write to its disk.")]
    clock.step(7_200)
    await dispatcher.drain()
    assert ok(await api.get("/v1/chats/c/memos"), 200)["items"][0]["status"] == "ready"


async def test_a_worker_is_known_until_it_ends(fresh_database_url: str, clock: SteppedClock) -> None:
    database = Database(fresh_database_url)
    async with service(clock, fresh_database_url) as client, database.raw() as connection:
        assert (await readiness(client, 200))["worker"] == "none"
        worker_id = uuid4()
        await workers.report(connection, worker_id)
        await workers.report(connection, worker_id)
        assert (await readiness(client, 200))["worker"] == "ok"
        assert "memobook_workers 1.0" in (await client.get("/metrics")).text
        await connection.execute("UPDATE workers SET seen_at = seen_at - interval '31 seconds'")
        ready = await readiness(client, 200)
        assert (ready["status"], ready["worker"]) == ("degraded", "none")
        assert "memobook_workers 0.0" in (await client.get("/metrics")).text
        await workers.report(connection, worker_id)
        await workers.sign_off(connection, worker_id)
        assert (await readiness(client, 200))["worker"] == "none"
        await connection.execute(
            "INSERT INTO workers (worker_id, seen_at) VALUES ($1, now() - interval '25 hours')", uuid4()
        )
        await workers.report(connection, worker_id)
        assert await connection.fetchval("SELECT count(*) FROM workers") == 1, "killed workers are forgotten"
    await database.close()


async def test_work_that_waits_for_long_is_late(fresh_database_url: str, clock: SteppedClock) -> None:
    async with service(clock, fresh_database_url, work_late_s=60) as client:
        await append(client, talk(1, 8))
        clock.step(60)
        assert (await readiness(client, 200))["work"] == "on time", "it was due after the settle time"
        clock.step(10)
        assert (await readiness(client, 200))["work"] == "late"
        assert "memobook_work_lateness_seconds 68.0" in (await client.get("/metrics")).text


async def test_requests_at_once_share_one_check(fresh_database_url: str, clock: SteppedClock) -> None:
    app = create_app(Settings(database_url=fresh_database_url, _env_file=None), clock=clock)
    async with client_of(app, None) as client, watched(app.state.database) as seen:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
    assert {answer.json()["database"] for answer in answers} == {"ok"}
    assert len([asked for asked in seen.asked if "alembic_version" in asked]) == 1
    await app.state.database.close()


async def test_a_process_without_a_connection_is_busy(fresh_database_url: str, clock: SteppedClock) -> None:
    """A request of another tenant waits for each place in the queue; PostgreSQL is fine."""
    app = create_app(Settings(database_url=fresh_database_url, database_pool=2, _env_file=None), clock=clock)
    gate = app.state.database.gate
    holding = [Ticket(None, None) for _ in range(2)]
    for ticket in holding:
        await gate.enter(ticket)
    waiting = [asyncio.create_task(gate.enter(Ticket(f"t{n}", None))) for n in range(MAX_WAITING)]
    while gate.waiting < MAX_WAITING:  # noqa: ASYNC110 - the tasks begin one after the other
        await asyncio.sleep(0)
    async with client_of(app, None) as client:
        ready = await readiness(client, 503)
        assert (ready["status"], ready["database"]) == ("down", "busy")
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for ticket in holding:
            gate.leave(ticket)
        assert (await readiness(client, 200))["database"] == "ok"
    await app.state.database.close()
