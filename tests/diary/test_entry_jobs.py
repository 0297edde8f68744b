"""Entries that the service writes for a character that does not: in its voice, about its turns, true to them."""

import asyncio
import json
import re
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from app.diary.bound import REPLY_WAIT_S
from app.diary.entry_job import MAX_FAILED
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.work_queue import RETRY_DELAYS_S
from app.registry import LAYERS
from tests.background import settle
from tests.book import due_rows
from tests.diary.diaries import KAI, MIRA, change, contents, cut_often, discard, entries, keep_diary, prompt, save
from tests.scripted_model import Request, ScriptedModel, refuses
from tests.talk import CALL, Json, append, cut_off, edit, get, hide, ok, put, said, soft_delete, talk

WRITTEN = "The girl asked about the lamps again. I told her two of their names, which I tell nobody."


def about(request: Request) -> list[str]:
    """The messages that a request for an entry quotes."""
    text = str(request["messages"][-1]["content"]).partition("<messages>")[2]
    return [json.loads(quoted) for quoted in re.findall(r'"message": ("(?:[^"\\]|\\.)*")', text)]


async def turns(api: httpx.AsyncClient, first: int, last: int) -> None:
    """Turns of two messages each, one append each."""
    for n in range(first, last + 1):
        await append(api, talk(2 * n - 1, 2 * n))


async def test_the_service_writes_an_entry_after_so_many_turns(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, talk(1, 3))
    assert await due_rows(database, tenant) == []
    await append(api, talk(4, 4))
    (row,) = await due_rows(database, tenant)
    assert (row["layer"], row["key"], row["at_seq"]) == ("diary", "write:1:Kai", 1)
    model.script(WRITTEN)
    assert await settle(dispatcher, clock) == 1
    (entry,) = await entries(api)
    assert (entry["character"], entry["content"], entry["origin"]) == ("Kai", WRITTEN, "model")
    assert (entry["first_seq"], entry["last_seq"], entry["at_seq"], entry["stale"]) == (1, 4, 4, False)
    assert (entry["model"], entry["prompt_version"]) == ("scripted-1", "diary_entry/2")
    assert await prompt(api) == f"## Diary\n\n## 04/01 — memo entry\n{WRITTEN}"
    (request,) = model.requests
    text = str(request["messages"][-1]["content"])
    assert about(request) == [one["content"] for one in talk(1, 4)]
    assert KAI["persona"] in text
    assert '"Kai"' in text
    assert "2026-04-01 12:00" in text
    assert await due_rows(database, tenant) == []


async def test_a_character_rereads_its_last_entries_before_it_writes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    for n in range(1, 8):
        await turns(api, n, n)
        model.script(f"Entry {n}.")
        await settle(dispatcher, clock)
    reread = re.findall(r'"entry": "(Entry \d)\."', json.dumps(model.requests[-1]).replace('\\"', '"'))
    assert reread == ["Entry 2", "Entry 3", "Entry 4", "Entry 5", "Entry 6"]
    assert await contents(api) == [f"Entry {n}." for n in range(1, 8)]


async def test_a_character_knows_the_name_of_its_user(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, [said(1, name="A stranger"), said(2), said(3, name="Tomo"), said(4)])
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    assert 'You talk with the user, whose name is "Tomo".' in str(model.requests[-1]["messages"][-1]["content"])


async def test_a_dialogue_is_no_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, [said(1, name="Tomo"), said(2), said(3, name="Tomo"), said(4)])
    model.script("Tomo: Easy now.\nKai: I am being easy.\nTomo: Good.", WRITTEN)
    await settle(dispatcher, clock)
    assert await contents(api) == [WRITTEN]
    assert "look like those of a dialogue" in str(model.requests[-1]["messages"][-1]["content"])


@pytest.mark.parametrize(
    ("speakers", "writer"), [(("Juno", "Juno"), "Juno"), ((None, None), "Character"), (("Juno", "Vale"), "Character")]
)
async def test_a_character_not_in_the_chat_writes_by_its_message_name(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    speakers: tuple[str | None, str | None],
    writer: str,
) -> None:
    await put(api, settings={"memos": {"enabled": False}, "diary": {"enabled": True, "auto_write_turns": 2}})
    await append(api, [said(1), said(2, name=speakers[0]), said(3), said(4, name=speakers[1])])
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    (request,) = model.requests
    assert f'"{writer}"' in str(request["messages"][-1]["content"]).partition("<messages>")[0]
    assert await contents(api) == [WRITTEN]


async def test_an_import_is_written_about_period_by_period(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=3)
    await append(api, talk(1, 21))
    model.otherwise = lambda request: f"From {about(request)[0].split()[-1]}"
    assert await settle(dispatcher, clock) == 3
    assert [(entry["first_seq"], entry["last_seq"]) for entry in await entries(api)] == [(1, 6), (7, 12), (13, 18)]
    assert await contents(api) == ["From 1.", "From 7.", "From 13."]


async def test_an_answer_of_nothing_writes_no_entry(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script("NONE")
    await settle(dispatcher, clock)
    assert await entries(api) == []
    assert await due_rows(database, tenant) == []


async def test_without_a_model_no_entry_is_generated(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 3)
    assert await settle(quoting_dispatcher, clock) == 3
    assert await entries(api) == []
    assert await due_rows(database, tenant) == []
    assert await prompt(api) == ""


async def test_turns_are_counted_from_a_characters_own_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    model.otherwise = WRITTEN
    await turns(api, 1, 1)
    await save(api, "By myself.")
    await turns(api, 2, 2)
    assert await settle(dispatcher, clock) == 0
    await turns(api, 3, 3)
    await settle(dispatcher, clock)
    assert [(entry["content"], entry["first_seq"]) for entry in await entries(api)] == [
        ("By myself.", None),
        (WRITTEN, 3),
    ]


@pytest.mark.parametrize("asked", [False, True])
async def test_a_character_that_wrote_itself_gets_no_generated_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, asked: bool
) -> None:
    await keep_diary(api, KAI, MIRA, auto_write_turns=1)
    model.otherwise = WRITTEN
    call = [{"id": "call-1", "type": "function", "function": {"name": "save_memory", "arguments": "{}"}}]
    await append(api, [said(1), said(2, name="Mira"), said(3, name="Kai", content="", tool_calls=call)])
    await append(api, [said(4, role="user"), said(5, role="assistant", name="Kai", content="Hm.", tool_calls=call)])
    gate = model.hold() if asked else None
    clock.step(2)
    draining = asyncio.create_task(dispatcher.drain()) if asked else None
    if gate and draining:
        await gate.reached(2)
    await save(api, "By myself.", character="Kai")
    if gate and draining:
        gate.release()
        await draining
    await settle(dispatcher, clock)
    assert [(entry["character"], entry["origin"]) for entry in await entries(api)] == [
        ("Mira", "model"),
        ("Kai", "tool"),
    ]


@pytest.mark.parametrize(
    ("then", "wait_s", "writer"),
    [
        ([said(3)], 2, "model"),
        ([said(3, role="tool", tool_call_id="call-1"), said(4)], REPLY_WAIT_S, "tool"),
        ([], REPLY_WAIT_S, "model"),
    ],
)
async def test_the_services_entry_waits_for_the_reply_of_a_call(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    then: list[Json],
    wait_s: float,
    writer: str,
) -> None:
    await keep_diary(api, auto_write_turns=1)
    model.otherwise = WRITTEN
    await append(api, [said(1), said(2, tool_calls=[CALL])])
    await save(api, "By myself.")
    assert await settle(dispatcher, clock) == 0
    if then:
        await append(api, then)
    await settle(dispatcher, clock, wait_s)
    assert [(entry["origin"], entry["last_seq"]) for entry in await entries(api) if entry["in_prompt"]] == [
        (writer, 2 if writer == "model" else None)
    ]
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_only_characters_that_spoke_and_did_not_write_get_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    ines, off = {"name": "Ines"}, {"name": "Off", "disabled": True}
    await keep_diary(api, KAI, MIRA, ines, off, auto_write_turns=4)
    model.otherwise = WRITTEN
    await append(api, [said(1), said(2, name="Kai"), said(3), said(4, name="Mira"), said(5), said(6, name="Off")])
    await save(api, "By myself.", character="Mira")
    await append(api, [said(7), said(8, name="Kai")])
    await settle(dispatcher, clock)
    assert [(entry["character"], entry["origin"]) for entry in await entries(api)] == [
        ("Mira", "tool"),
        ("Kai", "model"),
    ]


async def test_the_only_enabled_character_writes_of_nameless_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, KAI, {"name": "Off", "disabled": True}, auto_write_turns=2)
    model.script(WRITTEN)
    await turns(api, 1, 2)
    await settle(dispatcher, clock)
    assert [(entry["character"], entry["content"]) for entry in await entries(api)] == [("Kai", WRITTEN)]
    assert '"speaker": "Kai"' in str(model.requests[-1]["messages"][-1]["content"])


@pytest.mark.parametrize("silent", [{"enabled": False}, {"auto_write_turns": None}])
async def test_a_disabled_diary_gets_no_generated_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, silent: dict[str, Any]
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await put(api, settings={"diary": silent}, status=200)
    await turns(api, 1, 2)
    assert await settle(dispatcher, clock) == 0
    await put(api, settings={"diary": {"enabled": True, "auto_write_turns": 1}}, status=200)
    await turns(api, 3, 3)
    await settle(dispatcher, clock)
    assert [entry["first_seq"] for entry in await entries(api)] == [5]


async def test_a_period_without_the_characters_messages_has_no_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    await edit(api, "m2", excluded=True)
    await settle(dispatcher, clock)
    assert model.calls == []
    assert await entries(api) == []


# --- their order ---


def reread(request: Request) -> list[str]:
    """The first messages of the entries that a request for a new one has the character reread."""
    text = str(request["messages"][-1]["content"]).partition("<entries>")[2].partition("</entries>")[0]
    return re.findall(r"From \d+\.", text)


def from_first(request: Request) -> str:
    """Return an entry or a fold that names the first message of each period it covers."""
    text = str(request["messages"][-1]["content"])
    if "older part of your diary anew" in text:
        return " ".join(re.findall(r"From \d+\.", text))
    return f"From {about(request)[0].split()[-1]}"


async def test_entries_made_backwards_are_reread_in_story_order(
    api: httpx.AsyncClient, database: Database, model: ScriptedModel, clock: SteppedClock, nothing_due: None
) -> None:
    await keep_diary(api, auto_write_turns=3, lines=40)
    await cut_often(api)
    await append(api, talk(1, 61))
    model.otherwise = from_first
    async with aclosing(ModelClient(model.base_url, "scripted", concurrency=1, max_attempts=1)) as client:
        await settle(Dispatcher(JobContext(database, clock, client), LAYERS, slots=1, poll_s=30), clock)
    story = [f"From {first}." for first in range(1, 61, 6)]
    assert from_first(model.requests[0]) != story[0]
    assert await contents(api) == story
    await append(api, [said(63)])
    assert re.findall(r"From \d+\.", await prompt(api)) == story
    for request in model.requests:
        own = story.index(from_first(request))
        assert set(reread(request)) <= set(story[:own])


async def test_a_concurrent_tool_entry_follows_that_of_earlier_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await turns(api, 1, 2)
    model.script(WRITTEN)
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await append(api, talk(5, 6))
    await save(api, "By myself.")
    gate.release()
    await draining
    assert await contents(api) == [WRITTEN, "By myself."]
    shown = await prompt(api)
    assert shown.index(WRITTEN) < shown.index("By myself.")


async def test_a_retried_entry_precedes_those_of_later_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script(refuses(503), refuses(503), refuses(503))
    for wait_s in (2, 1, 10):
        clock.step(wait_s)
        await dispatcher.drain()
    model.otherwise = from_first
    await turns(api, 2, 2)
    await settle(dispatcher, clock)
    clock.step(60)
    await dispatcher.drain()
    assert await contents(api) == ["From 1.", "From 3."]
    assert re.findall(r"From \d+\.", await prompt(api)) == ["From 1.", "From 3."]


async def test_folded_entries_of_an_import_are_older_than_shown_ones(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2, lines=12)
    await cut_often(api)
    await append(api, talk(1, 60))
    model.otherwise = from_first
    for _ in range(4):
        await settle(dispatcher, clock)
    await append(api, [said(61)])
    found = await entries(api)
    shown = [entry["first_seq"] for entry in found if entry["in_prompt"]]
    folded = [entry["first_seq"] for entry in found if not entry["in_prompt"]]
    assert len(shown) + len(folded) == 15
    assert min(shown) > max(folded)
    assert re.findall(r"From \d+\.", await prompt(api)) == await contents(api)


# --- messages that change ---


async def written(api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock) -> str:
    """The id of an entry that the service has written about the messages 1 to 4."""
    await keep_diary(api, auto_write_turns=2)
    await turns(api, 1, 2)
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    return str(entry["id"])


async def test_a_stale_entry_is_hidden_and_rewritten(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    entry_id = await written(api, dispatcher, model, clock)
    await edit(api, "m3", content="I never asked.")
    (entry,) = await entries(api)
    assert (entry["stale"], entry["in_prompt"]) == (True, False)
    assert await prompt(api) == ""
    model.script("She never asked.")
    assert await settle(dispatcher, clock) == 1
    (entry,) = await entries(api)
    assert (entry["id"], entry["content"], entry["stale"]) == (entry_id, "She never asked.", False)
    assert "I never asked." in about(model.requests[-1])
    assert "She never asked." in await prompt(api)


async def test_a_change_that_is_undone_costs_nothing(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await written(api, dispatcher, model, clock)
    await edit(api, "m3", content="I never asked.")
    await edit(api, "m3", content=said(3)["content"])
    assert await due_rows(database, tenant) == []
    assert WRITTEN in await prompt(api)


async def test_changes_during_a_rewrite_are_in_the_new_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    model.otherwise = lambda request: about(request)[2]
    await edit(api, "m3", content="I never asked.")
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await put(api, settings={"diary": {"enabled": False}}, status=200)
    await edit(api, "m3", content="I asked twice.")
    await put(api, settings={"diary": {"enabled": True}}, status=200)
    gate.release()
    await draining
    assert [entry["stale"] for entry in await entries(api)] == [True]
    await settle(dispatcher, clock)
    assert await contents(api) == ["I asked twice."]


async def test_a_rewritten_entry_is_not_shown_later_entries(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    model.otherwise = from_first
    for n in range(1, 4):
        await turns(api, n, n)
        await settle(dispatcher, clock)
    await edit(api, "m4", content="Another reply.")
    await settle(dispatcher, clock)
    assert reread(model.requests[-1]) == ["From 1."]


@pytest.mark.parametrize("answer", ["NONE", None])
async def test_an_empty_entry_is_not_returned_anywhere(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, answer: str | None
) -> None:
    entry_id = await written(api, dispatcher, model, clock)
    if answer:
        model.script(answer)
        await edit(api, "m3", content="I never asked.")
    else:
        await soft_delete(api, "m1", "m2", "m3", "m4")
    await settle(dispatcher, clock)
    assert await entries(api) == []
    assert await prompt(api) == ""
    await change(api, entry_id, "By a person.", status=404)
    await discard(api, entry_id, status=404)
    assert len(model.calls) == (2 if answer else 1)


async def test_an_entry_comes_back_with_its_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    entry_id = await written(api, dispatcher, model, clock)
    await hide(api, (1, 4))
    await settle(dispatcher, clock)
    assert await entries(api) == []
    await hide(api, (1, 4), hidden=False)
    model.script("The girl asked, and I told her.")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["id"], entry["content"]) == (entry_id, "The girl asked, and I told her.")
    assert entry["content"] in await prompt(api)


async def test_an_entry_is_hidden_with_its_characters_last_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, KAI, MIRA, auto_write_turns=2)
    await append(api, [said(1), said(2, name="Kai"), said(3), said(4, name="Mira")])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert len(model.calls) == 2
    await hide(api, (2, 2))
    await settle(dispatcher, clock)
    assert len(model.calls) == 3
    assert [entry["character"] for entry in await entries(api)] == ["Mira"]
    assert await prompt(api, character="Kai") == ""
    await hide(api, (2, 2), hidden=False)
    await settle(dispatcher, clock)
    assert [entry["character"] for entry in await entries(api)] == ["Kai", "Mira"]


async def test_undoing_an_edit_restores_the_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    model.script("NONE", WRITTEN)
    await edit(api, "m3", content="I never asked.")
    await settle(dispatcher, clock)
    assert await entries(api) == []
    await edit(api, "m3", content=said(3)["content"])
    await settle(dispatcher, clock)
    assert await contents(api) == [WRITTEN]


async def test_an_entry_that_became_empty_is_removed_from_its_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=6, auto_write_turns=1)
    model.otherwise = from_first
    await turns(api, 1, 3)
    await settle(dispatcher, clock)
    await settle(dispatcher, clock)
    assert "From 1." in (await get(api, "/diary/folded"))["text"]
    await hide(api, (1, 2))
    await settle(dispatcher, clock)
    await settle(dispatcher, clock)
    assert "From 1." not in await prompt(api)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_an_entry_has_the_date_of_its_last_remaining_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, [said(n, sent_at=f"2026-03-{n:02}T12:00:00Z") for n in range(1, 5)])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert "## 03/04 — memo entry" in await prompt(api)
    await soft_delete(api, "m3", "m4")
    await settle(dispatcher, clock)
    assert "## 03/02 — memo entry" in await prompt(api)


async def test_an_edited_entry_survives_changes_of_its_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    entry_id = await written(api, dispatcher, model, clock)
    await edit(api, "m3", content="I never asked.")
    edited = await change(api, entry_id, "She asked, I swear.")
    assert (edited["edited"], edited["stale"], edited["in_prompt"], edited["origin"]) == (True, False, True, "person")
    await edit(api, "m3", content="I asked twice.")
    (entry,) = await entries(api)
    assert (entry["stale"], entry["in_prompt"]) == (True, True)
    assert await settle(dispatcher, clock) == 0
    await put(api, settings={"diary": {"enabled": False}}, status=200)
    assert "She asked, I swear." in await prompt(api)


async def test_a_deleted_entry_is_not_written_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    entry_id = await written(api, dispatcher, model, clock)
    await edit(api, "m3", content="I never asked.")
    await discard(api, entry_id)
    await edit(api, "m3", content="I asked twice.")
    assert await settle(dispatcher, clock) == 0
    assert await entries(api) == []


async def test_changes_while_an_entry_is_written_are_in_the_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.otherwise = lambda request: about(request)[0]
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await edit(api, "m1", content="Tell me their names.")
    gate.release()
    await draining
    assert await entries(api) == []
    await settle(dispatcher, clock)
    assert await contents(api) == ["Tell me their names."]


@pytest.mark.parametrize("answer", [refuses(503), refuses(400)])
async def test_a_model_that_fails_is_asked_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, answer: Any
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script(answer, WRITTEN)
    await settle(dispatcher, clock)
    assert await entries(api) == []
    await settle(dispatcher, clock)
    assert await contents(api) == [WRITTEN]


DECLINES = "I'm sorry, but I can't help with that request."
REFUSALS = [{"kind": "declined", "reason": "the model refuses"}] * 2


async def test_without_a_usable_answer_no_entry_is_written(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script(DECLINES, DECLINES)
    assert await settle(dispatcher, clock) == 1
    assert await entries(api) == []
    (item,) = ok(await api.get("/v1/work", params={"chat_id": "c"}), 200)["items"]
    assert (item["status"], item["attempts"], item["refusals"]) == ("failed", 1, REFUSALS)
    assert item["error"] == "no answer of the model could be used: the model refuses"
    assert await settle(dispatcher, clock, 3_600) == 0
    ok(await api.post(f"/v1/work/{item['id']}/retry"), 202)
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    assert await contents(api) == [WRITTEN]
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_only_the_newest_failed_entries_are_kept(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    model.script(WRITTEN)
    await turns(api, 1, 1)
    await settle(dispatcher, clock)
    model.otherwise = DECLINES
    written = MAX_FAILED + 3
    for turn in range(2, written + 1):
        await turns(api, turn, turn)
        await settle(dispatcher, clock)
    items = ok(await api.get("/v1/work", params={"chat_id": "c", "limit": 100}), 200)["items"]
    assert [item["status"] for item in items] == ["failed"] * MAX_FAILED
    await edit(api, "m1", content="Tell me their names.")
    await settle(dispatcher, clock)  # that the first entry cannot be written again drops none of the others
    ok(await api.post("/v1/work/retry", json={"chat_id": "c"}), 200)
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert sorted(one["first_seq"] for one in await entries(api)) == [
        1,
        *(2 * n - 1 for n in range(written - MAX_FAILED + 1, written + 1)),
    ]


async def test_a_stale_entry_stays_out_if_no_answer_is_usable(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    await edit(api, "m1", content="Tell me their names.")
    model.script(DECLINES, DECLINES)
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["stale"], entry["in_prompt"]) == (True, False)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 1}


async def test_an_entry_that_is_not_written_delays_no_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await put(api, settings={"history": {"keep_messages": 4, "grow_messages": 4}}, status=200)
    model.otherwise = DECLINES
    await turns(api, 1, 4)
    await settle(dispatcher, clock)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 4}
    await turns(api, 5, 9)
    assert (await get(api, ""))["anchor_seq"] > 1


async def test_an_edit_makes_an_entry_due_again_that_failed_for_good(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 2)
    model.otherwise = refuses(400)
    for wait_s in (2, *RETRY_DELAYS_S):
        clock.step(wait_s)
        await dispatcher.drain()
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 2}
    model.otherwise = from_first
    await edit(api, "m1", pinned=True)
    await edit(api, "m4", content="Something harmless.")
    await settle(dispatcher, clock)
    assert await contents(api) == ["From 3."]
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 1}


async def test_a_small_model_works_with_the_longest_persona(
    api: httpx.AsyncClient, database: Database, model: ScriptedModel, clock: SteppedClock, nothing_due: None
) -> None:
    persona = ("Kai keeps the lighthouse, collects lost letters and speaks gruffly. " * 2_000)[:100_000]
    await keep_diary(api, KAI | {"persona": persona}, auto_write_turns=2, lines=10)
    for n in range(10):
        await save(api, f"Entry {n}.")
    await turns(api, 1, 2)
    model.otherwise = WRITTEN
    async with aclosing(ModelClient(model.base_url, "small", max_attempts=1, context_tokens=4_096)) as client:
        dispatcher = Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30)
        for _ in range(3):
            await settle(dispatcher, clock)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    assert WRITTEN in await contents(api)
    assert WRITTEN in (await get(api, "/diary/folded"))["text"]


async def test_of_too_many_turns_the_newest_are_written_about(
    api: httpx.AsyncClient, database: Database, model: ScriptedModel, clock: SteppedClock, nothing_due: None
) -> None:
    await keep_diary(api, auto_write_turns=200)
    await append(api, talk(1, 400))
    model.otherwise = WRITTEN
    async with aclosing(ModelClient(model.base_url, "small", max_attempts=1, context_tokens=4_096)) as client:
        await settle(Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30), clock)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    assert [(entry["first_seq"], entry["last_seq"], entry["content"]) for entry in await entries(api)] == [
        (1, 400, WRITTEN)
    ]
    (request,) = model.requests
    told = about(request)
    assert told == [one["content"] for one in talk(401 - len(told), 400)]
    assert len(told) >= 50


async def test_entries_stale_while_disabled_are_rewritten_later(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    await put(api, settings={"diary": {"enabled": False}}, status=200)
    assert await prompt(api) == ""
    await edit(api, "m3", content="I never asked.")
    assert await settle(dispatcher, clock) == 0
    await put(api, settings={"diary": {"enabled": True}}, status=200)
    model.script("She never asked.")
    await settle(dispatcher, clock)
    assert await contents(api) == ["She never asked."]


async def test_a_fold_of_a_stale_entry_is_made_again_after_the_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=6, auto_write_turns=1)
    await cut_often(api)
    for n in range(1, 4):
        await turns(api, n, n)
        model.script(f"Entry {n}.")
        if n == 3:
            model.script("Folded.")
        await settle(dispatcher, clock)
    await append(api, [said(7)])
    assert "Folded." in await prompt(api)
    await edit(api, "m1", content="I never asked.")
    assert "Folded." not in (shown := await prompt(api))
    assert "Entry 1." not in shown
    model.script("Entry 1, anew.", "Folded anew.")
    await settle(dispatcher, clock)
    await settle(dispatcher, clock)
    await append(api, [said(9)])
    assert "Folded anew." in await prompt(api)
    assert "Entry 1, anew." in json.dumps(model.requests[-1])


# --- lines that are cut off ---


async def test_a_truncated_period_fills_again_from_its_start(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    await cut_off(api, 3)
    assert await entries(api) == []
    await append(api, [said(5), said(6)])
    model.script("Another course.")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["content"], entry["first_seq"], entry["last_seq"]) == ("Another course.", 1, 6)


async def test_an_entry_due_for_removed_messages_is_not_written(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await turns(api, 1, 2)
    await cut_off(api, 4)
    assert await due_rows(database, tenant) == []
    await append(api, [said(5, role="assistant")])
    model.script(WRITTEN)
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["first_seq"], entry["last_seq"]) == (1, 5)


@pytest.mark.parametrize("every_turns", [1, 2])
async def test_a_regenerated_reply_closes_its_period_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, every_turns: int
) -> None:
    await keep_diary(api, auto_write_turns=every_turns)
    await turns(api, 1, every_turns)
    last = 2 * every_turns
    await soft_delete(api, f"m{last}")
    assert await settle(dispatcher, clock) == 0
    await append(api, [said(last, id="anew", content="Another reply.")])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert [(entry["first_seq"], entry["last_seq"]) for entry in await entries(api)] == [(1, last + 1)]
    assert about(model.requests[-1])[-1] == "Another reply."


async def test_characters_write_once_about_a_regenerated_reply(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, KAI, MIRA, auto_write_turns=2)
    await append(api, [said(1), said(2, name="Kai"), said(3), said(4, name="Mira")])
    assert len(await due_rows(database, tenant)) == 2
    await soft_delete(api, "m4")
    assert await due_rows(database, tenant) == []
    await append(api, [said(4, id="anew", name="Mira")])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert [(entry["character"], entry["last_seq"]) for entry in await entries(api)] == [("Kai", 5), ("Mira", 5)]


async def test_a_period_with_a_written_entry_stays_closed(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, KAI, MIRA, auto_write_turns=2)
    await append(api, [said(1), said(2, name="Mira"), said(3), said(4, name="Kai")])
    model.otherwise = lambda request: WRITTEN if '"Mira"' in str(request).partition("<messages>")[0] else refuses(503)
    await settle(dispatcher, clock)
    assert [entry["character"] for entry in await entries(api)] == ["Mira"]
    await soft_delete(api, "m4")
    await append(api, [said(5), said(6, name="Kai"), said(7), said(8, name="Mira")])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock, sum(RETRY_DELAYS_S))
    assert [(entry["character"], entry["first_seq"], entry["last_seq"]) for entry in await entries(api)] == [
        ("Mira", 1, 4),
        ("Kai", 5, 8),
        ("Mira", 5, 8),
    ]


async def test_periods_whose_last_replies_are_removed_are_merged(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 3)
    await soft_delete(api, "m6", "m4", "m2")
    await append(api, [said(6, id="anew")])
    model.otherwise = WRITTEN
    await settle(dispatcher, clock)
    assert [(entry["first_seq"], entry["last_seq"]) for entry in await entries(api)] == [(1, 7)]


async def test_turns_that_are_deleted_do_not_count(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await turns(api, 1, 1)
    await soft_delete(api, "m1", "m2")
    await turns(api, 2, 2)
    assert await settle(dispatcher, clock) == 0
    await turns(api, 3, 3)
    await settle(dispatcher, clock)
    assert [entry["last_seq"] for entry in await entries(api)] == [6]


@pytest.mark.parametrize("change", [{"kind": "thought"}, {"role": "narrator"}, {"role": "user"}])
@pytest.mark.parametrize("every_turns", [2, 3])  # the changed reply is the last one of a period, or in the open one
async def test_a_message_that_stops_being_a_reply_ends_no_turn(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    every_turns: int,
    change: Json,
) -> None:
    await keep_diary(api, auto_write_turns=every_turns)
    model.otherwise = WRITTEN
    await append(api, talk(1, 4))
    ok(await api.put("/v1/chats/c/messages", json={"messages": [*talk(1, 3), said(4) | change]}), 200)
    for n in range(3, every_turns + 2):
        assert await settle(dispatcher, clock) == 0
        await turns(api, n, n)
    await settle(dispatcher, clock)
    assert [(entry["first_seq"], entry["last_seq"]) for entry in await entries(api)] == [(1, 2 * every_turns + 2)]


async def test_a_fork_writes_about_its_own_course(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 3}), 201)
    assert ok(await api.get("/v1/chats/d/diary"), 200)["items"] == []
    await append(api, [said(4, content="Another answer.")], "d")
    model.script("Another course.")
    await settle(dispatcher, clock)
    (entry,) = ok(await api.get("/v1/chats/d/diary"), 200)["items"]
    assert (entry["content"], entry["first_seq"], entry["last_seq"]) == ("Another course.", 1, 4)
    assert await contents(api) == [WRITTEN]


async def test_an_import_that_moves_messages_makes_new_entries_due(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await written(api, dispatcher, model, clock)
    wanted = [said(1), said(1, id="between", role="narrator", content="It rained."), *talk(2, 4)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert await entries(api) == []
    model.script("It rained, and she asked.")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    assert (entry["content"], entry["first_seq"], entry["last_seq"]) == ("It rained, and she asked.", 1, 5)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_a_scene_in_the_present_tense_is_asked_for_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await turns(api, 1, 1)
    model.script("I step closer and brush the hair from her face. I lean in and kiss her slowly.", WRITTEN)
    await settle(dispatcher, clock)
    assert await contents(api) == [WRITTEN]
    assert "it shows a scene in the present tense" in model.requests[1]["messages"][-1]["content"]
