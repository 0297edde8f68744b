"""MEMOBOOK_ADMIN_KEY: the first admin key, registered at each start."""

import asyncio
import logging

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import ensure_admin_key, has_keys
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.settings import SettingsError
from tests.conftest import NOON
from tests.keys.service import EVERYTHING, bearer, client_of, made_key, service_on

FIRST = "correct-horse-battery-staple-0042"
SECOND = f"mb_3f9c2a7be014_{'0123456789abcdef' * 4}"


async def start_with(database: Database, admin_key: str) -> None:
    async with database.unit_of_work() as db_session:
        await ensure_admin_key(db_session, admin_key, NOON)


async def works(app: FastAPI, text: str) -> bool:
    async with client_of(app) as client:
        return (await client.get("/me", headers=bearer(text))).is_success


@pytest.fixture
def another_process(fresh_database: Database, clock: SteppedClock) -> FastAPI:
    return service_on(fresh_database, clock)


@pytest.mark.parametrize("admin_key", [FIRST, SECOND, "~" * 32, "eyJhbGciOiJIUzI1NiJ9.e30.signature"])
async def test_the_key_has_all_scopes_in_the_default_tenant(
    fresh_database: Database, client: httpx.AsyncClient, admin_key: str
) -> None:
    await start_with(fresh_database, admin_key)
    me = (await client.get("/me", headers=bearer(admin_key))).json()
    assert (me["tenant"], me["scopes"]) == ("default", sorted(EVERYTHING))
    listed = (await client.get("/v1/keys", headers=bearer(admin_key))).json()["items"]
    assert [(key["scopes"], key["from_environment"]) for key in listed] == [(EVERYTHING, True)]


async def test_with_an_environment_key_every_request_needs_a_key(
    fresh_database: Database, client: httpx.AsyncClient
) -> None:
    async with fresh_database.unit_of_work() as db_session:
        assert not await has_keys(db_session)
    await start_with(fresh_database, FIRST)
    async with fresh_database.unit_of_work() as db_session:
        assert await has_keys(db_session)
    assert (await client.get("/me")).status_code == 401


async def test_concurrent_starts_register_the_key_once(
    fresh_database: Database, service: FastAPI, client: httpx.AsyncClient
) -> None:
    await asyncio.gather(*[start_with(fresh_database, FIRST) for _ in range(4)])
    listed = (await client.get("/v1/keys", headers=bearer(FIRST))).json()["items"]
    await start_with(fresh_database, FIRST)
    service.state.keyring.forget()
    assert (await client.get("/v1/keys", headers=bearer(FIRST))).json()["items"] == listed
    assert len(listed) == 1


@pytest.mark.parametrize(("former", "current"), [(FIRST, SECOND), (SECOND, FIRST), (FIRST, FIRST + "!")])
async def test_another_environment_key_replaces_the_former_one(
    fresh_database: Database, another_process: FastAPI, former: str, current: str
) -> None:
    await start_with(fresh_database, former)
    await start_with(fresh_database, current)
    assert await works(another_process, current)
    assert not await works(another_process, former)


async def test_tokens_of_the_former_key_end_with_it(
    fresh_database: Database, service: FastAPI, client: httpx.AsyncClient
) -> None:
    await start_with(fresh_database, FIRST)
    wanted = {"user_id": "mira", "scopes": ["read"], "ttl_s": 60}
    token = (await client.post("/v1/tokens", json=wanted, headers=bearer(FIRST))).json()["token"]
    assert await works(service, token)
    await start_with(fresh_database, SECOND)
    service.state.keyring.forget()
    assert not await works(service, token)


async def test_the_former_key_can_be_set_again(fresh_database: Database, another_process: FastAPI) -> None:
    for admin_key in (FIRST, SECOND, FIRST):
        await start_with(fresh_database, admin_key)
    assert await works(another_process, FIRST)


async def test_other_keys_are_left_alone(fresh_database: Database, another_process: FastAPI) -> None:
    key = await made_key(fresh_database)
    await start_with(fresh_database, FIRST)
    await start_with(fresh_database, SECOND)
    assert await works(another_process, key.text)


async def test_a_key_that_is_there_already_becomes_the_admins(
    fresh_database: Database, client: httpx.AsyncClient
) -> None:
    key = await made_key(fresh_database, "read", tenant="a")
    await start_with(fresh_database, key.text)
    me = (await client.get("/me", headers=bearer(key.text))).json()
    assert (me["tenant"], me["scopes"]) == ("default", sorted(EVERYTHING))


async def test_a_revoked_key_stays_revoked_until_it_is_changed(
    fresh_database: Database,
    client: httpx.AsyncClient,
    another_process: FastAPI,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await start_with(fresh_database, FIRST)
    [key] = (await client.get("/v1/keys", headers=bearer(FIRST))).json()["items"]
    assert (await client.delete(f"/v1/keys/{key['id']}", headers=bearer(FIRST))).status_code == 204
    with caplog.at_level(logging.WARNING):
        await start_with(fresh_database, FIRST)
    assert "MEMOBOOK_ADMIN_KEY" in caplog.text
    assert FIRST not in caplog.text
    assert not await works(another_process, FIRST)
    await start_with(fresh_database, SECOND)
    another_process.state.keyring.forget()
    assert await works(another_process, SECOND)


@pytest.mark.parametrize("weak", ["", "x" * 31, "x" * 16 + " " + "x" * 16, "ü" * 40, "x" * 32 + "\n"])
async def test_a_weak_or_unsendable_key_stops_the_start_with_one_line(database: Database, weak: str) -> None:
    with pytest.raises(SettingsError, match=r"^MEMOBOOK_ADMIN_KEY: [^\n]+$"):
        await start_with(database, weak)
