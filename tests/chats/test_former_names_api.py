"""A former name of a character means the character: in messages, in re-imports and in requests."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.chats.renames import group, made, names, rename, talk_with_all_layers
from tests.diary.diaries import KAI, MIRA, contents, entries, keep_diary, prompt, save, write
from tests.scripted_model import ScriptedModel
from tests.talk import CALL, append, context, edit, get, ok, put, reimport, said, select_swipe, without_ids


@pytest.mark.parametrize("strip", [list, without_ids], ids=["ids", "no ids"])
@pytest.mark.parametrize("name", ["Kai", "Cay"])
async def test_a_reimport_matches_either_name(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    name: str,
    strip: Any,
) -> None:
    await talk_with_all_layers(api, dispatcher, clock, model)
    before, asked = await made(api), len(model.calls)
    await rename(api, "Kai", "Cay")
    line = (await get(api, ""))["line"]
    answer = await reimport(api, strip(group(1, 24, name=name)))
    assert answer == {"added": 0, "changed": 0, "removed": 0, "line": line}
    edited = group(1, 24, name=name)
    edited[9]["content"], edited[9]["metadata"] = "w99w", {"a": 1}
    assert (await reimport(api, strip(edited)))["changed"] == 1
    # One message differs in what no memory is made from; the other is as it was.
    unmarked = group(1, 24, name=name)
    unmarked[1]["metadata"] = {"a": 1}
    assert (await reimport(api, strip(unmarked)))["changed"] == 2
    assert set(await names(api)) == {None, "Cay"}
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)


async def test_a_removed_characters_messages_are_not_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await talk_with_all_layers(api, dispatcher, clock, model)
    await rename(api, "Kai", "Cay")
    await put(api, status=200, characters=[MIRA])
    before, asked = await made(api), len(model.calls)
    unmarked = [message | {"metadata": {"a": 1}} for message in group(1, 24, name="Cay")]
    assert (await reimport(api, unmarked))["changed"] == 24
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)


async def test_a_new_line_keeps_the_current_name(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, group(1, 6))
    await save(api, "A lamp.")
    await rename(api, "Kai", "Cay")
    line = (await get(api, ""))["line"]
    answer = await reimport(api, [*group(1, 2), said(7, role="assistant", name="Kai"), *group(3, 6)])
    assert (answer["added"], answer["line"] == line) == (1, False)
    assert set(await names(api)) == {None, "Cay"}
    assert await contents(api, character="Kai") == ["A lamp."]


async def test_a_message_with_a_former_name_gets_the_current_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await talk_with_all_layers(api, dispatcher, clock, model)
    await rename(api, "Kai", "Cay")
    await append(api, group(25, 26))
    (known, reply) = (await append(api, group(24, 25) + group(26, 26), status=200))["messages"][::2]
    assert (known["name"], reply["name"]) == ("Cay", "Cay")
    assert (await append(api, group(27, 28)))["messages"][-1]["name"] == "Cay"
    await settle_rounds(dispatcher, clock)
    assert {entry["character"] for entry in await entries(api)} == {"Cay"}
    assert "Kai" not in (await context(api, format="text", character="Cay"))["text"].partition("Mira")[2]
    asked, before = len(model.calls), await made(api)
    swiped = ok(await api.post("/v1/chats/c/messages/m26/swipes", json={"content": "w98w"}), 201)
    assert swiped["name"] == "Cay"
    await select_swipe(api, "m26", 0)
    await edit(api, "m28", content="w97w")
    await edit(api, "m28", content="w28w")
    await settle_rounds(dispatcher, clock)
    assert (await made(api), len(model.calls)) == (before, asked)


async def test_a_former_name_in_a_request_means_the_character(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await append(api, group(1, 2))
    await rename(api, "Kai", "Cay")
    await write(api, "A lamp.", character="Kai")
    await save(api, "A map.", character="Kai")
    assert {entry["character"] for entry in await entries(api)} == {"Cay"}
    assert await contents(api, character="Kai") == ["A lamp.", "A map."] == await contents(api, character="Cay")
    assert "A lamp." in await prompt(api, character="Kai")
    assert (await get(api, "/diary/folded", character="Kai"))["character"] == "Cay"
    assert (await rename(api, "Kai", "K"))["characters"][0]["aliases"] == ["Kai", "Cay"]


async def test_calls_that_are_open_follow_the_rename(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await append(api, [said(1), said(2, name="Kai", tool_calls=[CALL])])
    await save(api, "A lamp.", character="Kai")
    await rename(api, "Kai", "Cay")
    await save(api, "A lamp.", character="Kai")  # a retry
    await append(api, [said(3, role="tool", tool_call_id=CALL["id"]), said(4, name="Kai")])
    (entry,) = await entries(api)
    assert (entry["character"], entry["message_id"], entry["at_seq"]) == ("Cay", "m4", 4)
    await append(api, [said(5)])
    await save(api, "A map.", character="Cay")
    assert ok(await api.post("/v1/chats/c/tools/discard", params={"character": "Kai"}), 200) == {"discarded": 1}


async def test_a_put_with_a_former_name_renames_nothing(api: httpx.AsyncClient) -> None:
    await put(api, characters=[KAI])
    renamed = (await rename(api, "Kai", "Cay"))["characters"]
    assert (await put(api, status=200, characters=[KAI]))["characters"] == renamed
    freed = await put(api, status=200, characters=[KAI | {"name": "Cay", "aliases": []}, KAI])
    assert [(one["name"], one["aliases"]) for one in freed["characters"]] == [("Cay", []), ("Kai", [])]
    problem = await put(api, status=409, characters=[KAI | {"id": renamed[0]["id"]}])
    assert problem["code"] == "character_mismatch"
    await append(api, group(1, 2))
    assert await names(api) == [None, "Kai"]


async def test_an_echo_with_the_current_name_is_dropped(api: httpx.AsyncClient) -> None:
    await put(api, characters=[KAI, MIRA], settings={"timestamps": "inline"})
    await rename(api, "Kai", "Cay")
    (stored,) = (await append(api, [said(2, name="Kai", content="[04/01 12:00] Cay: Hello.")]))["messages"]
    assert (stored["name"], stored["content"]) == ("Cay", "Hello.")


async def test_two_characters_cannot_share_a_former_name(api: httpx.AsyncClient) -> None:
    refused = await put(api, status=422, characters=[KAI | {"aliases": ["A"]}, {"name": "Mira", "aliases": ["A"]}])
    message = "must not have the alias “A”, which another character has too"
    assert refused["errors"] == [{"loc": ["body", "characters", 1, "aliases"], "msg": message}]
    await put(api, characters=[KAI | {"aliases": ["A", "A"]}])
