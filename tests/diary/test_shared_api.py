"""A diary that the user's chats with one character share."""

from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import NOON, client_of
from tests.diary.diaries import change, discard, prompts
from tests.diary.sharing import begin, cut, entries_of, save_in, shared, shown_in, write_in
from tests.talk import add_swipe, append, cut_off, edit, get, ok, put, said, select_swipe, soft_delete, talk

LAMP = "The lamp was green tonight."


async def test_an_entry_is_shown_in_the_other_chats(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    assert await shown_in(api) == [f"*{LAMP}"]
    assert await shown_in(api, "c") == [LAMP], "one's own is shown as ever"
    (entry,) = await shared(api)
    (own,) = await entries_of(api, "c")
    same = ("id", "character", "content", "origin", "dated_at", "created_at")
    assert {name: entry[name] for name in same} == {name: own[name] for name in same}
    assert (entry["chat_id"], entry["in_prompt"]) == ("c", True)
    assert await entries_of(api, "d") == []


async def test_an_entry_is_not_shared_with_other_owners(
    app: FastAPI, api: httpx.AsyncClient, database: Database
) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    await begin(api, "same")
    await begin(api, "named", name="Ines")
    await begin(api, "theirs", user_id="ren")
    await begin(api, "of-none", user_id=None)
    await begin(api, "apart", scope="chat")
    for chat_id in ("named", "theirs", "of-none", "apart"):
        assert await shown_in(api, chat_id) == [], chat_id
        assert await shared(api, chat_id) == [], chat_id
    assert await shown_in(api, "same") == [f"*{LAMP}"]
    async with database.unit_of_work() as db_session:
        key = (await create_key(db_session, f"t-{uuid4().hex}", ["read", "write"], NOON)).text
    async with client_of(app, key) as stranger:
        await begin(stranger, "same")
        assert await shown_in(stranger, "same") == []


async def test_a_chat_that_does_not_share_shows_only_its_own(api: httpx.AsyncClient) -> None:
    await begin(api, scope="chat")
    await save_in(api, "c", LAMP)
    await begin(api, "d")
    assert await shown_in(api) == []
    await put(api, settings={"diary": {"scope": "character"}}, status=200)
    assert await shown_in(api) == [f"*{LAMP}"]
    await put(api, settings={"diary": {"scope": None}}, status=200)
    assert await shown_in(api) == []


async def test_an_entry_follows_the_lines_of_its_chat(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await save_in(api, "c", LAMP)
    line = (await get(api, ""))["line"]
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]

    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert (answer.status_code, await shown_in(api)) == (200, [])
    tag = answer.headers["etag"]

    ok(await api.post(f"/v1/chats/c/lines/{line}/switch"), 200)
    answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert (answer.status_code, await shown_in(api)) == (200, [f"*{LAMP}"])


async def test_an_entry_follows_its_reply(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    text = said(2)["content"]
    await edit(api, "m2", content="Nothing of a lamp.")
    assert await shown_in(api) == []
    await edit(api, "m2", content=text)
    assert await shown_in(api) == [f"*{LAMP}"]
    await add_swipe(api, "m2", "Something else.")
    assert await shown_in(api) == []
    await select_swipe(api, "m2", 0)
    assert await shown_in(api) == [f"*{LAMP}"]
    await soft_delete(api, "m2")
    assert await shown_in(api) == []


async def test_an_open_entry_is_not_shown(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await append(api, [said(3)])
    await save_in(api, "c", LAMP)
    assert await shown_in(api) == []
    await append(api, [said(4)])
    assert await shown_in(api) == [f"*{LAMP}"]


@pytest.mark.parametrize("way", ["cut off", "delete", "erase the chat", "erase the user", "another user"])
async def test_an_entry_is_gone_with_its_place(api: httpx.AsyncClient, way: str) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", LAMP)
    (entry,) = await entries_of(api, "c")
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    if way == "cut off":
        await cut_off(api, 2)
    elif way == "delete":
        await discard(api, entry["id"])
    elif way == "erase the chat":
        ok(await api.delete("/v1/chats/c"), 204)
    elif way == "another user":
        await put(api, user_id="ren", status=200)
    else:
        ok(await api.delete("/v1/users/mira"), 204)
        await begin(api, "d")
    assert await shown_in(api) == []
    assert await shared(api) == []
    assert (await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})).status_code == 200


async def test_every_change_has_another_etag(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]

    async def changes() -> bool:
        nonlocal tag
        answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
        tag = answer.headers["etag"]
        return answer.status_code == 200

    entry = await write_in(api, "c", LAMP)
    assert await changes()
    assert not await changes()
    await change(api, entry["id"], "The lamp was red.")
    assert await changes()
    await put(api, settings={"diary": {"scope": "chat"}}, status=200)
    assert await changes()
    await put(api, settings={"diary": {"scope": "character"}}, status=200)
    assert await changes()
    await append(api, talk(3, 4))
    assert not await changes(), "messages of another chat change nothing here"


async def test_a_chat_that_does_not_share_has_the_same_etag(api: httpx.AsyncClient) -> None:
    await begin(api, scope="chat")
    await begin(api, "d")
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await write_in(api, "c", LAMP)
    assert (await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})).status_code == 304


async def test_entries_are_in_the_order_of_time(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await begin(api, "d")
    await begin(api, "e")
    for chat_id, content in (("c", "One."), ("d", "Two."), ("e", "Three."), ("d", "Four."), ("c", "Five.")):
        clock.step(60)
        await write_in(api, chat_id, content)
    assert await shown_in(api) == ["*One.", "Two.", "*Three.", "Four.", "*Five."]
    assert await shown_in(api, "c") == ["One.", "*Two.", "*Three.", "*Four.", "Five."]
    await cut(api)
    held, newest = await prompts(api, "d")
    assert await shown_in(api) == ["*One.", "Two.", "*Three.", "Four.", "*Five."]
    assert "Five." in held + newest


async def test_the_diary_keeps_its_bytes_until_a_cut(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    first = await write_in(api, "c", "One.")
    await begin(api, "d")
    held, newest = await prompts(api, "d")
    assert ("One." in held, newest) == (True, ""), "what is there when a chat begins is in its diary"
    clock.step(60)
    await write_in(api, "c", "Two.")
    again, newest = await prompts(api, "d")
    assert again == held
    assert "Two." in newest
    assert "One." not in newest
    await write_in(api, "d", "Three.")
    again, newest = await prompts(api, "d")
    assert again == held
    await cut(api)
    held, newest = await prompts(api, "d")
    assert [text in held for text in ("One.", "Two.")] == [True, True]
    clock.step(60)
    await write_in(api, "c", "Four.")
    assert (await prompts(api, "d"))[0] == held
    await discard(api, first["id"])
    again, newest = await prompts(api, "d")
    assert "One." not in again
    assert "Two." in again
    assert "Four." in newest


async def test_an_entry_that_comes_back_is_where_it_was(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    await begin(api, "d")
    await cut(api)
    before = await prompts(api, "d")
    await edit(api, "m2", content="Nothing of a lamp.")
    assert await prompts(api, "d") == ("", "")
    await edit(api, "m2", content=said(2)["content"])
    assert await prompts(api, "d") == before


async def test_other_chats_take_at_most_half_of_the_lines(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api, lines=12)
    await begin(api, "d", lines=12)
    for n in range(6):
        clock.step(60)
        await write_in(api, "d", f"Mine {n}.")
    for n in range(6):
        clock.step(60)
        await write_in(api, "c", f"Theirs {n}.")
    ok(await api.put("/v1/chats/d", json={"settings": {"diary": {"lines": 11}}}), 200)
    await cut(api)
    held, newest = await prompts(api, "d")
    assert [line for line in held.splitlines() if "." in line] == ["Mine 4.", "Mine 5.", "Theirs 4.", "Theirs 5."]
    assert "Theirs" not in newest, "what the cut had no room for is not among the newest"


async def test_a_fork_has_each_entry_once(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    await begin(api, "e")
    assert await shown_in(api, "c") == [LAMP]
    assert await shown_in(api, "d") == [LAMP]
    assert await shown_in(api, "e") == [f"*{LAMP}"]
    ok(await api.delete("/v1/chats/c"), 204)
    assert await shown_in(api, "e") == [f"*{LAMP}"], "the fork still has it"


async def test_a_character_is_known_by_its_former_names(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    await begin(api, "d")
    ok(await api.post("/v1/chats/d/characters/Kai/rename", json={"name": "Kaito"}), 200)
    assert await shown_in(api) == [f"*{LAMP}"]
    assert [one["character"] for one in await shared(api)] == ["Kaito"]


async def test_a_context_before_a_message_has_other_chats(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save_in(api, "c", LAMP)
    await begin(api, "d")
    await write_in(api, "d", "Mine.")
    assert await shown_in(api, before="m2") == [f"*{LAMP}"]
