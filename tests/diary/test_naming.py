"""Diaries of chats whose character gets a name later, or another one."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle
from tests.book import due_rows
from tests.diary.diaries import KAI, MIRA, contents, entries, keep_diary, prompt, save, write
from tests.scripted_model import ScriptedModel
from tests.talk import append, get, ok, put, talk


async def keep_nameless(api: httpx.AsyncClient) -> None:
    """A chat without characters, with a diary limit at which the third entry causes a fold of the first two."""
    await put(api, settings={"memos": {"enabled": False}, "diary": {"enabled": True, "lines": 6}})


async def test_a_diary_passes_to_a_character_that_is_named_later(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_nameless(api)
    for n in range(1, 4):
        await save(api, f"Nameless {n}.")
    model.script("Folded, nameless.")
    await settle(dispatcher, clock)
    before = await prompt(api)
    assert before.startswith("## Diary\n\nFolded, nameless.")
    await put(api, characters=[KAI], status=200)
    assert await prompt(api) == before
    assert [(one["character"], one["in_prompt"]) for one in await entries(api)] == [
        ("Kai", "Nameless 1." in before),
        ("Kai", "Nameless 2." in before),
        ("Kai", True),
    ]
    assert (await get(api, "/diary/folded"))["text"] == "Folded, nameless."
    assert await settle(dispatcher, clock) == 0
    await save(api, "As Kai.")
    assert (await contents(api, character="Kai"))[-1] == "As Kai."


async def test_two_diaries_become_one_and_are_folded_as_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_nameless(api)
    for n in range(1, 4):
        await write(api, f"Nameless {n}.")
        await write(api, f"Kai {n}.", character="Kai")
    model.otherwise = "Folded apart."
    await settle(dispatcher, clock)
    await put(api, characters=[KAI], status=200)
    assert "Folded apart." not in (shown := await prompt(api))
    assert shown.endswith("Nameless 3.\n\n## 04/01 — memo entry\nKai 3.")
    model.otherwise = "Folded together."
    await settle(dispatcher, clock)
    assert "Folded together." in await prompt(api)
    assert "Nameless 1." in str(model.requests[-1])
    assert "Kai 1." in str(model.requests[-1])


async def test_an_entry_due_without_a_name_gets_the_characters_name(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await put(api, settings={"memos": {"enabled": False}, "diary": {"enabled": True, "auto_write_turns": 1}})
    await append(api, talk(1, 2))
    await put(api, characters=[KAI], status=200)
    assert [row["key"] for row in await due_rows(database, tenant)] == ["write:1:Kai"]
    model.script("I told her.")
    await settle(dispatcher, clock)
    assert [(one["character"], one["content"]) for one in await entries(api)] == [("Kai", "I told her.")]


async def test_a_diary_passes_on_only_to_a_single_character(api: httpx.AsyncClient) -> None:
    await keep_nameless(api)
    await write(api, "Whose is it?")
    await put(api, characters=[KAI, MIRA], status=200)
    assert "Whose is it?" not in await prompt(api, character="Kai")
    assert "Whose is it?" in await prompt(api)
    assert [(one["character"], one["in_prompt"]) for one in await entries(api)] == [(None, True)]
    await put(api, characters=[KAI, {**MIRA, "disabled": True}], status=200)
    assert "Whose is it?" in await prompt(api, character="Kai")
    assert "Whose is it?" not in await prompt(api, character="Mira")


async def test_entries_of_a_removed_character_are_not_in_the_prompt(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await write(api)
    await put(api, characters=[MIRA], status=200)
    assert await prompt(api) == ""
    assert [(one["character"], one["in_prompt"]) for one in await entries(api)] == [("Kai", False)]
    await put(api, characters=[MIRA, KAI], status=200)
    assert [one["in_prompt"] for one in await entries(api)] == [True]
    ok(await api.get("/v1/chats/c/context", params={"character": "Kai"}), 200)


async def test_a_restore_returns_the_diary_without_its_later_name(api: httpx.AsyncClient) -> None:
    await keep_nameless(api)
    await write(api, "Before the name.")
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "nameless"}), 201)
    await put(api, characters=[KAI], status=200)
    ok(await api.post("/v1/chats/c/checkpoints/nameless/restore"), 201)
    assert [one["character"] for one in await entries(api)] == [None]
    assert "Before the name." in await prompt(api)


async def test_a_chat_without_characters_has_at_most_32_diaries(api: httpx.AsyncClient) -> None:
    await keep_nameless(api)
    for n in range(32):
        await save(api, character=f"Somebody {n}")
    refused = await save(api, character="One more", status=409)
    assert "32 diaries" in refused["detail"]
    await write(api, character="One more", status=409)
    await write(api, "Another of mine.", character="Somebody 7")
    await put(api, characters=[{"name": "One more"}], status=200)
    await save(api, character="One more")
    assert len(await entries(api)) == 34
