"""What a tool wrote is shown and hidden with its reply, also after discarded generations and re-imports."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.diary.diaries import KAI, MIRA, change, contents, discard, entries, keep_diary, prompt, save, write
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.statements import watched
from tests.talk import (
    CALL,
    Json,
    add_swipe,
    append,
    context,
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
    walk,
)

ENGAGED = "We are engaged."


async def drop(api: httpx.AsyncClient, **query: Any) -> int:
    """Discard the generation; for how many calls."""
    count: int = ok(await api.post("/v1/chats/c/tools/discard", params=query), 200)["discarded"]
    return count


async def calls(api: httpx.AsyncClient, **query: Any) -> list[Json]:
    """The calls that wrote something."""
    pages = await walk(api, "/v1/chats/c/tools/calls", **query)
    return [item for page in pages for item in page if item["status"] not in (None, "dropped")]


async def keep(api: httpx.AsyncClient, entry_id: str, kept: bool | None, status: int = 200) -> Json:
    """Keep an entry whatever becomes of its reply, or no longer."""
    return ok(await api.patch(f"/v1/chats/c/diary/{entry_id}", json={"kept": kept}), status)


async def engage(api: httpx.AsyncClient) -> Json:
    """A reply that says yes, and the entry that it wrote."""
    await keep_diary(api)
    await append(api, [said(1), said(2, content="Yes!")])
    await save(api, ENGAGED)
    (entry,) = await entries(api)
    return entry


async def leave_by_swipe(api: httpx.AsyncClient) -> None:
    await add_swipe(api, "m2", "No.")


async def come_back_by_swipe(api: httpx.AsyncClient) -> None:
    await select_swipe(api, "m2", 0)


async def leave_by_edit(api: httpx.AsyncClient) -> None:
    await edit(api, "m2", content="No.")


async def come_back_by_edit(api: httpx.AsyncClient) -> None:
    await edit(api, "m2", content="Yes!")


async def leave_by_delete(api: httpx.AsyncClient) -> None:
    await soft_delete(api, "m2")


async def come_back_by_import(api: httpx.AsyncClient) -> None:
    wanted = [said(1), said(2, content="Yes!")]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)


async def leave_by_hiding(api: httpx.AsyncClient) -> None:
    await hide(api, (2, 2))


async def come_back_by_showing(api: httpx.AsyncClient) -> None:
    await hide(api, (2, 2), hidden=False)


Ways = tuple[Callable[[httpx.AsyncClient], Awaitable[None]], Callable[[httpx.AsyncClient], Awaitable[None]]]
WAYS: list[Ways] = [
    (leave_by_swipe, come_back_by_swipe),
    (leave_by_edit, come_back_by_edit),
    (leave_by_delete, come_back_by_import),
    (leave_by_hiding, come_back_by_showing),
]


@pytest.mark.parametrize("ways", WAYS)
async def test_an_entry_leaves_and_returns_with_its_reply(api: httpx.AsyncClient, ways: Ways) -> None:
    leave, come_back = ways
    entry = await engage(api)
    assert (entry["at_seq"], entry["message_id"], entry["kept"], entry["in_prompt"]) == (2, "m2", False, True)
    await leave(api)
    assert ENGAGED not in (await context(api, format="text"))["text"]
    assert ENGAGED not in str(await get(api, "/state"))
    assert await entries(api) == [entry | {"in_prompt": False}]
    assert [call["status"] for call in await calls(api)] == ["hidden"]
    await come_back(api)
    assert ENGAGED in await prompt(api)
    assert ENGAGED in str(await get(api, "/state"))
    assert await entries(api) == [entry]
    assert [call["status"] for call in await calls(api)] == ["shown"]


async def test_an_entry_is_open_until_its_reply_arrives(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    (entry,) = await entries(api)
    assert (entry["in_prompt"], entry["message_id"], entry["at_seq"]) == (False, None, 1)
    assert await prompt(api) == ""
    assert ENGAGED not in str(await get(api, "/state"))
    await append(api, [said(2, sent_at="2024-02-02T10:00:00Z")])
    (entry,) = await entries(api)
    assert (entry["in_prompt"], entry["message_id"], entry["at_seq"]) == (True, "m2", 2)
    assert "## 02/02 — memo entry\nWe are engaged." in await prompt(api)


async def test_a_call_in_a_chain_belongs_to_the_reply_that_ends_it(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1), said(2, tool_calls=[CALL])])
    await save(api, "Before the result.")
    await append(api, [said(3, role="tool", tool_call_id="call-1")])
    await save(api, "After the result.")
    await append(api, [said(4, content="", tool_calls=[CALL | {"id": "call-2"}])])
    await append(api, [said(5, role="tool", tool_call_id="call-2")])
    assert await prompt(api) == ""
    await append(api, [said(6)])
    assert [(entry["message_id"], entry["in_prompt"]) for entry in await entries(api)] == [("m6", True)] * 2
    await add_swipe(api, "m6", "No.")
    assert await prompt(api) == ""


@pytest.mark.parametrize("character", [None, "Kai"])
async def test_a_discarded_generation_leaves_nothing(api: httpx.AsyncClient, character: str | None) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    query = {} if character is None else {"character": character}
    refused = ok(await api.post("/v1/chats/c/tools/discard", params={"character": "Mira"}), 422)
    assert refused["errors"] == (await save(api, status=422, character="Mira"))["errors"]
    assert await drop(api, **query) == 1
    assert await drop(api, **query) == 0
    assert (await entries(api), await calls(api)) == ([], [])
    await save(api, ENGAGED)  # of the next generation, so it is no retry
    await append(api, [said(2)])
    assert await contents(api) == [ENGAGED]
    assert ENGAGED in await prompt(api)


async def test_the_users_next_message_drops_an_open_call(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    await append(api, [said(3), said(4)])
    assert (await entries(api), await calls(api)) == ([], [])


async def test_a_call_can_name_a_message_that_is_to_come(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await save(api, ENGAGED, message_id="m4")
    assert [(call["status"], call["message_id"]) for call in await calls(api)] == [("open", "m4")]
    await append(api, [said(3)])
    await append(api, [said(4)])
    assert [(entry["message_id"], entry["at_seq"]) for entry in await entries(api)] == [("m4", 4)]
    await save(api, "An older one.", message_id="m2")
    assert [(entry["message_id"], entry["at_seq"]) for entry in await entries(api)] == [("m2", 2), ("m4", 4)]
    assert (await prompt(api)).count("memo entry") == 2


async def test_a_call_can_belong_to_the_next_alternative(api: httpx.AsyncClient) -> None:
    await engage(api)
    for content in ("No.", "Never."):
        await save(api, f"I said {content}", message_id="m2", swipe="next")
        assert content not in await prompt(api)
        await add_swipe(api, "m2", content)
        shown = await prompt(api)
        assert (f"I said {content}" in shown, shown.count("memo entry")) == (True, 1)
    for index, content in enumerate([ENGAGED, "I said No.", "I said Never."]):
        await select_swipe(api, "m2", index)
        assert content in await prompt(api)


async def test_the_same_text_is_a_new_entry_for_each_swipe(api: httpx.AsyncClient) -> None:
    await engage(api)
    for index in (1, 2):
        await save(api, ENGAGED, swipe="next")
        await save(api, ENGAGED, swipe="next")
        assert len(await entries(api)) == index + 1
        await add_swipe(api, "m2", "Yes!" if index == 1 else "Yes, of course!")
    assert (await prompt(api)).count(ENGAGED) == 1
    await select_swipe(api, "m2", 0)
    assert (await prompt(api)).count(ENGAGED) == 2  # two alternatives have this text


async def test_the_same_text_is_a_new_entry_after_a_deleted_reply(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    await append(api, [said(2)])
    await soft_delete(api, "m2")
    await save(api, ENGAGED)
    await append(api, [said(4)])
    assert [(entry["message_id"], entry["in_prompt"]) for entry in await entries(api)] == [("m2", False), ("m4", True)]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"message_id": "m1"}, "must be the id of an assistant message"),
        ({"message_id": "m4"}, "is the id of a deleted message"),
        ({"message_id": "m9", "swipe": "next"}, "must be the id of an existing message"),
        ({"swipe": "next"}, "is required with swipe=next"),
    ],
)
async def test_a_target_that_cannot_be_a_reply_is_refused(
    api: httpx.AsyncClient, query: dict[str, str], wrong: str
) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await soft_delete(api, "m4")
    refused = await save(api, status=422, **query)
    assert refused["errors"][0]["loc"] == ["query", "message_id"]
    assert wrong in refused["detail"]
    assert await calls(api) == []
    bad = await save(api, status=422, swipe="last")
    assert bad["errors"][0]["loc"] == ["query", "swipe"]


async def test_a_person_can_keep_an_entry_without_its_reply(api: httpx.AsyncClient) -> None:
    entry = await engage(api)
    await leave_by_swipe(api)
    kept = await keep(api, entry["id"], True)
    assert kept == entry | {"kept": True}
    assert ENGAGED in await prompt(api)
    assert await keep(api, entry["id"], None) == entry | {"in_prompt": False}
    assert await prompt(api) == ""
    await come_back_by_swipe(api)
    await keep(api, entry["id"], True)
    await soft_delete(api, "m2")
    assert ENGAGED in await prompt(api)
    await cut_off(api, 2)
    assert [(one["at_seq"], one["in_prompt"]) for one in await entries(api)] == [(1, True)]
    assert "no longer on this line" in (await keep(api, entry["id"], False, 409))["detail"]
    assert ENGAGED in await prompt(api)


async def test_an_entry_that_a_person_edits_is_the_persons(api: httpx.AsyncClient) -> None:
    entry = await engage(api)
    await leave_by_delete(api)
    await change(api, entry["id"], "We are not.")
    assert "We are not." in await prompt(api)
    await keep(api, entry["id"], False)
    assert "We are not." in await prompt(api)


async def test_discarding_open_calls_keeps_edited_and_kept_entries(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    for content in ("One.", "Two.", "Three."):
        await save(api, content)
    first, second, _ = await entries(api)
    await change(api, first["id"], "Mine.")
    await keep(api, second["id"], True)
    assert await drop(api) == 3
    assert await contents(api) == ["Mine.", "Two."]
    assert (await prompt(api)).count("memo entry") == 2


async def test_an_entry_that_is_kept_still_follows_its_reply(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    (entry,) = await entries(api)
    await keep(api, entry["id"], True)
    await append(api, [said(2, sent_at="2024-02-02T10:00:00Z")])
    (entry,) = await entries(api)
    assert (entry["message_id"], entry["at_seq"], entry["in_prompt"]) == ("m2", 2, True)
    assert "## 02/02 — memo entry\nWe are engaged." in await prompt(api)
    assert await keep(api, entry["id"], False) == entry | {"kept": False}
    await cut_off(api, 2)
    assert (await entries(api), await prompt(api)) == ([], "")


async def test_a_kept_entry_leaves_its_fold_when_its_reply_comes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = echo
    await keep_diary(api, lines=6)
    await append(api, [said(1)])
    await save(api, "I heard w1w.")
    await keep(api, (await entries(api))[0]["id"], True)
    for n in range(2, 6):
        await write(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    assert "w1w" in (await get(api, "/diary/folded"))["text"]
    await append(api, [said(2)])
    await settle(dispatcher, clock)
    folded = (await get(api, "/diary/folded"))["text"]
    assert ("w1w" in folded, "w2w" in folded) == (False, True)
    assert (await prompt(api)).count("w1w") == 1


async def test_a_kept_entry_whose_reply_never_came_stays_kept(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    (entry,) = await entries(api)
    await keep(api, entry["id"], True)
    await append(api, [said(3)])
    assert "the reply never came" in (await keep(api, entry["id"], False, 409))["detail"]
    assert await entries(api) == [entry | {"kept": True, "in_prompt": True}]
    await discard(api, entry["id"])
    assert await prompt(api) == ""


async def test_only_what_a_tool_wrote_can_be_kept(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await append(api, talk(1, 2))
    model.script("I wrote this for him.")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert "Only an entry that a tool wrote" in (await keep(api, entry["id"], True, 409))["detail"]
    ok(await api.patch(f"/v1/chats/c/diary/{entry['id']}", json={}), 422)


async def test_a_fold_of_a_hidden_entry_is_stale_with_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = echo
    await keep_diary(api, lines=6)
    await append(api, talk(1, 2))
    await save(api, "I heard w1w.")
    for n in range(2, 6):
        await write(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    assert "w1w" in (await get(api, "/diary/folded"))["text"]
    await add_swipe(api, "m2", "No.")
    assert "w1w" not in (await get(api, "/diary/folded"))["text"]
    assert "w1w" not in (await context(api, format="text"))["text"]
    await settle(dispatcher, clock)
    folded = (await get(api, "/diary/folded"))["text"]
    assert ("w1w" in folded, "w2w" in folded) == (False, True)
    await select_swipe(api, "m2", 0)
    await settle(dispatcher, clock)
    assert "w1w" in (await get(api, "/diary/folded"))["text"]


async def test_another_characters_reply_binds_no_open_call(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await append(api, [said(1)])
    await save(api, "Mira's.", character="Mira")
    await append(api, [said(2, name="Kai")])
    assert await prompt(api, character="Mira") == ""
    await append(api, [said(4, name="Mira")])
    assert "Mira's." in await prompt(api, character="Mira")


async def test_bindings_follow_messages_to_a_new_line(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    for n in (2, 4, 6):
        await append(api, talk(n - 1, n))
        await save(api, f"At {n}.")
    await add_swipe(api, "m4", "No.")
    await append(api, [said(7)])
    await save(api, "At 8.")
    before = await entries(api)
    line = (await get(api, ""))["line"]
    wanted = [*talk(1, 3), said(4, content="No."), said(3, id="between"), said(5), said(7), said(8)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert [(one["content"], one["message_id"], one["at_seq"], one["in_prompt"]) for one in await entries(api)] == [
        ("At 2.", "m2", 2, True),
        ("At 4.", "m4", 4, False),
        ("At 8.", "m8", 8, True),
    ]
    await select_swipe(api, "m4", 0)
    assert "At 4." in await prompt(api)
    assert await contents(api, line=line) == [one["content"] for one in before]


async def test_a_moved_reply_takes_its_entry_along(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await save(api, "At 4.")
    wanted = [said(1), said(3), said(2), said(4, content="Another text.")]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert [(one["at_seq"], one["in_prompt"]) for one in await entries(api)] == [(4, False)]
    await edit(api, "m4", content=said(4)["content"])
    assert "At 4." in await prompt(api)


async def test_forks_and_checkpoints_have_the_bindings(api: httpx.AsyncClient) -> None:
    await engage(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "yes"}), 201)
    await leave_by_swipe(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 2}), 201)
    ok(await api.put("/v1/chats/d/messages/m2/swipes/selected", json={"index": 0}), 200)
    assert ENGAGED in str(ok(await api.get("/v1/chats/d/context"), 200)["segments"])
    assert await prompt(api) == ""
    ok(await api.post("/v1/chats/c/checkpoints/yes/restore"), 201)
    assert ENGAGED in await prompt(api)
    await leave_by_swipe(api)
    assert await prompt(api) == ""


async def test_calls_are_listed_in_pages_and_by_line(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    for content in ("One.", "Two.", "Three."):
        await save(api, content)
    listed = await calls(api, limit=2)
    assert [call["id"] for call in listed] == [entry["id"] for entry in await entries(api)]
    assert {(call["tool"], call["character"], call["at_seq"]) for call in listed} == {("save_memory", "Kai", 2)}
    line = (await get(api, ""))["line"]
    assert await calls(api, line=line) == listed
    await get(api, "/tools/calls", 422, cursor="rubbish")


async def test_an_append_without_open_calls_reads_no_binding(app: FastAPI, api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    async with watched(app.state.database) as before:
        await append(api, talk(3, 4))
    await save(api)
    async with watched(app.state.database) as after:
        await append(api, talk(5, 6))
    assert len(after.asked) == len(before.asked) > 0


async def test_an_append_to_another_chat_leaves_an_open_call_open(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await put(api, "d")
    await append(api, [said(1)])
    await save(api, ENGAGED)
    await append(api, talk(1, 2), "d")
    assert [entry["message_id"] for entry in await entries(api)] == [None]


async def test_a_characters_own_entry_restarts_the_turn_count(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, auto_write_turns=2)
    model.otherwise = "I wrote this for him."
    await append(api, talk(1, 3))
    await save(api, ENGAGED)
    await append(api, talk(4, 6))
    await settle(dispatcher, clock)
    assert await contents(api) == [ENGAGED]
    await append(api, talk(7, 8))
    await settle(dispatcher, clock)
    assert await contents(api) == [ENGAGED, "I wrote this for him."]


async def test_a_deleted_open_entry_does_not_return(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1)])
    await save(api, ENGAGED)
    await discard(api, (await entries(api))[0]["id"])
    await append(api, [said(2)])
    assert (await entries(api), await prompt(api)) == ([], "")
