"""Data of other tenants, users and chats is reported as not found, with keys and with limited tokens."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.api.path_parameters import CHARACTER, SCHEMA, fill_path
from tests.conftest import NOON, client_of
from tests.layers.samples import SAMPLES, list_settings
from tests.talk import Json, append, get, ok, put, said, talk

OF_A_CHAT = [
    (method, path, operation)
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
    if "{chat_id}" in path
]
MAKING = {"put_chat", "append", "put_messages"}
"""What makes a chat where there is none."""
_FILE = {"format": "jsonl"}


@dataclass(frozen=True)
class Known:
    """The chat `c` of Mira, and what is in it.

    Attributes:
        urls: Of each path of `OF_A_CHAT`, with the items that are there.
        work_id: An item of its work.
        line: Its line.

    """

    urls: dict[str, str]
    work_id: str
    line: str


@pytest.fixture
async def known(api: httpx.AsyncClient) -> Known:
    characters = [{"name": CHARACTER}]
    await put(api, user_id="mira", metadata={"whose": "ours"}, characters=characters, settings=list_settings())
    await append(api, talk(1, 16))
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    for sample in SAMPLES.values():
        await sample.write(api)
    names = {"chat_id": "c", "message_id": "m1", "name": "here", "tool": "save_memory"}
    urls = {path: await fill_path(api, path, {"operationId": ""}, names) for _, path, _ in OF_A_CHAT}
    work = ok(await api.get("/v1/work"), 200)["items"][0]
    return Known(urls, work["id"], (await get(api, ""))["line"])


@pytest.fixture
async def stranger(app: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another tenant, which may do everything."""
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, f"{tenant}-x", ["read", "write"], NOON)
    async with client_of(app, key.text) as client:
        yield client


@pytest.fixture
async def limited(
    app: FastAPI, api: httpx.AsyncClient, request: pytest.FixtureRequest
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a token for another user or chat than Mira's chat `c`."""
    async with client_of(app, await _token(api, **request.param)) as client:
        yield client


ELSEWHERE = [
    {"user_id": "ren"},
    {"chat_id": "d"},
    {"user_id": "mira", "chat_id": "d"},
    {"user_id": "ren", "chat_id": "c"},
]


async def test_the_same_name_in_another_tenant_is_another_chat(
    api: httpx.AsyncClient, stranger: httpx.AsyncClient, known: Known
) -> None:
    before = await _everything(api)
    for method, path, operation in OF_A_CHAT:
        name = operation["operationId"]
        answer = await _call(stranger, method, path, operation, known)
        if name in MAKING:
            assert answer.is_success, "the name is free there"
            ok(await stranger.delete("/v1/chats/c"), 204)
        else:
            assert answer.status_code == 404, (name, answer.text)
            assert answer.json()["code"] in ("chat_not_found", "line_not_found")
    assert await _everything(api) == before


@pytest.mark.parametrize("limited", ELSEWHERE, indirect=True, ids=str)
async def test_a_token_reaches_no_chat_beyond_its_limit(
    api: httpx.AsyncClient, limited: httpx.AsyncClient, known: Known
) -> None:
    before = await _everything(api)
    for method, path, operation in OF_A_CHAT:
        answer = await _call(limited, method, path, operation, known)
        assert answer.status_code == 404, (operation["operationId"], answer.text)
        assert answer.json()["code"] == "chat_not_found"
    assert await _everything(api) == before


@pytest.mark.parametrize("limited", [{"chat_id": "c"}, {"chat_id": "c", "user_id": "mira"}], indirect=True, ids=str)
async def test_a_token_for_one_chat_cannot_hand_it_over(
    api: httpx.AsyncClient, limited: httpx.AsyncClient, known: Known
) -> None:
    for user_id in ("ren", None):
        assert (await limited.put("/v1/chats/c", json={"user_id": user_id})).status_code in (403, 404)
    ok(await limited.put("/v1/chats/c", json={"user_id": "mira", "language": "en"}), 200)
    assert (await get(api, ""))["user_id"] == "mira"


@pytest.mark.parametrize("limited", ELSEWHERE, indirect=True, ids=str)
async def test_a_token_finds_nothing_beyond_its_limit_in_lists(limited: httpx.AsyncClient, known: Known) -> None:
    for path in ("/v1/chats", "/v1/chats?user_id=mira", "/v1/work", "/v1/work?chat_id=c"):
        assert ok(await limited.get(path), 200)["items"] == [], path
    ok(await limited.get(f"/v1/work/{known.work_id}"), 404)
    ok(await limited.post(f"/v1/work/{known.work_id}/retry"), 404)


async def test_another_tenant_lists_and_erases_nothing(
    api: httpx.AsyncClient, stranger: httpx.AsyncClient, known: Known
) -> None:
    for path in ("/v1/chats", "/v1/chats?user_id=mira", "/v1/work", "/v1/work?chat_id=c"):
        assert ok(await stranger.get(path), 200)["items"] == [], path
    ok(await stranger.get(f"/v1/work/{known.work_id}"), 404)
    ok(await stranger.post(f"/v1/work/{known.work_id}/retry"), 404)
    before = await _everything(api)
    ok(await stranger.delete("/v1/users/mira"), 204)
    assert await _everything(api) == before


async def test_a_cursor_of_another_tenant_leads_nowhere(
    api: httpx.AsyncClient, stranger: httpx.AsyncClient, known: Known
) -> None:
    await put(api, "d")
    cursor = ok(await api.get("/v1/chats", params={"limit": 1}), 200)["next_cursor"]
    assert ok(await stranger.get("/v1/chats", params={"cursor": cursor}), 200)["items"] == []


async def test_two_tenants_use_the_same_names_for_everything_at_once(
    api: httpx.AsyncClient, stranger: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for client, whose in ((api, "ours"), (stranger, "theirs")):
        await put(client, user_id="mira", system_prompt=f"The lamps are {whose}.")
        await append(client, [said(n, content=f"Lamp {n} is {whose}.") for n in range(1, 34)])
    clock.step(2)
    await dispatcher.drain()
    for client, whose, other in ((api, "ours", "theirs"), (stranger, "theirs", "ours")):
        told = await _everything(client)
        assert f"is {whose}" in told
        assert other not in told
    ok(await stranger.delete("/v1/users/mira"), 204)
    assert "is ours" in await _everything(api)


@pytest.mark.parametrize("limit", [{"user_id": "mira"}, {"chat_id": "c"}, {"user_id": "mira", "chat_id": "c"}], ids=str)
async def test_within_its_limit_a_token_does_what_its_scopes_allow(
    app: FastAPI, api: httpx.AsyncClient, known: Known, limit: dict[str, str]
) -> None:
    await put(api, "d", user_id="ren")
    async with client_of(app, await _token(api, **limit)) as limited:
        assert [chat["chat_id"] for chat in ok(await limited.get("/v1/chats"), 200)["items"]] == ["c"]
        due = ok(await api.get("/v1/work"), 200)["items"]
        assert len(due) >= 2
        assert ok(await limited.get("/v1/work"), 200)["items"] == due
        await append(limited, [said(17)], context={})
        assert (await put(limited, status=200, language="en"))["user_id"] == "mira"
    async with client_of(app, await _token(api, scopes=["read"], **limit)) as reader:
        await get(reader, "/context")
        ok(await reader.put("/v1/chats/c", json={}), 403)


async def test_chats_made_with_a_users_token_belong_to_the_user(app: FastAPI, api: httpx.AsyncClient) -> None:
    async with client_of(app, await _token(api, user_id="mira")) as limited:
        await append(limited, [said(1)], "first")
        await put(limited, "second")
        await put(limited, "third", user_id="mira")
    listed = ok(await api.get("/v1/chats", params={"user_id": "mira"}), 200)["items"]
    assert {chat["chat_id"] for chat in listed} == {"first", "second", "third"}


@pytest.mark.parametrize("user_id", ["ren", None])
async def test_a_users_token_gives_no_chat_away(
    app: FastAPI, api: httpx.AsyncClient, known: Known, user_id: str | None
) -> None:
    async with client_of(app, await _token(api, user_id="mira")) as limited:
        for chat_id in ("c", "new"):
            ok(await limited.put(f"/v1/chats/{chat_id}", json={"user_id": user_id}), 404)
    assert (await get(api, ""))["user_id"] == "mira"
    ok(await api.get("/v1/chats/new"), 404)


async def test_a_token_erases_its_own_user_and_no_other(app: FastAPI, api: httpx.AsyncClient, known: Known) -> None:
    async with client_of(app, await _token(api, user_id="ren")) as limited:
        ok(await limited.delete("/v1/users/mira"), 404)
    async with client_of(app, await _token(api, chat_id="c")) as limited:
        ok(await limited.delete("/v1/users/mira"), 404)
    async with client_of(app, await _token(api, user_id="mira")) as limited:
        ok(await limited.delete("/v1/users/mira"), 204)
    await get(api, "", 404)


async def _token(api: httpx.AsyncClient, **wanted: Any) -> str:
    body = {"scopes": ["read", "write"], "ttl_s": 60} | wanted
    token: str = ok(await api.post("/v1/tokens", json=body), 201)["token"]
    return token


async def _call(client: httpx.AsyncClient, method: str, path: str, operation: Json, known: Known) -> httpx.Response:
    """Call an operation on the chat `c`, with the example of its body."""
    body = None
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        named = schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]
        body = SCHEMA["components"]["schemas"][named]["examples"][0]
    if operation["operationId"] == "put_chat":
        body = {"metadata": {"whose": "theirs"}}
    asked = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    given = (("line", known.line), ("from_seq", 1), ("format", "jsonl"))
    # A context has formats, too, of which none is a file's.
    query = {name: value for name, value in given if name in asked and (name, path[-8:]) != ("format", "/context")}
    return await client.request(method, known.urls[path], json=body, params=query)


async def _everything(api: httpx.AsyncClient) -> str:
    """Return the answers of each read of the chat `c` that names no item, as text."""
    paths = [path for method, path, _ in OF_A_CHAT if method == "get" and path.count("{") == 1]
    assert len(paths) >= 14
    answers = [
        await api.get(path.format(chat_id="c"), params=_FILE if path.endswith("/export") else {}) for path in paths
    ]
    return "\n".join(answer.text for answer in answers)
