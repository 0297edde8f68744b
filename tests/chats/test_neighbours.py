"""Requests that wait for a locked chat hold back neither other tenants nor other chats, and only so many wait."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.kit.settings import Settings
from app.main import create_app
from tests.background import PATIENCE_S, holding, until_waited_for
from tests.conftest import client_of
from tests.operations.limited import make_key
from tests.talk import append, get, ok, said

POOL, MAX_WAITING = 4, 70
APPENDS = 80


@pytest.fixture
async def small(database_url: str, clock: SteppedClock) -> AsyncIterator[FastAPI]:
    """A process of the service with few connections."""
    settings = Settings(database_url=database_url, database_pool=POOL, max_waiting_per_chat=MAX_WAITING, _env_file=None)
    app = create_app(settings, clock=clock)
    yield app
    await app.state.database.close()


@pytest.fixture
async def small_api(small: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(small, key) as client:
        yield client


@pytest.fixture
async def neighbour(small: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """Another tenant's client of the same process."""
    async with client_of(small, await make_key(database, f"{tenant}-2", "read", "write")) as client:
        yield client


def lock_of(tenant: str, chat: str = "c") -> str:
    return f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, chat)}' FOR UPDATE"


async def test_a_locked_chat_holds_one_connection_of_the_pool(
    small_api: httpx.AsyncClient, neighbour: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await append(small_api, [said(1)])
    await append(neighbour, [said(1)])
    async with asyncio.timeout(PATIENCE_S):
        async with holding(database_url, lock_of(tenant)) as holder:
            waiting = [
                asyncio.create_task(small_api.post("/v1/chats/c/messages", json={"messages": [said(2 + n)]}))
                for n in range(APPENDS)
            ]
            await until_waited_for(holder)
            for number in range(3):
                await get(neighbour, "/context")
                await append(neighbour, [said(2 + number)])
                await append(small_api, [said(1 + number)], "d")
                await get(small_api, "/context")
            assert await _waiting_for(holder) == 1
            assert sum(answer.done() for answer in waiting) >= APPENDS - MAX_WAITING - 1
        answers = await asyncio.gather(*waiting)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == APPENDS - MAX_WAITING - 1
    for answer in refused:
        assert ok(answer, 429)["code"] == "too_many_waiting"
        assert int(answer.headers["retry-after"]) > 0
    late = [answer for answer in answers if answer.status_code == 503]
    assert {answer.json()["code"] for answer in late} <= {"chat_busy"}  # on a slow machine, some wait for too long
    accepted = [ok(answer, 201)["messages"][0] for answer in answers if answer not in refused and answer not in late]
    assert len(accepted) + len(late) == MAX_WAITING + 1
    stored = (await get(small_api, "/messages", limit=500))["items"]
    assert [message["id"] for message in stored] == ["m1", *(message["id"] for message in accepted)]


async def _waiting_for(holder: Connection) -> int:
    """Return how many connections wait for the lock of `holder`."""
    counted = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    waiting: int = await holder.fetchval(counted)
    return waiting
