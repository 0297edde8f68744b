"""Searches of a chat find the entries of the user's other chats that its shared diary shows."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import client_of, client_with
from tests.diary.diaries import change, discard
from tests.diary.sharing import KEEPING_ONE, begin, cut, entries_of, save_in, shared, write_in
from tests.facts.asking import USER, call
from tests.statements import watched
from tests.talk import Json, add_swipe, append, cut_off, edit, ok, put, said, talk

LAMP = "A lantern was lit tonight."
LIT = "Who lit the lantern?"


async def search(api: httpx.AsyncClient, chat_id: str = "d", query: str = LIT, **more: Any) -> list[Json]:
    """The entries that a search of a chat finds, best first."""
    body = {"query": query, "limit": 100, "kinds": ["diary"], **more}
    hits: list[Json] = ok(await api.post(f"/v1/chats/{chat_id}/memories/search", json=body), 200)["hits"]
    return hits


async def finds_what_is_listed(api: httpx.AsyncClient, chat_id: str = "d", **query: Any) -> int:
    """Whether a search finds the entries of both lists, each once; how many there are."""
    listed = [(one["id"], one["chat_id"], one["content"]) for one in await shared(api, chat_id, **query)]
    listed += [(one["id"], chat_id, one["content"]) for one in await entries_of(api, chat_id)]
    hits = await search(api, chat_id, **query)
    assert sorted((hit["id"], hit["chat_id"], hit["text"]) for hit in hits) == sorted(listed)
    return len(hits)


async def test_an_entry_is_found_in_the_other_chats(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    (hit,) = await search(api)
    (entry,) = await shared(api)
    assert (hit["kind"], hit["id"], hit["chat_id"], hit["text"]) == ("diary", entry["id"], "c", LAMP)
    assert (hit["sources"], hit["first_seq"], hit["last_seq"], hit["sent_at"]) == ([], None, None, None)
    assert hit["snippet"] == "A **lantern** was **lit** tonight."
    (own,) = await search(api, "c")
    assert (own["id"], own["chat_id"], own["sources"]) == (entry["id"], "c", ["message:m2"])
    assert await search(api, character="Kai") == [hit]
    for limit in ("after", "before"):  # as the API says: it has no `sent_at`
        assert await search(api, **{limit: "2000-01-01T00:00:00Z"}) == []
    assert await search(api, kinds=["memory"]) == []


async def test_it_is_searched_by_one_statement(app: FastAPI, api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    async with watched(app.state.database) as statements:
        assert await search(api)
    assert len([text for text in statements.asked if "diary_entries" in text]) == 1


async def test_recall_and_the_tool_find_it(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await begin(api, "d", lines=4)
    await put(api, "d", status=200, settings={"recall": {"mode": "auto"}})
    entry = await write_in(api, "c", LAMP)
    for n in range(6):  # more than the diary has room for
        clock.step(60)
        await write_in(api, "c", f"We sail on, day {n}.")
    await cut(api, "d")
    path = "/v1/chats/d/context"
    answer = ok(await api.get(path, params={"recall": "auto", "query": LIT, "max_tokens": 8_000}), 200)
    assert entry["id"] not in str(answer["segments"][:-1])
    assert [(one["kind"], one["id"]) for one in answer["recalled"]] == [("diary", entry["id"])]
    assert answer["segments"][-1]["text"].splitlines()[2:] == [f"- [memo entry, in another conversation] {LAMP}"]
    found = await call(api, "memory_search", {"query": LIT}, chat_id="d")
    assert f"- [memo entry, in another conversation] {LAMP} (diary {entry['id']})" in found


async def test_own_entries_are_not_marked(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await write_in(api, "c", LAMP)
    own = await write_in(api, "d", "A lantern fell.")
    found = await call(api, "memory_search", {"query": "lantern"}, chat_id="d")
    assert f"- [diary] A lantern fell. (diary {own['id']}" in found
    assert f"- [memo entry, in another conversation] {LAMP}" in found


async def test_recall_leaves_out_what_the_prompt_has(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    answer = ok(await api.get("/v1/chats/d/context", params={"recall": "auto", "query": LIT}), 200)
    assert LAMP in str(answer["segments"])
    assert answer["recalled"] == []


async def test_it_is_found_while_it_is_live(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await save_in(api, "c", LAMP)
    line = ok(await api.get("/v1/chats/c"), 200)["line"]
    assert await finds_what_is_listed(api) == 1
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    assert await finds_what_is_listed(api) == 0
    ok(await api.post(f"/v1/chats/c/lines/{line}/switch"), 200)
    assert await finds_what_is_listed(api) == 1
    await edit(api, "m2", content="Nothing of a lamp.")
    assert await finds_what_is_listed(api) == 0
    await edit(api, "m2", content=said(2)["content"])
    assert await finds_what_is_listed(api) == 1
    (entry,) = await entries_of(api, "c")
    await change(api, entry["id"], "A lantern went out.")
    assert [hit["text"] for hit in await search(api)] == ["A lantern went out."]
    await put(api, "c", status=200, settings={"diary": {"scope": "chat"}})
    assert await search(api) == []


@pytest.mark.parametrize("way", ["cut off", "delete", "swipe", "erase", "another user", "not shared"])
async def test_it_is_gone_with_its_place(api: httpx.AsyncClient, way: str) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    assert await finds_what_is_listed(api) == 1
    (entry,) = await entries_of(api, "c")
    match way:
        case "cut off":
            await cut_off(api, 2)
        case "delete":
            await discard(api, entry["id"])
        case "swipe":
            await add_swipe(api, "m2", "Something else.")
        case "erase":
            ok(await api.delete("/v1/chats/c"), 204)
        case "another user":
            await put(api, "c", status=200, user_id="ren")
        case _:
            await put(api, "d", status=200, settings={"diary": {"scope": "chat"}})
    assert await finds_what_is_listed(api) == 0
    assert await call(api, "memory_search", {"query": LIT}, chat_id="d") == (
        f"Nothing was found for “{LIT}”. Try other words. Do not claim to remember it."
    )


async def test_an_open_entry_is_not_found(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await append(api, [said(3)])
    await save_in(api, "c", LAMP)
    assert await finds_what_is_listed(api) == 0
    await append(api, [said(4)])
    assert await finds_what_is_listed(api) == 1


async def test_what_is_found_is_what_the_lists_have(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    for chat_id in ("c", "d", "e"):
        await begin(api, chat_id, lines=6)
    for n in range(15):
        for chat_id in ("c", "d", "e"):
            clock.step(60)
            await write_in(api, chat_id, f"A lantern of {chat_id}, {n}.")
        if n == 3:
            await cut(api, "d")  # what `diary` holds then is older than the newest entries
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f"}), 201)
    for chat_id in ("c", "d", "e", "f"):
        assert await finds_what_is_listed(api, chat_id) > 15


async def test_each_character_finds_its_own_diary(api: httpx.AsyncClient) -> None:
    settings = {"diary": {"scope": "character"}, "memos": {"enabled": False}, "history": KEEPING_ONE}
    for chat_id in ("c", "d"):
        characters = [{"name": "Kai"}, {"name": "Ines"}]
        await put(api, chat_id, user_id="mira", characters=characters, settings=settings)
        await append(api, talk(1, 2), chat_id)
    for name in ("Kai", "Ines"):
        await write_in(api, "c", f"A lantern of {name}.", character=name)
    assert await finds_what_is_listed(api) == 2
    assert await finds_what_is_listed(api, character="Ines") == 1
    ok(await api.post("/v1/chats/d/characters/Ines/rename", json={"name": "Nia"}), 200)
    assert [hit["text"] for hit in await search(api, character="Nia")] == ["A lantern of Ines."]
    assert [hit["text"] for hit in await search(api, character="Ines")] == ["A lantern of Ines."]
    assert await finds_what_is_listed(api) == 2


async def test_others_do_not_find_it(app: FastAPI, api: httpx.AsyncClient, database: Database) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    await begin(api, "same")
    await begin(api, "named", name="Ines")
    await begin(api, "theirs", user_id="ren")
    await begin(api, "of-none", user_id=None)
    await begin(api, "apart", scope="chat")
    assert len(await search(api, "same")) == 1
    for chat_id in ("named", "theirs", "of-none", "apart"):
        assert await search(api, chat_id) == [], chat_id
    async with client_with(app, database, f"t-{uuid4().hex}", "read", "write") as stranger:
        await begin(stranger, "same")
        assert await search(stranger, "same") == []


@pytest.mark.parametrize("limits", [{"chat_id": "d"}, {"user_id": "mira"}, {"user_id": "mira", "chat_id": "d"}])
async def test_a_token_finds_what_its_list_has(app: FastAPI, api: httpx.AsyncClient, limits: Json) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    wanted = {"scopes": ["read", "write"], "ttl_s": 600, **limits}
    token = ok(await api.post("/v1/tokens", json=wanted), 201)["token"]
    async with client_of(app, token) as browser:
        assert await finds_what_is_listed(browser) == (0 if "chat_id" in limits else 1)
        found = await call(browser, "memory_search", {"query": LIT}, chat_id="d")
        assert (LAMP in found) == ("chat_id" not in limits)


async def test_a_search_of_the_user_finds_it_once(api: httpx.AsyncClient) -> None:
    for chat_id in ("c", "d", "e"):
        await begin(api, chat_id)
        await write_in(api, chat_id, f"A lantern of {chat_id}.")
        await put(api, chat_id, status=200, settings={"search": {"across_chats": chat_id != "e"}})
    hits = ok(await api.post(f"{USER}/memories/search", json={"query": LIT, "kinds": ["diary"]}), 200)["hits"]
    assert sorted((hit["chat_id"], hit["text"]) for hit in hits) == [("c", "A lantern of c."), ("d", "A lantern of d.")]


async def test_a_limited_search_has_only_its_chat(api: httpx.AsyncClient) -> None:
    """A search over the user's chats finds no entry of another chat, and so none of a chat that it does not read."""
    for chat_id in ("c", "d", "e"):
        await begin(api, chat_id)
        await write_in(api, chat_id, f"A lantern of {chat_id}.")
        await put(api, chat_id, status=200, settings={"search": {"across_chats": chat_id != "e"}})
    scene = ok(await api.put("/v1/chats/c/scenes/breaks/2"), 201)["items"][0]["id"]
    line = ok(await api.get("/v1/chats/c"), 200)["line"]
    for limit in ({"line": line}, {"scene": scene}, {"line": line, "scene": scene}):
        body = {"query": LIT, "kinds": ["diary"], **limit}
        hits = ok(await api.post(f"{USER}/memories/search", json=body), 200)["hits"]
        assert [(hit["chat_id"], hit["text"]) for hit in hits] == [("c", "A lantern of c.")]
    assert {hit["chat_id"] for hit in await search(api, "c", line=line)} == {"c", "d", "e"}
