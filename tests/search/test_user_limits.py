"""A search over a user's chats that is limited to a scene or a line, over HTTP."""

from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import client_of, client_with
from tests.facts.asking import USER, begin, set_fact
from tests.memories.asking import write
from tests.search.finding import message
from tests.search.test_search_api import found, search
from tests.talk import Json, append, edit, ok, put

OPEN: Json = {"across_chats": True}
UNKNOWN = "01900000-0000-7000-8000-000000000000"


async def begin_scenes(api: httpx.AsyncClient, chat_id: str, **search: Any) -> Json:
    """Create a chat of 4 messages whose first 2 are a scene; the ids of the scene and of the line."""
    await begin(api, chat_id, preset="scenes", search=OPEN | search)
    await append(api, [message(n, f"The ferry of {chat_id}, day {n}.") for n in range(1, 5)], chat_id=chat_id)
    return await limits_of(api, chat_id)


async def limits_of(api: httpx.AsyncClient, chat_id: str) -> Json:
    chat = f"/v1/chats/{chat_id}"
    await api.put(f"{chat}/scenes/breaks/2")
    scenes = ok(await api.get(f"{chat}/scenes"), 200)["items"]
    return {"scene": scenes[0]["id"], "line": ok(await api.get(chat), 200)["line"]}


async def refused(api: httpx.AsyncClient, under: str = USER, **limits: str) -> tuple[int, Json]:
    """The status and the problem of a search, without the ids that were asked for and without its path."""
    answer = await api.post(f"{under}/memories/search", json={"query": "ferry", **limits})
    text = answer.text
    for limit in limits.values():
        text = text.replace(limit, "…")
    return answer.status_code, {key: value for key, value in orjson.loads(text).items() if key != "instance"}


async def test_a_scene_limits_the_search_to_its_chat(api: httpx.AsyncClient) -> None:
    a, b = [await begin_scenes(api, chat_id) for chat_id in ("a", "b")]
    await write(api, "The ferry is blue.", under=USER)
    for chat_id, limits in (("a", a), ("b", b)):
        hits = (await search(api, "ferry", under=USER, scene=limits["scene"]))["hits"]
        assert {hit["chat_id"] for hit in hits} == {chat_id}
        assert {hit["id"] for hit in hits if hit["kind"] == "message"} == {"m1", "m2"}
    both = await search(api, "ferry", under=USER, **a)
    assert both == await search(api, "ferry", under="/v1/chats/a", **a)


async def test_a_limited_search_answers_as_its_chat(api: httpx.AsyncClient) -> None:
    await begin_scenes(api, "b")
    limits = await begin_scenes(api, "a")
    await write(api, "The ferry is blue.", under=USER)
    await set_fact(api, "ferry", "blue", under=USER)
    await set_fact(api, "ferry name", "Astrid", under="/v1/chats/a")
    more: Json
    for more in ({}, {"kinds": ["fact", "memory"]}, {"character": "Kai"}, {"limit": 2}):
        for limit in ("scene", "line"):
            asked = {limit: limits[limit], **more}
            answer = await search(api, "ferry", under=USER, **asked)
            assert answer == await search(api, "ferry", under="/v1/chats/a", **asked)
        assert answer["hits"]
    (corrected,) = (await search(api, "fery 4", under=USER, line=limits["line"], limit=1))["hits"]
    assert corrected["chat_id"] == "a"
    await search(api, "ferry", under=USER, line=limits["line"], character="Nobody", status=422)


async def test_a_line_that_is_not_current_is_searched(api: httpx.AsyncClient) -> None:
    former = (await begin_scenes(api, "c"))["line"]
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await edit(api, "m4", content="The lantern.")
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    assert await found(api, "lantern", under=USER) == []
    assert await found(api, "lantern", under=USER, line=former) == ["message:m4"]


async def test_a_scene_and_a_line_must_belong_together(api: httpx.AsyncClient) -> None:
    a, b = [await begin_scenes(api, chat_id) for chat_id in ("a", "b")]
    for limits in ({"line": a["line"], "scene": b["scene"]}, {"line": a["line"], "scene": UNKNOWN}):
        status, problem = await refused(api, **limits)
        assert (status, problem["code"]) == (404, "scene_not_found")
        assert await refused(api, **limits) == await refused(api, "/v1/chats/a", **limits)


async def test_a_scene_of_a_fork_is_that_of_the_original(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    limits = await begin_scenes(api, "c")
    clock.step(60)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "b"}), 201)
    forked = await limits_of(api, "b")
    assert forked["scene"] == limits["scene"]
    assert await chats_found(api, scene=limits["scene"]) == {"c"}
    assert await chats_found(api, **forked) == {"b"}
    await put(api, "c", status=200, settings={"search": {"across_chats": False}})
    assert await chats_found(api, scene=limits["scene"]) == {"b"}


async def chats_found(api: httpx.AsyncClient, **limits: Any) -> set[str]:
    return {hit["chat_id"] for hit in (await search(api, "ferry", under=USER, **limits))["hits"]}


@pytest.mark.parametrize("limit", ["scene", "line"])
async def test_only_chats_of_the_search_are_found(
    app: FastAPI, api: httpx.AsyncClient, database: Database, limit: str
) -> None:
    """An unknown scene or line, and those of chats that the search does not read, have the same answer."""
    await begin_scenes(api, "a")
    closed = await begin_scenes(api, "b", across_chats=False)
    gone = await begin_scenes(api, "d")
    ok(await api.delete("/v1/chats/d"), 204)
    of_other = await begin_scenes(api, "e")
    await put(api, "e", status=200, user_id="noa")
    of_nobody = await begin_scenes(api, "f")
    await put(api, "f", status=200, user_id=None)
    async with client_with(app, database, f"t-{uuid4().hex}", "read", "write") as stranger:
        foreign = await begin_scenes(stranger, "g")
        expected = await refused(api, **{limit: UNKNOWN})
        assert (expected[0], expected[1]["code"]) == (404, f"{limit}_not_found")
        for limits in (closed, gone, of_other, of_nobody, foreign):
            assert await refused(api, **{limit: limits[limit]}) == expected
        assert (await refused(stranger, **{limit: foreign[limit]}))[0] == 200
    assert (await refused(api, "/v1/users/noa", **{limit: of_other[limit]}))[0] == 200


@pytest.mark.parametrize("limit", ["scene", "line"])
async def test_a_browser_token_is_limited_to_its_user(app: FastAPI, api: httpx.AsyncClient, limit: str) -> None:
    own, of_other = [await begin_scenes(api, chat_id) for chat_id in ("a", "b")]
    await put(api, "b", status=200, user_id="noa")

    async def token(**limits: str) -> str:
        wanted = {"scopes": ["read"], "ttl_s": 600, **limits}
        return str(ok(await api.post("/v1/tokens", json=wanted), 201)["token"])

    async with client_of(app, await token(user_id="mira")) as browser:
        assert (await search(browser, "ferry", under=USER, **{limit: own[limit]}))["hits"]
        unknown = await refused(browser, **{limit: UNKNOWN})
        assert await refused(browser, **{limit: of_other[limit]}) == unknown
        assert (await refused(browser, "/v1/users/noa", **{limit: of_other[limit]}))[1]["code"] == "user_not_found"
    async with client_of(app, await token(user_id="mira", chat_id="a")) as browser:
        assert (await refused(browser, **{limit: own[limit]}))[1]["code"] == "user_not_found"
