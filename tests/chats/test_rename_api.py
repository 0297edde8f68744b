"""A renamed character keeps its messages and its diary; nothing becomes stale, and no model is asked."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle, settle_rounds, while_the_model_is_asked
from tests.chats.renames import group, made, names, rename, talk_with_all_layers
from tests.diary.diaries import KAI, MIRA, contents, cut_often, entries, keep_diary, prompt, save, write
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.talk import CALL, append, context, edit, get, ok, put, said, talk


async def test_a_rename_reaches_list_messages_and_diary(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    created = (await get(api, ""))["characters"]
    await append(api, [said(1), said(2, name="Kai"), said(3), said(4, name="Mira")])
    await save(api, "A lamp.", character="Kai", message_id="m2")
    await save(api, "A map.", character="Mira")
    renamed = await rename(api, "Kai", "Cay")
    assert renamed["characters"] == [created[0] | {"name": "Cay", "aliases": ["Kai"]}, created[1]]
    assert renamed == await get(api, "")
    assert await names(api) == [None, "Cay", None, "Mira"]
    assert [entry["character"] for entry in await entries(api)] == ["Cay", "Mira"]
    assert [call["character"] for call in (await get(api, "/tools/calls"))["items"]] == ["Cay", "Mira"]
    assert "A lamp." in await prompt(api, character="Cay")
    text = (await context(api, format="text"))["text"]
    assert f"Cay: {said(2)['content']}" in text
    assert "Kai: " not in text


async def test_a_rename_makes_nothing_stale_and_asks_no_model(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await talk_with_all_layers(api, dispatcher, clock, model)
    await rename(api, "Mira", "Maria")  # so that one layer's rename does not hide another's
    before, asked, shown = await made(api), len(model.calls), await context(api, character="Kai")
    assert {"memo", "diary", "summary"} <= {segment["name"].rstrip("s") for segment in shown["segments"]}
    await rename(api, "Kai", "Cay")
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)
    assert not any(one.get("stale") for one in before)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    after = await context(api, character="Cay")
    kept = {"memos", "diary", "summary", "recap"}
    assert [one for one in after["segments"] if one["name"] in kept] == [
        one for one in shown["segments"] if one["name"] in kept
    ]
    # An edit is still noticed, and taking it back is, too.
    await edit(api, "m10", content="w99w")
    assert any(one.get("stale") for one in await made(api))
    await edit(api, "m10", content="w10w")
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)


async def test_a_rename_keeps_stale_texts_stale_until_an_undo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await talk_with_all_layers(api, dispatcher, clock, model)
    before, asked = await made(api), len(model.calls)
    await edit(api, "m2", content="w99w")
    stale, due = await made(api), (await get(api, ""))["work"]
    await rename(api, "Kai", "Cay")
    assert (await made(api), (await get(api, ""))["work"]) == (stale, due)
    assert stale != before
    await edit(api, "m2", content="w2w")
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)


@pytest.mark.parametrize("name", ["Mira", "Maria"])
async def test_a_name_of_another_character_is_refused(api: httpx.AsyncClient, name: str) -> None:
    await put(api, characters=[KAI, {"name": "Maria"}])
    before = (await rename(api, "Maria", "Mira"))["characters"]
    problem = await rename(api, "Kai", name, 409)
    assert (problem["code"], problem["errors"][0]["loc"]) == ("character_taken", ["body", "name"])
    assert (await get(api, ""))["characters"] == before


async def test_only_characters_of_the_chat_can_be_renamed(api: httpx.AsyncClient) -> None:
    assert (await rename(api, "Kai", "Cay", 404))["code"] == "chat_not_found"
    await append(api, [said(1), said(2, name="Kai")])
    assert (await rename(api, "Kai", "Cay", 404))["code"] == "character_not_found"
    await put(api, status=200, characters=[KAI])
    for name in ("", None):
        assert (await rename(api, "Kai", name, 422))["errors"][0]["loc"] == ["body", "name"]  # type: ignore[arg-type]
    await rename(api, "Kai", "Captain / Kai")
    assert (await rename(api, "Captain%20%2F%20Kai", "Cay"))["characters"][0]["aliases"] == ["Kai", "Captain / Kai"]


async def test_a_character_can_get_a_former_name_back(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, group(1, 2))
    await rename(api, "Kai", "Cay")
    assert (await rename(api, "Cay", "Kai"))["characters"][0]["aliases"] == ["Cay"]
    assert await names(api) == [None, "Kai"]


async def test_names_of_users_and_tools_stay(api: httpx.AsyncClient) -> None:
    await put(api, characters=[KAI])
    roles = ["user", "assistant", "narrator", "system", "tool"]
    call = {"tool_calls": [CALL]}
    messages = [said(n, role=role, name="Kai") | (call if n == 2 else {}) for n, role in enumerate(roles, 1)]
    messages[-1]["tool_call_id"] = CALL["id"]
    await append(api, messages)
    await rename(api, "Kai", "Cay")
    assert await names(api) == ["Kai", "Cay", "Cay", "Cay", "Kai"]
    await append(api, [one | {"id": f"again-{one['id']}"} for one in messages])
    assert await names(api) == ["Kai", "Cay", "Cay", "Cay", "Kai"] * 2


async def test_a_disabled_character_stays_out_of_old_batches(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, characters=[KAI | {"disabled": True}, MIRA], settings={"memos": {"every_messages": 4}})
    lines = [said(n, role="assistant", name="Kai" if n % 2 else "Mira", content=f"w{n}w") for n in range(1, 12)]
    model.otherwise = echo
    await append(api, lines)
    await settle(dispatcher, clock)
    asked = len(model.calls)
    await rename(api, "Kai", "Cay")
    await edit(api, "m1", content="Another word.")
    await append(api, [said(n, role="assistant", name="Cay" if n % 2 else "Mira") for n in range(12, 15)])
    await settle(dispatcher, clock)
    memos = (await get(api, "/memos"))["items"]
    assert [(memo["first_seq"], memo["last_seq"], memo["stale"]) for memo in memos] == [(1, 8, False)]
    assert len(model.calls) == asked == 1
    await append(api, talk(15, 16))
    assert [memo["last_seq"] for memo in (await get(api, "/memos"))["items"]] == [8, 15]


async def test_a_rename_beside_a_running_memo_loses_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, characters=[KAI], settings={"memos": {"every_messages": 4}})
    model.otherwise = echo
    await append(api, group(1, 4))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await rename(api, "Kai", "Cay")
    (memo,) = (await get(api, "/memos"))["items"]
    assert (memo["status"], memo["stale"], len(model.calls)) == ("ready", False, 1)


async def test_a_rename_beside_a_running_entry_writes_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, auto_write_turns=1)
    model.otherwise = echo
    await append(api, group(1, 2))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await rename(api, "Kai", "Cay")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["character"], entry["content"]) == ("Cay", "I said w1w, w2w.")
    assert '"Cay"' in str(model.requests[-1]["messages"][-1]["content"])
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_a_rename_beside_a_running_rewrite_shows_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, auto_write_turns=1)
    model.otherwise = echo
    await append(api, group(1, 2))
    await settle(dispatcher, clock)
    await edit(api, "m1", content="w99w")
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await rename(api, "Kai", "Cay")
    await settle(dispatcher, clock)
    assert await contents(api) == ["I said w99w, w2w."]
    assert "I said w99w, w2w." in await prompt(api)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_work_of_a_former_character_gives_way(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = echo
    await keep_diary(api, KAI, {"name": "Cay"}, auto_write_turns=2)
    await append(api, [*group(1, 2), *group(3, 4, name="Cay")])
    assert (await get(api, ""))["work"]["due"] == 2
    await keep_diary(api, KAI, auto_write_turns=2, status=200)
    await rename(api, "Kai", "Cay")
    assert (await get(api, ""))["work"]["due"] == 1
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["character"], entry["first_seq"]) == ("Cay", 1)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_work_that_waits_moves_to_the_new_name(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, KAI, MIRA, auto_write_turns=1, lines=2)
    model.otherwise = echo
    await append(api, group(1, 2))
    for n in range(3):
        await save(api, f"A lamp, p{n}p.", character="Kai")
    await append(api, group(3, 4))
    due = (await get(api, ""))["work"]
    assert due["due"] == 2
    await rename(api, "Kai", "Cay")
    assert (await get(api, ""))["work"] == due
    await settle_rounds(dispatcher, clock)
    assert {entry["character"] for entry in await entries(api)} == {"Cay"}
    assert (await get(api, "/diary/folded", character="Cay"))["entries"] >= 2
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_a_diary_under_the_new_name_is_joined(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = echo
    await keep_diary(api, {"name": "Cay"}, lines=2)
    await append(api, group(1, 2, name="Cay"))
    for n in range(4):
        await write(api, f"A map, p{n}p.", character="Cay")
    await keep_diary(api, KAI, lines=2, status=200)
    for n in range(4, 8):
        await write(api, f"A lamp, p{n}p.", character="Kai")
    await settle_rounds(dispatcher, clock)
    await rename(api, "Kai", "Cay")
    await settle_rounds(dispatcher, clock)
    whole = [entry["content"] for entry in await entries(api, character="Cay")]
    assert len(whole) == 8
    await cut_often(api)
    await append(api, group(3, 4, name="Cay"))  # the fold of both is shown from this cut on
    shown = await prompt(api, character="Cay")
    assert [f"p{n}p" in shown for n in range(8)] == [True] * 8
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_a_restore_reverts_a_rename(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, group(1, 2))
    await save(api, "A lamp.")
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    former = await context(api)
    await rename(api, "Kai", "Cay")
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    restored = await context(api)
    assert {name: restored[name] for name in restored.keys() - {"line"}} == {
        name: former[name] for name in former.keys() - {"line"}
    }
    assert (await names(api), (await get(api, ""))["characters"][0]["aliases"]) == ([None, "Kai"], [])
    fork = ok(await api.get("/v1/chats/d"), 200)["characters"][0]
    assert (fork["name"], fork["aliases"]) == ("Cay", ["Kai"])
    assert [one["character"] for one in ok(await api.get("/v1/chats/d/diary"), 200)["items"]] == ["Cay"]
    await rename(api, "Kai", "K")
    assert await contents(api, character="K") == ["A lamp."]
