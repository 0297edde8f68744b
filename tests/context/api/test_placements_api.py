"""The positions of `pinned`, `recalled` and `diary_recent`, which are settings like those of the other segments."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.search.finding import begin_long, message
from tests.statements import watched
from tests.talk import FORMATS, Json, append, context, get, ok, put

SEGMENTS = {"pinned": "pinned", "recalled": "recall", "diary_recent": "diary"}
"""The section of the settings of each segment."""


async def begin(api: httpx.AsyncClient) -> None:
    """A chat with the three segments. Its history has two messages, the newest of which is the user's."""
    await begin_long(api)
    await put(api, status=200, system_prompt="You are Kai.")
    ok(await api.patch("/v1/chats/c/messages/m2", json={"pinned": True}), 200)
    await append(api, [message(7, "Do you see the green lantern?")])
    ok(await api.post("/v1/chats/c/diary", json={"content": "I lit the lamp."}), 201)


async def place(api: httpx.AsyncClient, name: str, **placement: Any) -> None:
    """Set the placement of a segment."""
    given: Json = {"recent": placement} if name == "diary_recent" else placement
    await put(api, status=200, settings={SEGMENTS[name]: given})


def names(shown: Json) -> list[str]:
    left_out = ("system", "character", "instruction")
    return [one["name"] for one in shown["segments"] if one["name"] not in left_out]


def row(shown: Json, name: str) -> Json:
    found: Json
    (found,) = [one for one in shown["segments"] if one["name"] == name]
    return found


async def test_by_default_they_keep_the_order_of_segments(api: httpx.AsyncClient) -> None:
    await begin(api)
    for fmt in FORMATS:
        shown = await context(api, format=fmt)
        assert names(shown) == ["pinned", "history", "diary_recent", "recalled", "newest"]
        assert shown["breakpoints"][-1]["after"] == "message:m6"


@pytest.mark.parametrize("name", SEGMENTS)
@pytest.mark.parametrize("position", ["before_prompt", 2])
async def test_a_segment_before_the_prompt_is_the_first(api: httpx.AsyncClient, name: str, position: str | int) -> None:
    await begin(api)
    usual = [one for one in names(await context(api)) if one != name]
    await place(api, name, position=position, role="user")
    for fmt in FORMATS:
        shown = await context(api, format=fmt)
        assert shown["segments"][0]["name"] == name
        assert names(shown) == [name, *usual]
        assert shown["segments"][0]["role"] == "system"


@pytest.mark.parametrize("name", SEGMENTS)
async def test_a_segment_in_the_chat_has_its_depth_role_and_scan(api: httpx.AsyncClient, name: str) -> None:
    await begin(api)
    text = row(await context(api), name)["text"]
    await place(api, name, position="in_chat", depth=2, role="user", scan=True)
    shown = await context(api, format="openai")
    found = row(shown, name)
    assert (found["role"], found["depth"], found["scan"], found["cacheable"]) == ("user", 2, True, False)
    contents = [one["content"] for one in shown["messages"]]
    assert shown["messages"][contents.index(text)]["role"] == "user"
    assert contents[contents.index(text) + 1] == "We sail on, day 6."
    assert not [one for one in shown["breakpoints"] if one["after"].startswith("message:")], "it moves in every turn"


@pytest.mark.parametrize("name", SEGMENTS)
async def test_a_segment_in_the_chat_does_not_change_the_prefix(api: httpx.AsyncClient, name: str) -> None:
    await begin(api)
    await put(api, status=200, settings={"instruction": ""})
    await place(api, name, position="in_chat", depth=0)
    with_it = await context(api)
    await place(api, name, position="none")
    without = await context(api)
    assert (with_it["prefix_hash"], name in names(without)) == (without["prefix_hash"], False)
    assert names(with_it)[-1] == name


@pytest.mark.parametrize("name", SEGMENTS)
@pytest.mark.parametrize("position", ["none", -1])
async def test_a_segment_can_be_omitted(api: httpx.AsyncClient, name: str, position: str | int) -> None:
    await begin(api)
    usual = names(await context(api))
    await place(api, name, position=position)
    shown = await context(api)
    assert names(shown) == [one for one in usual if one != name]
    assert [one["name"] for one in shown["omitted"]] == []


async def test_results_before_the_prompt_leave_no_breakpoint(api: httpx.AsyncClient) -> None:
    await begin(api)
    await place(api, "recalled", position="before_prompt")
    shown = await context(api, format="anthropic")
    assert (shown["breakpoints"], shown["segments"][0]["cacheable"]) == ([], False)
    assert [one["kind"] for one in shown["recalled"]] == ["message"], "they are still reported"


async def test_recall_without_a_segment_searches_nothing(api: httpx.AsyncClient, app: FastAPI) -> None:
    await begin(api)
    await place(api, "recalled", position="none")
    await context(api)
    async with watched(app.state.database) as statements:
        shown = await context(api)
    assert (shown["recalled"], len(statements.all)) == ([], 1)


@pytest.mark.parametrize("position", ["before_prompt", "in_chat"])
async def test_a_tight_limit_still_leaves_out_results_one_by_one(api: httpx.AsyncClient, position: str) -> None:
    await begin(api)
    ok(await api.post("/v1/chats/c/memories", json={"content": "Green glass calms Mira.", "importance": 0.6}), 201)
    await place(api, "recalled", position=position)
    whole = await context(api)
    assert len(whole["recalled"]) == 2
    shown = await context(api, max_tokens=whole["tokens"] - 1)
    assert (len(shown["recalled"]), shown["omitted"][0]["name"]) == (1, "recalled")
    assert row(shown, "recalled")["sources"] == [f"{one['kind']}:{one['id']}" for one in shown["recalled"]]
    assert names(shown) == names(whole)


async def test_an_omitted_pinned_message_is_reported_and_recalled(api: httpx.AsyncClient) -> None:
    await begin(api)
    ok(await api.patch("/v1/chats/c/messages/m1", json={"pinned": True}), 200)
    assert (await context(api))["recalled"] == [], "the context has the message already"
    await place(api, "pinned", position="none")
    report = (await get(api, "/inclusion"))["items"]
    assert [one["status"] for one in report[:2]] == ["none", "none"]
    assert [one["id"] for one in (await context(api))["recalled"]] == ["m1"]


async def test_a_diary_that_is_omitted_has_no_recent_entries(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put(api, status=200, settings={"diary": {"position": "none", "recent": {"position": "in_chat"}}})
    assert "diary_recent" not in names(await context(api))


async def test_an_unknown_position_is_refused(api: httpx.AsyncClient) -> None:
    await begin(api)
    for section in ({"pinned": {"position": 3}}, {"recall": {"depth": -1}}, {"diary": {"recent": {"role": "tool"}}}):
        await put(api, status=422, settings=section)
