"""Background work over HTTP: whose it is, who sees it, and trying it again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.chats.heads import lock_line
from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.limits import TokenLimits
from app.kit.owners import Owner
from app.kit.usage import ModelCall, count_call
from app.kit.work_queue import NewWork
from tests.conftest import client_of
from tests.operations.limited import limited_api, make_key
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, ok, put, talk, walk

FIELDS = {
    "id",
    "chat_id",
    "user_id",
    "layer",
    "status",
    "held",
    "attempts",
    "error",
    "refusals",
    "run_after",
    "failed_at",
}
EVERYTHING = {
    ("c", "mira"),
    ("d", "ren"),
    ("mira", None),
    (None, "mira"),
    (None, "ren"),
    (None, None),
}
"""The chat and the user of every item that `work_of_all` schedules."""

SEEN = [
    ({}, EVERYTHING),
    ({"user_id": "mira"}, {("c", "mira"), (None, "mira")}),
    ({"chat_id": "c"}, {("c", "mira")}),
    ({"chat_id": "mira"}, {("mira", None)}),
    ({"user_id": "mira", "chat_id": "c"}, {("c", "mira")}),
    ({"user_id": "mira", "chat_id": "d"}, set()),
    ({"user_id": "mira", "chat_id": "mira"}, set()),
    ({"user_id": "nobody"}, set()),
]
"""What a token with a limit sees, and a key without any."""


@pytest.fixture
async def work_of_all(api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock) -> None:
    """One item for each of three chats, two users and the tenant; one chat has the id of a user."""
    owners = [Owner.of_user(tenant, "mira"), Owner.of_user(tenant, "ren"), Owner.of_tenant(tenant)]
    for chat_id, user_id in (("c", "mira"), ("d", "ren"), ("mira", None)):
        line = (await put(api, chat_id, user_id=user_id))["line"]
        owners.append(Owner.of_line(tenant, chat_key(tenant, chat_id), UUID(line)))
    async with database.unit_of_work() as db_session:
        for owner in owners:
            if owner.is_line:
                await lock_line(db_session, *owner.line)
            await work_queue.schedule(db_session, owner, "memos", [NewWork("1")], now=clock(), settle_s=0)


@asynccontextmanager
async def limited_to(app: FastAPI, api: httpx.AsyncClient, limit: Json) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a token of this limit, or without any limit that with the key."""
    if not limit:
        yield api
        return
    body = {"scopes": ["read", "write"], "ttl_s": 60} | limit
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as limited:
        yield limited


async def list_items(api: httpx.AsyncClient, **query: Any) -> list[Json]:
    items: list[Json] = ok(await api.get("/v1/work", params=query), 200)["items"]
    return items


def owners(items: list[Json]) -> set[tuple[str | None, str | None]]:
    """The chat and the user of each item."""
    found = [(item["chat_id"], item["user_id"]) for item in items]
    assert len(found) == len(set(found))
    return set(found)


async def fail_all(database: Database, tenant: str, clock: SteppedClock) -> None:
    """Have every item of the tenant failed for good."""
    async with database.raw() as connection:
        failed = "attempts = 6, error = 'no', failed_at = $2"
        await connection.execute(f"UPDATE work SET {failed} WHERE tenant = $1", tenant, clock())


# --- reading it ---


async def test_work_of_users_and_tenants_is_listed(api: httpx.AsyncClient, work_of_all: None) -> None:
    items = await list_items(api)
    assert {frozenset(item) for item in items} == {frozenset(FIELDS)}
    assert owners(items) == EVERYTHING
    pages = await walk(api, "/v1/work", limit=4)
    assert [item for page in pages for item in page] == items
    assert items == sorted(items, key=lambda item: str(item["id"]))


@pytest.mark.parametrize(("limit", "seen"), SEEN, ids=[str(limit) for limit, _ in SEEN])
async def test_a_caller_sees_the_work_within_its_limits(
    app: FastAPI, api: httpx.AsyncClient, work_of_all: None, limit: Json, seen: set[tuple[str | None, str | None]]
) -> None:
    everything = await list_items(api)
    async with limited_to(app, api, limit) as limited:
        assert owners(await list_items(limited)) == seen
        for item in everything:
            inside = (item["chat_id"], item["user_id"]) in seen
            answer = ok(await limited.get(f"/v1/work/{item['id']}"), 200 if inside else 404)
            assert answer == item if inside else answer["code"] == "work_not_found"
            ok(await limited.post(f"/v1/work/{item['id']}/retry"), 202 if inside else 404)


async def test_a_chat_filter_does_not_match_a_user_of_that_name(api: httpx.AsyncClient, work_of_all: None) -> None:
    assert owners(await list_items(api, chat_id="mira")) == {("mira", None)}
    assert await list_items(api, chat_id="ren") == []
    assert await list_items(api, chat_id="") == []


async def test_finished_work_is_not_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    (item,) = await list_items(api)
    clock.step(2)
    await dispatcher.drain()
    assert ok(await api.get(f"/v1/work/{item['id']}"), 404)["code"] == "work_not_found"


async def test_one_item_shows_what_holds_it(
    api: httpx.AsyncClient,
    database: Database,
    database_url: str,
    tenant: str,
    key: str,
    clock: SteppedClock,
    work_of_all: None,
) -> None:
    call = ModelCall(tenant, "memos", clock(), failed=False, prompt_tokens=9, completion_tokens=0, wait_ms=1)
    async with database.raw() as connection:
        await count_call(connection, call)
    async with limited_api(database_url, clock, key, TokenLimits(9)) as knowing:
        for item in await list_items(knowing):
            assert item["held"] == "monthly_token_limit"
            assert ok(await knowing.get(f"/v1/work/{item['id']}"), 200) == item


async def test_work_of_a_line_that_is_not_current_is_hidden(api: httpx.AsyncClient, database: Database) -> None:
    await append(api, talk(1, 8))
    frozen = ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)["line"]
    async with database.raw() as connection:
        work_id = await connection.fetchval("SELECT work_id FROM work WHERE line_id = $1", UUID(frozen))
    assert len(await list_items(api)) == 1
    ok(await api.get(f"/v1/work/{work_id}"), 404)
    ok(await api.post(f"/v1/work/{work_id}/retry"), 404)


# --- trying it again ---


async def test_a_retry_answers_with_the_id_of_the_work(api: httpx.AsyncClient, work_of_all: None) -> None:
    for item in await list_items(api):
        assert ok(await api.post(f"/v1/work/{item['id']}/retry"), 202) == {"work_id": item["id"]}


@pytest.mark.parametrize(("limit", "seen"), SEEN, ids=[str(limit) for limit, _ in SEEN])
async def test_everything_failed_within_the_limits_is_retried(
    app: FastAPI,
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    work_of_all: None,
    limit: Json,
    seen: set[tuple[str | None, str | None]],
) -> None:
    await fail_all(database, tenant, clock)
    clock.step(60)
    async with limited_to(app, api, limit) as limited:
        assert ok(await limited.post("/v1/work/retry"), 200) == {"retried": len(seen)}
        assert ok(await limited.post("/v1/work/retry"), 200) == {"retried": 0}
    retried = await list_items(api, status="due")
    assert owners(retried) == seen
    now = f"{clock():%Y-%m-%dT%H:%M:%SZ}"
    assert {(item["attempts"], item["error"], item["run_after"]) for item in retried} <= {(0, None, now)}


async def test_failed_work_is_retried_by_layer_and_by_chat(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, work_of_all: None
) -> None:
    async with database.unit_of_work() as db_session:
        owner = Owner.of_user(tenant, "mira")
        await work_queue.schedule(db_session, owner, "diary", [NewWork("1")], now=clock(), settle_s=0)
    await fail_all(database, tenant, clock)

    async def retry(**wanted: str) -> int:
        retried: int = ok(await api.post("/v1/work/retry", json=wanted), 200)["retried"]
        return retried

    assert await retry(layer="diary", chat_id="mira") == 0
    assert await retry(layer="no such layer") == 0
    assert await retry(chat_id="no such chat") == 0
    assert await retry(chat_id="mira") == 1
    assert await retry(layer="diary") == 1
    assert await retry(layer="memos", chat_id="c") == 1
    assert await retry() == 4


async def test_only_what_has_failed_is_retried(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = refuses(400)
    await append(api, talk(1, 8))
    for _ in range(6):
        clock.step(3_600)
        await dispatcher.drain()
    await append(api, talk(9, 16))
    failed, due = await list_items(api)
    assert (failed["status"], due["status"]) == ("failed", "due")
    assert ok(await api.post("/v1/work/retry", json={}), 200) == {"retried": 1}
    assert await list_items(api, status="failed") == []
    assert (await list_items(api))[1] == due
    model.otherwise = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."
    assert await dispatcher.drain() == 1


async def test_thousands_of_failed_items_are_retried(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    owner = Owner.of_user(tenant, "mira")
    items = [NewWork(str(number)) for number in range(1_200)]
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, "memos", items, now=clock(), settle_s=0)
    await fail_all(database, tenant, clock)
    assert ok(await api.post("/v1/work/retry"), 200) == {"retried": 1_200}
    assert await list_items(api, status="failed") == []


async def test_failed_work_of_other_lines_and_tenants_stays(
    app: FastAPI, api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    await fail_all(database, tenant, clock)
    async with client_of(app, await make_key(database, f"{tenant}-x", "read", "write")) as stranger:
        assert ok(await stranger.post("/v1/work/retry"), 200) == {"retried": 0}
    assert ok(await api.post("/v1/work/retry"), 200) == {"retried": 1}


async def test_a_read_only_key_cannot_retry_work(
    app: FastAPI, api: httpx.AsyncClient, database: Database, tenant: str, work_of_all: None
) -> None:
    async with client_of(app, await make_key(database, tenant, "read")) as reader:
        (item, *_) = await list_items(reader)
        ok(await reader.post("/v1/work/retry"), 403)
        ok(await reader.post(f"/v1/work/{item['id']}/retry"), 403)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"layer": ""}, "layer"),
        ({"layer": "a\0b"}, "layer"),
        ({"chat_id": "a\0b"}, "chat_id"),
        ({"chat_id": 7}, "chat_id"),
        ({"user_id": "mira"}, "user_id"),
    ],
    ids=str,
)
async def test_a_wrong_field_of_a_retry_is_named(api: httpx.AsyncClient, body: Json, field: str) -> None:
    problem = ok(await api.post("/v1/work/retry", json=body), 422)
    assert problem["errors"][0]["loc"] == ["body", field]


async def test_unknown_work_is_not_found(api: httpx.AsyncClient) -> None:
    ok(await api.get(f"/v1/work/{uuid4()}"), 404)
    ok(await api.post(f"/v1/work/{uuid4()}/retry"), 404)
    assert ok(await api.get("/v1/work/1"), 422)["errors"][0]["loc"] == ["path", "work_id"]
    assert ok(await api.post("/v1/work/1/retry"), 422)["errors"][0]["loc"] == ["path", "work_id"]
