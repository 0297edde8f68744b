"""Diaries that grow too long: their older part is folded in the character's own voice, and stays true."""

import asyncio
import json
import re
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.diary.queries import count_folded
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.background import settle
from tests.book import due_rows
from tests.diary.diaries import (
    KAI,
    MIRA,
    change,
    contents,
    cut_often,
    discard,
    entries,
    keep_diary,
    letters,
    prompt,
    save,
    write,
)
from tests.scripted_model import Request, ScriptedModel, refuses
from tests.talk import append, cut_off, get, ok, put, talk

FOLDED = "04/01: Mira came ashore, and I gave her the oil that I had promised."


async def write_many(api: httpx.AsyncClient, first: int, last: int, **entry: Any) -> None:
    """Entries of two lines each, so that so many take three lines each with the blank ones."""
    for n in range(first, last + 1):
        await write(api, letters(n), **entry)


def asked(request: Request) -> tuple[str, list[str]]:
    """What a request for a fold quotes: the former text, and the entries."""
    text = str(request["messages"][-1]["content"])
    former = re.search(r"<former>\n(.*)\n</former>", text)
    assert former
    return json.loads(former[1]), [json.loads(line)["entry"] for line in re.findall(r'\{"date": .*\}', text)]


async def test_the_oldest_entries_are_folded_above_the_line_limit(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 4)  # eleven lines
    assert await settle(dispatcher, clock) == 0
    await write_many(api, 5, 5)
    (row,) = await due_rows(database, tenant)
    assert (row["layer"], row["key"], row["payload"]) == ("diary", "fold:Kai", None)
    model.script(FOLDED)
    assert await settle(dispatcher, clock) == 1
    assert await due_rows(database, tenant) == []
    assert asked(model.requests[0]) == ("", [letters(1), letters(2), letters(3)])
    shown = await prompt(api)
    assert shown == (
        f"## Diary\n\n{FOLDED}\n\n## 04/01 — memo entry\n{letters(4)}\n\n## 04/01 — memo entry\n{letters(5)}"
    )
    assert await contents(api) == [letters(n) for n in range(1, 6)]
    assert [entry["in_prompt"] for entry in await entries(api)] == [False, False, False, True, True]
    folded = await get(api, "/diary/folded")
    assert (folded["version"], folded["text"], folded["entries"], folded["origin"]) == (1, FOLDED, 3, "model")
    assert (folded["model"], folded["prompt_version"]) == ("scripted-1", "diary/2")
    assert folded["first_at"] == folded["last_at"] == (await entries(api))[0]["created_at"]


async def test_the_character_is_asked_as_the_persona_that_it_has(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await put(api, language="ja", status=200)
    await write_many(api, 1, 5)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    (request,) = model.requests
    text = str(request["messages"][-1]["content"])
    assert '"Kai"' in text
    assert KAI["persona"] in text
    assert '"ja"' in text
    assert '"date": "04/01"' in text


async def test_the_next_fold_builds_on_the_one_before(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    model.otherwise = lambda request: f"{FOLDED}\n\n(from {len(asked(request)[1])} more)"
    await write_many(api, 1, 5)
    await settle(dispatcher, clock)
    await write_many(api, 6, 9)
    await settle(dispatcher, clock)
    first, second = model.requests
    assert asked(first) == ("", [letters(1), letters(2), letters(3)])
    former, entries_ = asked(second)
    assert former == f"{FOLDED}\n(from 3 more)"
    assert entries_[0] == letters(4)
    assert (await get(api, "/diary/folded"))["entries"] == 3 + len(entries_)
    assert len((await prompt(api)).split("\n")) - 2 <= 12


async def test_a_text_of_too_many_lines_is_kept_in_fewer(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script("\n\n".join(f"Paragraph {n}." for n in range(1, 30)))
    await settle(dispatcher, clock)
    text = (await get(api, "/diary/folded"))["text"]
    assert len(text.split("\n")) == 5
    assert text.split() == [word for n in range(1, 30) for word in ("Paragraph", f"{n}.")]
    assert await due_rows(database, tenant) == []


async def test_without_a_model_the_character_is_quoted(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await keep_diary(api, lines=12)
    for n in range(1, 21):
        await write(api, letters(n))
        await settle(quoting_dispatcher, clock)
        shown = await prompt(api)
        assert len(shown.split("\n")) - 2 <= 12
        assert letters(n) in shown
    folded = await get(api, "/diary/folded")
    assert (folded["origin"], folded["model"], folded["prompt_version"]) == ("extractive", None, "extractive/1")
    for line in folded["text"].split("\n"):
        quoted = re.fullmatch(r"04/01: “…?(.*?)[.…]*”", line)
        assert quoted
        assert any(quoted[1] in letters(n) for n in range(1, 21))
    assert await due_rows(database, tenant) == []


async def test_an_edit_of_a_folded_entry_shows_originals_until_a_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await cut_often(api)
    model.script("First fold.", "Second fold.")
    await write_many(api, 1, 5)
    await settle(dispatcher, clock)
    await write_many(api, 6, 9)
    await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["text"] == "Second fold."
    folded = [entry for entry in await entries(api) if not entry["in_prompt"]]
    await change(api, folded[-1]["id"], "I lost that letter.")
    assert "Second fold." not in (shown := await prompt(api))
    assert letters(9) in shown
    assert (await get(api, "/diary/folded"))["text"] == "First fold."
    model.script("Second fold, anew.")
    await settle(dispatcher, clock)
    former, again = asked(model.requests[-1])
    assert former == "First fold."  # only what came after the change is made again
    assert "I lost that letter." in again
    assert "Second fold, anew." in await prompt(api)
    await discard(api, folded[0]["id"])
    folded_now = await get(api, "/diary/folded")
    assert (folded_now["version"], folded_now["text"]) == (None, "")
    model.otherwise = "From the start."
    await settle(dispatcher, clock)
    assert letters(1) not in json.dumps(model.requests[-1])
    assert "From the start." in await prompt(api)


async def test_a_diary_that_has_become_short_enough_needs_no_fold(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    await discard(api, (await entries(api))[0]["id"])
    assert await due_rows(database, tenant) == []
    await settle(dispatcher, clock)
    assert model.calls == []


async def test_an_entry_changed_during_its_fold_is_folded_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.otherwise = lambda request: asked(request)[1][0]
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await change(api, (await entries(api))[0]["id"], "No letter came.")
    gate.release()
    await draining
    assert (await get(api, "/diary/folded"))["version"] is None
    await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["text"] == "No letter came."


async def test_an_entry_added_during_a_fold_causes_no_second_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script(FOLDED)
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await write(api, "One more.")
    gate.release()
    await draining
    await settle(dispatcher, clock)
    assert len(model.calls) == 1
    assert (shown := await prompt(api)).startswith(f"## Diary\n\n{FOLDED}")
    assert "One more." in shown


async def test_after_a_failed_fold_the_last_lines_are_shown(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.otherwise = refuses(400)
    await settle(dispatcher, clock)
    for wait_s in RETRY_DELAYS_S:
        clock.step(wait_s)
        await dispatcher.drain()
    (row,) = await due_rows(database, tenant)
    assert (row["attempts"], row["failed_at"] is not None) == (MAX_ATTEMPTS, True)
    assert (await prompt(api)).count("memo entry") == 4
    model.otherwise = FOLDED
    await write(api, letters(6))
    await settle(dispatcher, clock)
    assert await due_rows(database, tenant) == []
    assert FOLDED in await prompt(api)


@pytest.mark.parametrize("answer", [refuses(503), refuses(400)])
async def test_a_call_that_fails_loses_no_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, answer: Any
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script(answer, FOLDED)
    await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["version"] is None
    await settle(dispatcher, clock)
    assert asked(model.requests[1]) == ("", [letters(1), letters(2), letters(3)])
    assert (await get(api, "/diary/folded"))["entries"] == 3


async def test_a_backlog_from_disabled_diaries_is_folded_in_parts(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await put(api, characters=[KAI])
    await write_many(api, 1, 70)
    assert await due_rows(database, tenant) == []
    assert (await prompt(api)).count("memo entry") == 17
    model.otherwise = lambda request: f"I wrote of {len(asked(request)[1])} lamps, and of those who lit them."
    await keep_diary(api, status=200)
    await settle(dispatcher, clock)
    assert [len(asked(request)[1]) for request in model.requests] == [30, 30]
    assert asked(model.requests[1])[0] == "I wrote of 30 lamps, and of those who lit them."
    assert (await get(api, "/diary/folded"))["entries"] == 60
    assert (await prompt(api)).count("memo entry") == 10
    assert await due_rows(database, tenant) == []


async def test_a_fold_is_shown_only_while_diaries_are_on(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    await put(api, settings={"diary": {"enabled": False}}, status=200)
    shown = await prompt(api)
    assert FOLDED not in shown
    assert letters(3) in shown
    await put(api, settings={"diary": {"enabled": True}}, status=200)
    assert FOLDED in await prompt(api)


async def test_fewer_lines_fold_what_has_no_room_any_more(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api)
    await write_many(api, 1, 5)
    await put(api, settings={"diary": {"lines": 8}}, status=200)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    assert asked(model.requests[0])[1] == [letters(1), letters(2), letters(3), letters(4)]
    assert (await prompt(api)).endswith(letters(5))


async def test_each_character_folds_its_own_diary(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, KAI, MIRA, lines=12)
    for n in range(1, 6):
        await write(api, f"Kai {n}.", character="Kai")
        await save(api, f"Mira {n}.", character="Mira")
    model.otherwise = lambda request: f"Folded: {asked(request)[1][0]}"
    await settle(dispatcher, clock)
    assert sorted(asked(request)[1] for request in model.requests) == [
        ["Kai 1.", "Kai 2.", "Kai 3."],
        ["Mira 1.", "Mira 2.", "Mira 3."],
    ]
    assert "Folded: Kai 1." in (kais := await prompt(api, character="Kai"))
    assert "Mira" not in kais
    assert (await get(api, "/diary/folded", character="Mira"))["text"] == "Folded: Mira 1."


async def test_a_fold_of_what_was_cut_off_goes_with_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await cut_often(api)
    for n in range(1, 6):
        await append(api, talk(2 * n - 1, 2 * n))
        await save(api, letters(n))
    model.script(FOLDED)
    await settle(dispatcher, clock)
    await append(api, talk(11, 11))
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "folded"}), 201)
    await cut_off(api, 9)  # behind what was folded
    assert FOLDED in await prompt(api)
    await cut_off(api, 5)
    assert await contents(api) == [letters(1), letters(2)]
    assert (
        await prompt(api) == f"## Diary\n\n## 04/01 — memo entry\n{letters(1)}\n\n## 04/01 — memo entry\n{letters(2)}"
    )
    assert (await get(api, "/diary/folded"))["version"] is None
    ok(await api.post("/v1/chats/c/checkpoints/folded/restore"), 201)
    assert FOLDED in await prompt(api)


async def test_a_folded_personal_entry_is_shown_again_after_it_moves(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await cut_often(api)
    await append(api, talk(1, 8))
    await write_many(api, 1, 5)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    await append(api, talk(9, 9))
    assert FOLDED in await prompt(api)
    await cut_off(api, 3)
    assert FOLDED not in (shown := await prompt(api))
    assert letters(5) in shown
    model.script("Folded again.")
    await settle(dispatcher, clock)
    await append(api, talk(10, 11))
    assert "Folded again." in await prompt(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 2}), 201)
    assert ok(await api.get("/v1/chats/d/diary/folded"), 200)["text"] == "Folded again."


async def test_a_fork_has_only_folds_of_entries_it_has(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, lines=12)
    await cut_often(api)
    model.script("First fold.", "Second fold.")
    for n in range(1, 10):
        await append(api, talk(2 * n - 1, 2 * n))
        await save(api, letters(n))
        if n in {5, 9}:
            await settle(dispatcher, clock)
    await append(api, talk(19, 19))
    assert "Second fold." in await prompt(api)
    before, between, after = [await fork(api, f"at-{seq}", seq) for seq in (3, 8, 18)]
    assert before == f"## Diary\n\n## 04/01 — memo entry\n{letters(1)}"
    assert between == f"## Diary\n\nFirst fold.\n\n## 04/01 — memo entry\n{letters(4)}"
    assert after == await prompt(api)


async def fork(api: httpx.AsyncClient, chat_id: str, at_seq: int) -> str:
    """Return the diary in the prompt of a fork."""
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": chat_id, "at_seq": at_seq}), 201)
    return await prompt(api, chat_id)


async def test_folded_entries_are_counted_up_to_a_limit(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=12)
    for n in range(1, 6):
        await write(api, letters(n))
        clock.step(60)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    folded, line = await get(api, "/diary/folded"), (chat_key(tenant, "c"), UUID((await get(api, ""))["line"]))
    async with database.unit_of_work() as db_session:
        few = await count_folded(db_session, line, "Kai", 3, at_most=2)
        all_ = await count_folded(db_session, line, "Kai", 3, at_most=3)
    assert (few[0], all_[0], folded["entries"]) == (2, 3, 3)
    assert few[1:] == all_[1:]
    written = [entry["created_at"] for entry in await entries(api)]
    assert [folded["first_at"], folded["last_at"]] == [written[0], written[2]]
