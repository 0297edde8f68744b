"""What a character notes with its tools holds while the reply that noted it has the same text."""

import asyncio

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.ids import user_key
from app.kit.tokens import count_tokens
from app.layers.tool_pages import MAX_PAGE_TOKENS
from tests.background import holding, until_waited_for
from tests.facts.asking import (
    USER,
    WRITE_MEANWHILE,
    begin,
    call,
    checkpoint,
    delete_fact,
    fork,
    held,
    history,
    learn_wide,
    note,
    restore,
    set_fact,
    shown,
    switch_to,
)
from tests.talk import (
    CHAT,
    Act,
    Json,
    add_swipe,
    append,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    said,
    select_swipe,
    soft_delete,
    talk,
)

GREEN = {"lamp": "green"}


async def test_a_tool_sets_and_forgets_a_fact(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    assert "green" in await note(api, "lamp", "green")
    fact = await get(api, "/facts/lamp")
    assert (fact["origin"], fact["sources"]) == ("tool", ["message:m2"])
    assert await shown(api) == ["lamp: green"]
    assert await call(api, "get_facts", {}) == "- lamp: green"
    clock.step(60)
    assert "forgotten" in await call(api, "forget_fact", {"key": "lamp"})
    assert await held(api) == {}
    assert await call(api, "get_facts", {}) == "There are no facts yet."
    assert [one["value"] for one in await history(api, "lamp")] == [None, "green"]


async def test_many_facts_are_read_page_by_page(api: httpx.AsyncClient) -> None:
    await begin(api)
    value = "A long description of the lamp. " * 46
    for number in range(25):
        await set_fact(api, f"lamp_{number:02}", value.strip())
    first = await call(api, "get_facts", {})
    assert count_tokens(first) <= MAX_PAGE_TOKENS
    *lines, note = first.splitlines()
    assert note == f"{25 - len(lines)} more. To read on, call `get_facts` with page 2."
    second = await call(api, "get_facts", {"page": 2})
    assert second.startswith(f"- lamp_{len(lines):02}: ")
    assert "There is no page 9" in await call(api, "get_facts", {"page": 9})


async def test_forgetting_an_unknown_fact_names_the_known(api: httpx.AsyncClient) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green")
    assert "The facts are: lamp." in await call(api, "forget_fact", {"key": "lantern"})


async def test_a_fact_of_tools_has_one_name(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for key, value in (("Favourite Colour", "green"), ("favourite_colour", "red"), ("user_birthday", "March 3")):
        clock.step(1)
        await note(api, key, value)
    assert await held(api) == {"favourite_colour": "red", "birthday": "March 3"}
    clock.step(1)
    assert "forgotten: birthday" in await call(api, "forget_fact", {"key": "User Birthday"})
    assert await held(api) == {"favourite_colour": "red"}


async def test_the_key_of_a_person_stays_as_sent(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await set_fact(api, "Favourite Colour", "green")
    await set_fact(api, "user_birthday", "March 3", under=USER)
    clock.step(1)
    await note(api, "favourite_colour", "red")
    await note(api, "birthday", "April 4")
    assert await held(api) == {"Favourite Colour": "red", "user_birthday": "April 4"}


async def test_wrong_arguments_are_explained(api: httpx.AsyncClient) -> None:
    await begin(api)
    for arguments in ({}, {"key": "lamp"}, {"key": "a/b", "value": "x"}, {"key": "lamp", "value": " "}):
        assert "set_fact" in await call(api, "set_fact", arguments, status=422)


TAKEN_BACK: dict[str, tuple[Act, Act]] = {
    "swipe": (lambda api: add_swipe(api, "m2", "No."), lambda api: select_swipe(api, "m2", 0)),
    "edit": (
        lambda api: edit(api, "m2", content="No."),
        lambda api: edit(api, "m2", content=said(2)["content"]),
    ),
    "hide": (lambda api: hide(api, (2, 2)), lambda api: hide(api, (2, 2), hidden=False)),
}


@pytest.mark.parametrize("scope", ["chat", "character", "user", "global"])
@pytest.mark.parametrize("way", TAKEN_BACK)
async def test_a_fact_leaves_and_returns_with_its_reply(api: httpx.AsyncClient, scope: str, way: str) -> None:
    take_back, bring_back = TAKEN_BACK[way]
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    elsewhere = {} if scope == "chat" else GREEN
    assert await held(api) == GREEN
    assert await held(api, under="/v1/chats/d") == elsewhere
    await take_back(api)
    assert await held(api) == {}
    assert await shown(api) == []
    assert await held(api, under="/v1/chats/d") == {}
    await bring_back(api)
    assert await held(api) == GREEN
    assert await shown(api) == ["lamp: green"]
    assert await held(api, under="/v1/chats/d") == elsewhere


async def test_a_wide_fact_is_seen_elsewhere(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    assert await shown(api, chat_id="d") == ["lamp: green"]
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await soft_delete(api, "m2")
    assert await shown(api, chat_id="d") == []
    changed = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert changed.status_code == 200


async def test_an_open_call_is_shown_with_its_reply(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await append(api, [said(1)])
    await note(api, "lamp", "green")
    assert await held(api) == {}
    await append(api, [said(2)])
    assert await held(api) == GREEN


async def test_a_discarded_call_leaves_nothing(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await append(api, [said(1)])
    await note(api, "lamp", "green")
    ok(await api.post(f"{CHAT}/tools/discard"), 200)
    await append(api, [said(2)])
    assert await held(api) == {}
    ok(await api.get(f"{USER}/facts/lamp/history"), 404)


async def test_a_retried_call_is_one_fact(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for _ in range(3):
        await note(api, "lamp", "green")
    assert len(await history(api, "lamp")) == 1


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_fact_before_a_checkpoint_survives_its_restore(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await restore(api, "before")
    assert await held(api) == GREEN
    assert await shown(api) == ["lamp: green"]


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_fact_after_a_checkpoint_is_undone_by_its_restore(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await note(api, "lamp", "green")
    line = (await get(api, ""))["line"]
    elsewhere = {} if scope == "chat" else GREEN
    assert await held(api, under="/v1/chats/d") == elsewhere
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await restore(api, "before")
    assert await held(api) == {}
    assert await held(api, under="/v1/chats/d") == {}
    assert await held(api, line=line) == GREEN, "the abandoned line still says so"
    if elsewhere:
        assert (await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})).status_code == 200
    await switch_to(api, line)
    assert await held(api) == GREEN
    assert await held(api, under="/v1/chats/d") == elsewhere


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_truncation_undoes_the_facts_of_its_messages(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    await append(api, talk(3, 4))
    await note(api, "lamp", "red")
    await cut_off(api, 3)
    assert await held(api) == GREEN
    assert [one["value"] for one in await history(api, "lamp")] == ["green"]


async def test_a_fork_has_only_the_facts_before_it(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await note(api, "lamp", "green")
    await fork(api, "before", at_seq=2)
    await fork(api, "after", at_seq=4)
    assert await held(api, under="/v1/chats/before") == {}
    assert await held(api, under="/v1/chats/after") == GREEN
    assert (await api.delete(CHAT)).status_code == 204
    assert await held(api, under="/v1/chats/after") == GREEN
    assert await shown(api, chat_id="after") == ["lamp: green"]


async def test_a_fact_of_two_chats_stays_until_both_are_erased(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await learn_wide(api, "d")
    for chat_id in ("c", "d"):
        ok(await api.post(f"/v1/chats/{chat_id}/messages", json={"messages": talk(1, 2)}), 201)
        await note(api, "lamp", "green", chat_id=chat_id)
    assert len(await history(api, "lamp", under=USER)) == 2
    assert (await api.delete("/v1/chats/d")).status_code == 204
    assert await held(api) == GREEN
    assert len(await history(api, "lamp", under=USER)) == 1
    assert (await api.delete(CHAT)).status_code == 204
    assert await held(api, under=USER) == {}


@pytest.mark.parametrize("user", ["rin", None])
@pytest.mark.parametrize("scope", ["user", "global"])
async def test_an_erased_chat_of_a_former_user_is_forgotten(
    api: httpx.AsyncClient, scope: str, user: str | None
) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await begin(api, "d")
    await note(api, "lamp", "green")
    assert await shown(api, chat_id="d") == ["lamp: green"]
    await put(api, user_id=user, status=200)
    assert (await api.delete(CHAT)).status_code == 204
    assert await held(api, under="/v1/chats/d") == {}
    assert await shown(api, chat_id="d") == []


async def test_a_later_value_of_another_chat_stays(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    await learn_wide(api, "d")
    for chat_id, value in (("c", "green"), ("d", "red")):
        ok(await api.post(f"/v1/chats/{chat_id}/messages", json={"messages": talk(1, 2)}), 201)
        clock.step(1)
        await note(api, "lamp", value, chat_id=chat_id)
    await soft_delete(api, "m2")
    assert await held(api) == {"lamp": "red"}
    ok(await api.post("/v1/chats/c/messages", json={"messages": talk(3, 4)}), 201)
    (await api.delete("/v1/chats/d/messages/m2")).raise_for_status()
    assert await held(api) == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "holds"),
    [("set_fact", {"key": "lamp", "value": "red"}, {"lamp": "red"}), ("forget_fact", {"key": "lamp"}, {})],
)
async def test_a_tool_writes_after_another_chat_of_the_user(
    api: httpx.AsyncClient, database_url: str, tenant: str, tool: str, arguments: Json, holds: dict[str, str]
) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    await set_fact(api, "lamp", "green", under=USER)
    writing = WRITE_MEANWHILE.format(owner=user_key(tenant, "mira"), content="blue")
    async with holding(database_url, writing) as holder:
        calling = asyncio.create_task(call(api, tool, arguments))
        await until_waited_for(holder)
    await calling
    assert await held(api, under=USER) == holds


async def test_facts_follow_their_messages_in_a_reimport(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    messages = talk(1, 4)
    await append(api, messages)
    await note(api, "lamp", "green")
    moved = [messages[0], said(9, id="new", content="In between."), *messages[1:]]
    answer = ok(await api.put(f"{CHAT}/messages", json={"messages": moved}), 200)
    assert answer["line"] is not None
    assert await held(api) == GREEN
    assert (await get(api, "/facts/lamp"))["sources"] == ["message:m4"]
    await edit(api, "m4", content="No.")
    assert await held(api) == {}


async def test_a_context_before_a_reply_omits_the_replys_fact(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    await append(api, talk(3, 4))
    await note(api, "lamp", "red")
    assert await shown(api) == ["lamp: red"]
    assert await shown(api, before="m4") == ["lamp: green"]
    assert await shown(api, before="m2") == []


async def test_a_tool_replaces_a_nearer_value_where_it_is(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    await set_fact(api, "lamp", "green")
    clock.step(1)
    await note(api, "lamp", "red")
    assert await held(api) == {"lamp": "red"}
    assert await held(api, under=USER) == {}


async def test_a_tool_sets_what_was_deleted_in_the_chat(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    await set_fact(api, "lamp", "green")
    await delete_fact(api, "lamp")
    clock.step(1)
    await note(api, "lamp", "red")
    assert await held(api) == {"lamp": "red"}


async def test_a_person_decides_over_a_tool(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    clock.step(1)
    fact = await set_fact(api, "lamp", "green", status=200)
    assert (fact["origin"], fact["edited"]) == ("person", True)
    await soft_delete(api, "m2")
    assert await held(api) == GREEN


async def test_a_value_set_again_wins_over_an_earlier_tool_value(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green")
    await append(api, talk(1, 2))
    clock.step(1)
    await note(api, "lamp", "red")
    await add_swipe(api, "m2", "The lamp has always been green.")
    clock.step(1)
    await set_fact(api, "lamp", "green", status=200)
    await select_swipe(api, "m2", 0)
    assert await held(api) == GREEN
    assert [value["value"] for value in await history(api, "lamp")] == ["green", "red", "green"]


async def test_without_a_user_a_tool_writes_for_the_chat(api: httpx.AsyncClient) -> None:
    await put(api, settings={"memories": {"learn_scope": "global"}})
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    assert (await get(api, "/facts/lamp"))["scope"] == "chat"
    assert await held(api, under="/v1") == {}


async def test_a_deleted_fact_is_not_noted_again_by_a_retry(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    noted = await note(api, "lamp", "green")
    assert noted.startswith("It is noted: lamp is “green”.")
    assert await note(api, "lamp", "green") == noted
    await delete_fact(api, "lamp")
    answer = await note(api, "lamp", "green")
    assert answer.startswith("The user has deleted the fact lamp since it was noted, so it is not noted again.")
    assert await held(api) == {}


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_retry_names_the_value_that_a_person_set(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    await set_fact(api, "lamp", "red", status=200 if scope == "chat" else 201)
    answer = await note(api, "lamp", "green")
    assert answer.startswith("This call was made before, so it changes nothing: since then, lamp is “red”.")
    assert await held(api) == {"lamp": "red"}
    await set_fact(api, "lamp", "green", status=200)
    assert (await note(api, "lamp", "green")).startswith("It is noted: lamp is “green”.")


@pytest.mark.parametrize("messages", [1, 2])
async def test_a_retry_says_that_a_later_call_changed_the_fact(api: httpx.AsyncClient, messages: int) -> None:
    await begin(api)
    await append(api, talk(1, messages))
    noted = await note(api, "lamp", "green")
    assert await note(api, "lamp", "green") == noted
    await note(api, "lamp", "red")
    answer = await note(api, "lamp", "green")
    changed = "a later call has changed lamp" if messages == 1 else "since then, lamp is “red”"
    assert answer.startswith(f"This call was made before, so it changes nothing: {changed}. To note something else")


async def test_a_retry_ignores_an_open_call_of_another_chat(api: httpx.AsyncClient) -> None:
    for chat_id in ("c", "d"):
        await learn_wide(api, chat_id)
        await append(api, talk(1, 1), chat_id)
    noted = await note(api, "lamp", "green")
    await note(api, "lamp", "red", chat_id="d")
    assert await note(api, "lamp", "green") == noted


async def test_forgetting_again_ignores_an_open_call_of_another_chat(api: httpx.AsyncClient) -> None:
    await set_fact(api, "lamp", "green", under=USER)
    for chat_id in ("c", "d"):
        await learn_wide(api, chat_id)
        await append(api, talk(1, 1), chat_id)
    forgotten = await call(api, "forget_fact", {"key": "lamp"})
    await note(api, "lamp", "red", chat_id="d")
    assert await call(api, "forget_fact", {"key": "lamp"}) == forgotten


@pytest.mark.parametrize("older", [False, True])
async def test_a_retry_for_a_hidden_reply_answers_the_same(api: httpx.AsyncClient, older: bool) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    if older:
        await set_fact(api, "lamp", "green")
    await hide(api, (2, 2))
    noted = await note(api, "lamp", "red", message_id="m2")
    assert noted.startswith("It is noted: lamp is “red”.")
    assert await note(api, "lamp", "red", message_id="m2") == noted
    assert await held(api) == (GREEN if older else {})
    await hide(api, (2, 2), hidden=False)
    assert await held(api) == {"lamp": "red"}


async def test_forgetting_again_names_what_a_later_call_noted(api: httpx.AsyncClient) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green")
    await append(api, talk(1, 1))
    await call(api, "forget_fact", {"key": "lamp"})
    await note(api, "lamp", "red")
    assert "since then, lamp is “red”." in await call(api, "forget_fact", {"key": "lamp"})


async def test_forgetting_again_for_a_hidden_reply(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await set_fact(api, "lamp", "green")
    await hide(api, (2, 2))
    forgotten = await call(api, "forget_fact", {"key": "lamp"}, message_id="m2")
    assert forgotten.startswith("It is forgotten: lamp.")
    assert await call(api, "forget_fact", {"key": "lamp"}, message_id="m2") == forgotten
    assert await held(api) == GREEN


async def test_a_retry_for_a_hidden_reply_names_a_newer_value(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await hide(api, (2, 2))
    await note(api, "lamp", "red", message_id="m2")
    await set_fact(api, "lamp", "green")
    assert "since then, lamp is “green”" in await note(api, "lamp", "red", message_id="m2")
    await delete_fact(api, "lamp")
    assert (await note(api, "lamp", "red", message_id="m2")).startswith("The user has deleted the fact lamp")


async def test_a_retry_says_that_the_fact_was_forgotten(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    await call(api, "forget_fact", {"key": "lamp"})
    assert (await note(api, "lamp", "green")).startswith("The fact lamp was forgotten since it was noted")


@pytest.mark.parametrize("messages", [1, 2])
async def test_a_retry_of_forgetting_names_a_newer_value(api: httpx.AsyncClient, messages: int) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green")
    await append(api, talk(1, messages))
    assert "It is forgotten: lamp." in await call(api, "forget_fact", {"key": "lamp"})
    if messages == 1:  # the call waits for its reply
        assert "It is forgotten: lamp." in await call(api, "forget_fact", {"key": "lamp"})
    await set_fact(api, "lamp", "red", status=201 if messages == 2 else 200)
    answer = await call(api, "forget_fact", {"key": "lamp"})
    assert "This call was made before, so it changes nothing: since then, lamp is “red”." in answer
    assert await held(api) == {"lamp": "red"}
