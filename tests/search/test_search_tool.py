"""The tool `memory_search`: what it finds, how it answers, and what it never finds."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.facts.asking import USER, begin, call, set_fact
from tests.memories.asking import Learner, change, delete, write
from tests.search.finding import LANTERN, TOMAS, begin_long, find, message
from tests.talk import (
    add_swipe,
    append,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    select_swipe,
    soft_delete,
    talk_with_memos,
)


async def test_a_memory_is_found_with_its_id_and_messages(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, recall={"mode": "tool"})
    await append(api, [message(1, "My brother Tomas is a ferryman."), message(2, "So he knows the tides.")])
    remembered = await learn(TOMAS, "m1", category="personal", importance=0.8)
    other = await write(api, "Two cans of lamp oil are left.")
    lines = (await find(api, "who is Tomas?")).splitlines()
    assert lines[1:] == [f"- [personal] {TOMAS} (memory {remembered.memory_id}; from message m1)"]
    assert (await find(api, "lamp oil")).splitlines()[1:] == [
        f"- [memory] Two cans of lamp oil are left. (memory {other['id']})"
    ]


async def test_a_misspelt_word_is_found(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    assert LANTERN in await find(api, "the peir")
    assert "Nothing was found" in await find(api, "the pxir")


async def test_an_old_message_is_found_with_its_speaker(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    lines = (await find(api, "green lantern")).splitlines()
    assert lines[1:] == [f"- [message] User: {LANTERN} (message m1)"]
    assert "day 6" not in await find(api, "sail"), "it is in the history"


async def test_memos_and_facts_are_found(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, recall={"mode": "tool"})
    await talk_with_memos(api, quoting_dispatcher, clock, 8)
    await set_fact(api, "lighthouse_keeper", "Quill")
    memo = (await get(api, "/memos"))["items"][0]
    assert f"(memo {memo['id']}; from messages m1 to m8)" in await find(api, "a sentence about lamps")
    written = ok(await api.post("/v1/chats/c/memos", json={"text": "They once drove to the sea."}), 201)
    assert f"(memo {written['id']})" in await find(api, "sea")
    assert "lighthouse_keeper: Quill" in await find(api, "Quill")


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("日本語の猫が好きです。", "猫は?"),
        ("我住在北京的一个胡同里。", "北京"),
        ("Старый МАЯК горит.", "маяк"),
        ("Das Mädchen aus ÉLAN.", "élan"),
        ("The lantern hangs there.", "lanterns"),
        ("The lighthouse is white.", "lihgthouse"),
        ("고양이가 창가에 있다.", "고양이를"),
    ],
)
async def test_every_script_and_similar_words_are_found(api: httpx.AsyncClient, said: str, query: str) -> None:
    await begin_long(api, said)
    assert said in await find(api, query)


@pytest.mark.parametrize("query", ["Bo", "Who is Bo?", "42", "bo"])
async def test_short_names_and_numbers_are_found(api: httpx.AsyncClient, query: str) -> None:
    await begin_long(api, "Bo lives in room 42.")
    assert "Bo lives in room 42." in await find(api, query)


@pytest.mark.parametrize("language", ["en", None])
async def test_a_frequent_word_that_is_a_name_is_found(api: httpx.AsyncClient, language: str | None) -> None:
    await begin_long(api, "I met Will in May.")
    if language:
        await put(api, status=200, language=language)
    await append(api, [message(7, "We will go on."), *(message(n, f"Day {n}.") for n in range(8, 12))])
    for query in ("What did Will say?", "Will", "in May"):
        lines = (await find(api, query)).splitlines()[1:]
        assert lines == ["- [message] User: I met Will in May. (message m1)"]


async def test_words_of_other_languages_are_no_frequent_ones(api: httpx.AsyncClient) -> None:
    await begin_long(api, "Das ist die Not.")
    assert "no word to search for" in await find(api, "not")
    await put(api, status=200, language="de")
    assert "Das ist die Not." in await find(api, "not")


@pytest.mark.parametrize(("language", "is_found"), [("en", True), (None, False)])
async def test_forms_of_a_word_are_found_by_their_stem(
    api: httpx.AsyncClient, language: str | None, is_found: bool
) -> None:
    await begin_long(api, "The ponies ran off.")
    await write(api, "Ren saw ponies.")
    if language:
        await put(api, status=200, language=language)
    found = await find(api, "pony")
    assert ("ponies ran" in found, "Ren saw" in found) == (is_found, is_found)


async def test_edited_and_deselected_texts_are_not_found(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    await edit(api, "m1", content="The pier is of oak.")
    assert LANTERN not in await find(api, "green lantern")
    assert "oak" in await find(api, "oak")
    await add_swipe(api, "m2", "A swan sits on the buoy.")
    assert "swan" in await find(api, "swan buoy")
    await select_swipe(api, "m2", 0)
    assert "Nothing was found" in await find(api, "swan buoy")


@pytest.mark.parametrize("way", ["hidden", "excluded", "deleted", "thought"])
async def test_hidden_and_deleted_messages_are_not_found(api: httpx.AsyncClient, way: str) -> None:
    given: dict[str, Any] = {"kind": "thought"} if way == "thought" else {}
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    await begin(api, memos={"enabled": False}, history=history, recall={"mode": "tool"})
    await append(api, [message(1, "Hello."), message(2, LANTERN, **given)])
    await append(api, [message(n, f"We sail on, day {n}.") for n in range(3, 9)])
    if way != "thought":
        assert LANTERN in await find(api, "green lantern")
    match way:
        case "hidden":
            await hide(api, (2, 2))
        case "excluded":
            await edit(api, "m2", excluded=True)
        case "deleted":
            await soft_delete(api, "m2")
    assert "Nothing was found" in await find(api, "green lantern")


async def test_messages_of_another_line_are_not_found(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await append(api, [message(7, "A swan sits on the buoy."), *(message(n, f"Day {n}.") for n in range(8, 13))])
    await learn("A swan lives at the buoy.", "m7")
    found = await find(api, "swan buoy")
    assert ("message m7)" in found, "swan lives" in found) == (True, True)
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    assert "Nothing was found" in await find(api, "swan buoy")
    assert LANTERN in await find(api, "green lantern")


async def test_the_end_that_was_cut_off_is_not_found(api: httpx.AsyncClient) -> None:
    await begin_long(api, "Hello.")
    await append(api, [message(7, LANTERN), *(message(n, f"Day {n}.") for n in range(8, 13))])
    assert LANTERN in await find(api, "green lantern")
    await cut_off(api, 7)
    assert "Nothing was found" in await find(api, "green lantern")


async def test_a_memory_is_found_only_while_it_is_live(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, recall={"mode": "tool"})
    await append(api, [message(1, "My brother Tomas is a ferryman.")])
    await learn(TOMAS, "m1")
    assert TOMAS in await find(api, "ferryman")
    await edit(api, "m1", content="I have no brother.")
    assert "Nothing was found" in await find(api, "ferryman")
    written = await write(api, LANTERN)
    await change(api, written["id"], archived=True)
    assert "Nothing was found" in await find(api, "lantern")
    await change(api, written["id"], archived=False, content="The lantern is red.")
    found = await find(api, "lantern")
    assert ("red" in found, "green" in found) == (True, False)
    await delete(api, written["id"])
    assert "Nothing was found" in await find(api, "lantern")


async def test_weak_memories_are_in_the_archive(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api, recall={"mode": "tool"}, memories={"forget_below": 0.2, "half_life_days": 1})
    await write(api, LANTERN, importance=0.5)
    assert LANTERN in await find(api, "lantern")
    clock.step(2 * 86_400)
    assert "Nothing was found" in await find(api, "lantern")
    await put(api, status=200, settings={"memories": {"forget_below": None, "max_memories": 1}})
    assert LANTERN in await find(api, "lantern")
    await write(api, TOMAS, importance=0.9)
    assert "Nothing was found" in await find(api, "lantern")


async def test_a_chat_finds_what_its_scopes_know(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "tool"})
    await put(api, "other", user_id="ren", characters=[{"name": "Kai"}], settings={"recall": {"mode": "tool"}})
    await write(api, "Mira fears lanterns.", under=USER)
    await write(api, "Kai gave Mira a lantern.", under=f"{USER}/characters/Kai")
    await write(api, "Quill gave Mira a lantern.", under=f"{USER}/characters/Quill")
    await write(api, "All lanterns are lit at dusk.", under="/v1")
    await write(api, "Ren broke a lantern.", under="/v1/chats/other")
    found = (await find(api, "lantern")).splitlines()[1:]
    assert len(found) == 3
    assert not [line for line in found if "Quill" in line or "Ren" in line]
    theirs = await call(api, "memory_search", {"query": "lantern"}, chat_id="other")
    assert len(theirs.splitlines()[1:]) == 2
    ok(await api.delete("/v1/users/mira"), 204)
    await begin(api, recall={"mode": "tool"})
    assert [line for line in (await find(api, "lantern")).splitlines()[1:] if "dusk" not in line] == []


async def test_the_best_results_come_first_and_are_limited(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "tool"})
    for n in range(5):
        await write(api, f"A lantern hangs at house {n}.")
    await write(api, LANTERN)
    lines = (await find(api, "green lantern", limit=3)).splitlines()
    assert (len(lines), LANTERN in lines[1]) == (4, True)


async def test_a_wrong_call_is_answered_in_words(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "tool"})
    assert "no word to search for" in await find(api, "Is it so?")
    assert "Nothing was found for “swan”" in await find(api, "swan")
    refused = await call(api, "memory_search", {"limit": 0}, status=422)
    assert "query is missing" in refused
    assert "limit" in refused
    assert [one["outcome"] for one in (await get(api, "/tools/calls"))["items"]] == ["read", "read", "refused"]


@pytest.mark.parametrize(
    ("settings", "is_offered"),
    [
        ({"preset": "memo"}, False),
        ({"preset": "agent"}, True),
        ({"preset": "companion"}, True),
        ({"preset": "decay", "recall": {"mode": "off"}}, False),
    ],
)
async def test_the_tool_is_offered_where_recall_is_on(
    api: httpx.AsyncClient, settings: dict[str, Any], is_offered: bool
) -> None:
    await put(api, settings=settings)
    for style in ("openai", "anthropic"):
        tools = ok(await api.get("/v1/tools", params={"chat_id": "c", "format": style}), 200)["tools"]
        names = [tool.get("name") or tool["function"]["name"] for tool in tools]
        assert ("memory_search" in names) is is_offered
