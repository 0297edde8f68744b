"""Every item of a list can be read alone, on any line of its chat."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.api.path_parameters import find_lists, name_of
from tests.conftest import client_with
from tests.layers.samples import SAMPLES, list_settings
from tests.talk import Json, append, get, ok, put, talk

LISTS = find_lists()
BY_ITSELF = {"/checkpoints", "/lines"}
IN_CHAT = {path: parameter for path, parameter in LISTS.items() if path not in BY_ITSELF}
"""The lists of what a line holds, and by what their items are named."""

NEVER = "019f0000-0000-7000-8000-000000000000"
"""An id that no item has."""

MISSING = {"/messages": "message_not_found", "/checkpoints": "checkpoint_not_found", "/lines": "line_not_found"}
MISSING |= {path: code for sample in SAMPLES.values() for path, code in sample.missing.items()}


def test_every_list_is_walked_through() -> None:
    of_the_layers = {path for sample in SAMPLES.values() for path in sample.missing}
    assert set(LISTS) == {"/messages"} | BY_ITSELF | of_the_layers


@pytest.fixture(scope="module")
def tenant() -> str:
    """The tenant of all tests of this file, so that those that only read can share a chat."""
    return f"t-{uuid4().hex}"


@pytest.fixture(scope="module")
def made() -> list[Json]:
    """The chat that tests share, once one of them has made it."""
    return []


@pytest.fixture
async def chat(api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock, made: list[Json]) -> Json:
    """A chat with something in each list, restored from a checkpoint; as it was on the former line.

    The tests share it until one of them changes it.
    """
    if not made:
        made.append(await _make_chat(api, quoting_dispatcher, clock))
    return made[0]


@pytest.fixture
async def changing(api: httpx.AsyncClient, chat: Json, made: list[Json]) -> AsyncIterator[Json]:
    """The same chat, for a test that changes it. The next test makes another one."""
    yield chat
    made.clear()
    ok(await api.delete("/v1/chats/c"), 204)


async def _make_chat(api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock) -> Json:
    await put(api, settings=list_settings())
    await append(api, talk(1, 20))
    for sample in SAMPLES.values():
        await sample.write(api)
    clock.step(40)
    await quoting_dispatcher.drain()
    for name in ("before the storm", "later"):
        ok(await api.post("/v1/chats/c/checkpoints", json={"name": name}), 201)
    former = await get(api, "")
    ok(await api.post("/v1/chats/c/checkpoints/later/restore"), 201)
    return former


@pytest.mark.parametrize(("path", "name"), LISTS.items())
async def test_an_item_alone_is_the_item_of_its_list(api: httpx.AsyncClient, chat: Json, path: str, name: str) -> None:
    items = (await get(api, path))["items"]
    assert len(items) >= 2
    for item in items:
        if name_of(item, name) is not None:  # the open scene has no id
            assert await get(api, f"{path}/{name_of(item, name)}") == item


@pytest.mark.parametrize(("path", "name"), IN_CHAT.items())
async def test_an_item_can_be_read_on_another_line(api: httpx.AsyncClient, chat: Json, path: str, name: str) -> None:
    line = chat["line"]
    for item in (await get(api, path, line=line))["items"]:
        if name_of(item, name) is not None:
            assert await get(api, f"{path}/{name_of(item, name)}", line=line) == item
            unknown = await get(api, f"{path}/{name_of(item, name)}", 404, line="019f0000-0000-7000-8000-000000000000")
            assert unknown["code"] == "line_not_found"


async def test_a_deleted_memo_stays_on_the_former_line(api: httpx.AsyncClient, changing: Json) -> None:
    memo = (await get(api, "/memos"))["items"][0]
    ok(await api.delete(f"/v1/chats/c/memos/{memo['id']}"), 204)
    await get(api, f"/memos/{memo['id']}", 404)
    assert await get(api, f"/memos/{memo['id']}", line=changing["line"]) == memo


async def test_a_chat_can_be_read_on_another_line(api: httpx.AsyncClient, changing: Json) -> None:
    await append(api, talk(21, 24))
    assert (await get(api, ""))["counters"]["messages"] == 24
    assert await get(api, "", line=changing["line"]) == changing
    included = (await get(api, "/inclusion", line=changing["line"]))["items"]
    assert [item["seq"] for item in included] == list(range(1, 21))
    assert [item["seq"] for item in (await get(api, "/inclusion"))["items"]] == list(range(1, 25))


@pytest.mark.parametrize(("path", "code"), MISSING.items())
async def test_an_item_that_is_not_there_is_a_404(api: httpx.AsyncClient, chat: Json, path: str, code: str) -> None:
    first = name_of((await get(api, path))["items"][0], LISTS[path])
    never = 99 if isinstance(first, int) else NEVER
    assert (await get(api, f"{path}/{never}", 404))["code"] == code


async def test_a_checkpoints_line_is_read_by_the_checkpoint(api: httpx.AsyncClient, chat: Json) -> None:
    (checkpoint, _) = (await get(api, "/checkpoints"))["items"]
    assert (await get(api, f"/lines/{checkpoint['line']}", 404))["code"] == "line_not_found"
    assert (await get(api, "", line=checkpoint["line"]))["line"] == checkpoint["line"]


@pytest.fixture
async def admin(app: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_with(app, database, tenant, "admin") as client:
        yield client


async def test_a_key_alone_is_the_key_of_the_list(admin: httpx.AsyncClient, api: httpx.AsyncClient) -> None:
    made = ok(await admin.post("/v1/keys", json={"tenant": "t", "scopes": ["read"]}), 201)
    alone = ok(await admin.get(f"/v1/keys/{made['id']}"), 200)
    cursor, listed = "", []
    for _ in range(100):  # pages, with the keys of all tests before this one
        page = ok(await admin.get(f"/v1/keys?limit=500{cursor}"), 200)
        listed += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert alone in listed
    ok(await api.get(f"/v1/keys/{made['id']}"), 403)
    ok(await admin.delete(f"/v1/keys/{made['id']}"), 204)
    assert ok(await admin.get(f"/v1/keys/{made['id']}"), 404)["code"] == "key_not_found"
