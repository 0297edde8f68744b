"""A database that an earlier version made is upgraded, and gives the same contexts as it gave then."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.local.running import Urls
from tests.talk import put, walk
from tests.upgrade.answers import CURRENT, list_differences, read_contexts, read_memory
from tests.upgrade.recorded import CONTEXTS, KEYS, MEMORY, load, upgrade
from tests.upgrade.service import Service, connected, make_database, open_service

RECORDED: dict[str, Any] = json.loads(CONTEXTS.read_text(encoding="utf-8"))
REMEMBERED: dict[str, Any] = json.loads(MEMORY.read_text(encoding="utf-8"))
CHATS = [(tenant, chat_id) for tenant, chats in RECORDED["chats"].items() for chat_id in chats]
AN_HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
async def upgraded(servers: Urls) -> str:
    """The name of a database with the dump's rows and the newest schema, that others are cloned from."""
    name, url = await make_database(servers)
    await load(url)
    await upgrade(url)
    return name


@pytest.fixture(scope="module")
async def service(servers: Urls, upgraded: str) -> AsyncIterator[Service]:
    """The application on a clone that is only read."""
    async with _serve(servers, upgraded) as opened:
        yield opened


async def test_the_dump_goes_to_the_newest_migration(servers: Urls, upgraded: str, fresh_database_url: str) -> None:
    question = "SELECT version_num FROM alembic_version"
    _, url = await make_database(servers, upgraded)
    async with connected(url) as connection, connected(fresh_database_url) as newest:
        assert await connection.fetchval(question) == await newest.fetchval(question)


@pytest.mark.parametrize(("tenant", "chat_id"), CHATS)
async def test_contexts_are_those_recorded_before_the_upgrade(service: Service, tenant: str, chat_id: str) -> None:
    recorded = RECORDED["chats"][tenant][chat_id]
    found = await read_contexts(service.apis[tenant], chat_id, recorded.keys() - {CURRENT})
    assert not (lines := list_differences(recorded, found, f"{tenant}/{chat_id}")), "\n".join(lines)


@pytest.mark.parametrize(("tenant", "chat_id"), CHATS)
async def test_memory_is_that_recorded_before_the_upgrade(service: Service, tenant: str, chat_id: str) -> None:
    found = await read_memory(service.apis[tenant], chat_id)
    lines = list_differences(REMEMBERED["chats"][tenant][chat_id], found, f"{tenant}/{chat_id}")
    assert not lines, "\n".join(lines)


async def test_contexts_are_the_same_without_what_is_cached(servers: Urls, upgraded: str) -> None:
    lines = []
    async with _serve(servers, upgraded) as service:
        for tenant, chat_id in CHATS:
            api = service.apis[tenant]
            # A change of settings has each layer read its tables again; this one changes no context.
            await put(api, chat_id, status=200, settings={"context_tokens": 32_000})
            found = await read_contexts(api, chat_id, ())
            recorded = {CURRENT: RECORDED["chats"][tenant][chat_id][CURRENT]}
            lines += list_differences(recorded, found, f"{tenant}/{chat_id}")
    assert not lines, "\n".join(lines)


async def test_due_work_is_done_without_a_new_failure(
    servers: Urls, upgraded: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with _serve(servers, upgraded) as service:
        failed = await _list_work(service, "failed")
        assert failed
        assert await _list_work(service, "due")
        await service.settle(service.quoter, AN_HOUR)
        assert await _list_work(service, "due") == []
        assert await _list_work(service, "running") == []
        assert await _list_work(service, "failed") == failed
        for tenant, chat_id in CHATS:
            assert await _list_stale_memos(service.apis[tenant], chat_id) == [], f"{tenant}/{chat_id}"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@asynccontextmanager
async def _serve(servers: Urls, template: str) -> AsyncIterator[Service]:
    """Open the application on a clone of a database, at the time of the dump."""
    _, url = await make_database(servers, template)
    clock = SteppedClock(datetime.fromisoformat(RECORDED["at"]))
    async with open_service(url, servers.redis_url, clock, KEYS) as opened:
        yield opened


async def _list_work(service: Service, status: str) -> list[Any]:
    """Return the work of all tenants that has this status."""
    pages = [page for api in service.apis.values() for page in await walk(api, "/v1/work", status=status, limit=500)]
    return [item for page in pages for item in page]


async def _list_stale_memos(api: httpx.AsyncClient, chat_id: str) -> list[Any]:
    """Return the memos that are stale although no person wrote them and none has failed for good."""
    memos = [memo for page in await walk(api, f"/v1/chats/{chat_id}/memos", limit=500) for memo in page]
    return [memo for memo in memos if memo["stale"] and not memo["edited"] and memo["status"] != "failed"]
