"""Erasing takes everything that belongs to a chat or a user, and nothing of another owner with the same key."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key, user_key
from app.kit.owners import Owner
from app.kit.scopes import raise_scope
from app.kit.work_queue import NewWork
from tests.background import PATIENCE_S, holding, until_waited_for
from tests.conftest import client_of
from tests.revisions import read_scope
from tests.talk import append, get, ok, put, talk


async def schedule(database: Database, clock: SteppedClock, *owners: Owner) -> None:
    async with database.unit_of_work() as db_session:
        for owner in owners:
            await work_queue.schedule(db_session, owner, "memos", [NewWork("own")], now=clock(), settle_s=0)


async def owners_of_work(database: Database, tenants: Sequence[str]) -> set[tuple[str, UUID, bool, str | None]]:
    """Of all due work the tenant, the owner's key, whether it is of a line, and the user."""
    async with database.raw() as connection:
        rows = await connection.fetch("SELECT * FROM work WHERE tenant = ANY($1)", tenants)
    return {(row["tenant"], row["owner_key"], row["line_id"].int != 0, row["user_id"]) for row in rows}


async def test_erasing_a_chat_keeps_the_work_of_a_user_of_its_name(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8), "mira")
    ok(await api.post("/v1/chats/mira/checkpoints", json={"name": "here"}), 201)
    await schedule(database, clock, Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant))
    assert chat_key(tenant, "mira") == user_key(tenant, "mira")
    ok(await api.delete("/v1/chats/mira"), 204)
    assert {user_id for _, _, _, user_id in await owners_of_work(database, [tenant])} == {"mira", None}
    assert not any(of_line for _, _, of_line, _ in await owners_of_work(database, [tenant]))


async def test_erasing_a_user_keeps_a_chat_of_its_name(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await put(api, "mira", user_id="ren")
    await append(api, talk(1, 8), "mira")
    await put(api, "c", user_id="mira")
    await append(api, talk(1, 8))
    await schedule(database, clock, Owner.of_user(tenant, "mira"), Owner.of_user(tenant, "ren"))
    ok(await api.delete("/v1/users/mira"), 204)
    await get(api, "", 404)
    assert await owners_of_work(database, [tenant]) == {
        (tenant, chat_key(tenant, "mira"), True, None),
        (tenant, user_key(tenant, "ren"), False, "ren"),
    }
    assert len(ok(await api.get("/v1/chats/mira/messages"), 200)["items"]) == 8


async def test_erasing_a_user_without_chats_erases_its_work(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    elsewhere = Owner.of_user(f"{tenant}-x", "mira")
    await schedule(database, clock, Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant), elsewhere)
    ok(await api.delete("/v1/users/mira"), 204)
    left = {(found, user_id) for found, _, _, user_id in await owners_of_work(database, [tenant, f"{tenant}-x"])}
    assert left == {(tenant, None), (f"{tenant}-x", "mira")}


@pytest.mark.parametrize(("limit", "status"), [({"user_id": "mira"}, 204), ({"chat_id": "mira"}, 404)], ids=str)
async def test_a_token_of_a_user_alone_erases_its_work(
    app: FastAPI,
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    limit: dict[str, str],
    status: int,
) -> None:
    await schedule(database, clock, Owner.of_user(tenant, "mira"))
    body = {"scopes": ["write"], "ttl_s": 60} | limit
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as limited:
        ok(await limited.delete("/v1/users/mira"), status)
    assert len(await owners_of_work(database, [tenant])) == (0 if status == 204 else 1)


async def test_erasing_a_user_erases_its_revision(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    owners = [Owner.of_user(tenant, "mira"), Owner.of_user(tenant, "ren"), Owner.of_tenant(tenant)]
    async with database.unit_of_work() as db_session:
        for owner in owners:
            raise_scope(db_session, owner)
    await put(api, "mira", user_id="ren")
    ok(await api.delete("/v1/chats/mira"), 204)
    assert None not in [await read_scope(database, owner) for owner in owners]
    ok(await api.delete("/v1/users/mira"), 204)
    assert [await read_scope(database, owner) is None for owner in owners] == [True, False, False]


async def test_erasing_a_user_erases_forks_made_meanwhile(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    for chat in ("a", "b"):
        await put(api, chat, user_id="mira")
        await append(api, talk(1, 2), chat)
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{min(chat_key(tenant, chat) for chat in 'ab')}' FOR UPDATE"
    other = max("ab", key=lambda chat: chat_key(tenant, chat))
    async with asyncio.timeout(PATIENCE_S):
        async with holding(database_url, lock) as holder:
            erasing = asyncio.create_task(api.delete("/v1/users/mira"))
            await until_waited_for(holder)
            ok(await api.post(f"/v1/chats/{other}/fork", json={"chat_id": "fork"}), 201)
        ok(await erasing, 204)
    assert ok(await api.get("/v1/chats", params={"user_id": "mira"}), 200)["items"] == []
    ok(await api.get("/v1/chats/fork"), 404)
