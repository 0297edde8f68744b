"""A chat whose row is locked: its requests wait for a limited time, and requests of other chats do not wait."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.errors import ChatNotFound
from app.kit.auth import Caller
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.gate.connection_gate import ConnectionGate
from app.kit.ids import chat_key, user_key
from app.kit.settings import Settings
from app.main import create_app
from tests.background import PATIENCE_S, holding, until_waited_for
from tests.conftest import client_of
from tests.talk import append, get, ok, put, said, talk

SWITCH = """
    CREATE TEMP TABLE next ON COMMIT DROP AS SELECT * FROM chats WHERE chat_key = '{key}';
    UPDATE next SET line_id = gen_random_uuid();
    UPDATE chats SET line_status = 'abandoned' WHERE chat_key = '{key}';
    INSERT INTO chats SELECT * FROM next"""
"""Makes another line of a chat the current one."""

CREATE = """
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, line_created_at, created_at, last_active_at)
    VALUES ('{key}', gen_random_uuid(), 't', 'd', now(), now(), now())"""


@pytest.fixture
async def small_app(database_url: str, clock: SteppedClock) -> AsyncIterator[FastAPI]:
    """A process of the service with no more connections than the locked chat has waiters.

    With fewer than 4 connections, a tenant changes one chat at a time (docs/operating.md).
    """
    app = create_app(Settings(database_url=database_url, database_pool=4, _env_file=None), clock=clock)
    yield app
    await app.state.database.close()


@pytest.fixture
async def small_api(small_app: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(small_app, key) as client:
        yield client


async def test_a_locked_chat_times_out_and_blocks_no_other_chat(
    small_app: FastAPI, small_api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    gate: ConnectionGate = small_app.state.database.gate
    await append(small_api, [said(1)])
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, 'c')}' FOR UPDATE"
    async with asyncio.timeout(PATIENCE_S), holding(database_url, lock) as holder:
        waiting = [
            asyncio.create_task(request)
            for request in (
                small_api.post("/v1/chats/c/messages", json={"messages": [said(2)]}),
                small_api.delete("/v1/chats/c"),
                small_api.put("/v1/chats/c", json={}),
                small_api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}),
            )
        ]
        await until_waited_for(holder)
        while gate.counts.waits < len(waiting) - 1:  # noqa: ASYNC110 - the gate has no event for tests
            await asyncio.sleep(0)
        await append(small_api, [said(1)], "d")
        assert gate.counts.waits == len(waiting) - 1, "the other chat's request did not wait"
        for answer in await asyncio.gather(*waiting):
            _is_busy(answer)
    await append(small_api, [said(2)])


async def test_another_lines_row_that_is_locked_is_chat_busy(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await append(api, talk(1, 4))
    former = (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, 'c')}' AND line_id = '{former}' FOR UPDATE"
    async with asyncio.timeout(PATIENCE_S), holding(database_url, lock):
        for answer in await asyncio.gather(
            api.put("/v1/chats/c", json={"user_id": "mira"}),
            api.post(f"/v1/chats/c/lines/{former}/switch"),
        ):
            _is_busy(answer)


async def test_a_chat_that_is_being_created_is_chat_busy(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await append(api, talk(1, 4))
    async with asyncio.timeout(PATIENCE_S), holding(database_url, CREATE.format(key=chat_key(tenant, "d"))) as holder:
        for answer in await asyncio.gather(
            api.post("/v1/chats/d/messages", json={"messages": [said(1)]}),
            api.put("/v1/chats/d", json={}),
            api.post("/v1/chats/c/fork", json={"chat_id": "d"}),
        ):
            _is_busy(answer)
        await holder.execute(f"DELETE FROM chats WHERE chat_key = '{chat_key(tenant, 'd')}'")


async def test_a_locked_row_of_another_table_is_not_chat_busy(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await append(api, talk(1, 8))
    (work,) = ok(await api.get("/v1/work"), 200)["items"]
    lock = f"SELECT 1 FROM work WHERE owner_key = '{chat_key(tenant, 'c')}' FOR UPDATE"
    async with asyncio.timeout(PATIENCE_S), holding(database_url, lock):
        answer = await api.post(f"/v1/work/{work['id']}/retry")
    assert ok(answer, 503)["code"] == "unavailable"


def _is_busy(answer: httpx.Response) -> None:
    assert ok(answer, 503)["code"] == "chat_busy"
    assert int(answer.headers["retry-after"]) > 0


async def test_a_chat_switched_to_another_line_meanwhile_is_found(
    api: httpx.AsyncClient, database: Database, database_url: str, tenant: str
) -> None:
    former = (await put(api))["line"]
    ref = ChatRef.of(Caller(tenant, frozenset({"write"})), "c")

    async def lock() -> str:
        async with database.unit_of_work() as db_session:
            return str((await lock_head(db_session, ref)).line_id)

    async with holding(database_url, SWITCH.format(key=ref.key)) as holder:
        locking = asyncio.create_task(lock())
        await until_waited_for(holder)
    assert await locking == (await get(api, ""))["line"] != former


async def test_a_chat_that_is_erased_meanwhile_is_not_found(
    api: httpx.AsyncClient, database: Database, database_url: str, tenant: str
) -> None:
    await put(api)
    ref = ChatRef.of(Caller(tenant, frozenset({"write"})), "c")

    async def lock() -> None:
        async with database.unit_of_work() as db_session:
            await lock_head(db_session, ref)

    async with holding(database_url, f"DELETE FROM chats WHERE chat_key = '{ref.key}'") as holder:
        locking = asyncio.create_task(lock())
        await until_waited_for(holder)
    with pytest.raises(ChatNotFound):
        await locking


async def test_a_chat_reassigned_during_its_users_erasure_stays(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await put(api, user_id="mira")
    key, ren = chat_key(tenant, "c"), user_key(tenant, "ren")
    give = f"UPDATE chats SET user_id = 'ren', user_key = '{ren}' WHERE chat_key = '{key}'"
    async with holding(database_url, give) as holder:
        erasing = asyncio.create_task(api.delete("/v1/users/mira"))
        await until_waited_for(holder)
    ok(await erasing, 204)
    assert (await get(api, ""))["user_id"] == "ren"


async def test_a_new_user_of_a_chat_owns_all_of_its_lines(
    api: httpx.AsyncClient, database_url: str, database: Database, tenant: str
) -> None:
    await put(api, user_id="mira")
    key = chat_key(tenant, "c")
    async with holding(database_url, SWITCH.format(key=key)):
        pass
    await put(api, user_id="ren", status=200)
    async with database.raw() as connection:
        rows = await connection.fetch("SELECT user_id, user_key FROM chats WHERE chat_key = $1", key)
    assert [tuple(row) for row in rows] == [("ren", user_key(tenant, "ren"))] * 2
    ok(await api.delete("/v1/users/mira"), 204)
    assert (await get(api, ""))["user_id"] == "ren"
    ok(await api.delete("/v1/users/ren"), 204)
    await get(api, "", 404)
