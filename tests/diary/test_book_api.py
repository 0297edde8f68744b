"""Diaries over HTTP: written by people and characters, listed, edited, deleted, and shown to their own character."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import NOON
from tests.diary.diaries import KAI, MEMORY, MIRA, change, contents, discard, entries, keep_diary, prompt, save, write
from tests.statements import watched
from tests.talk import Json, append, context, edit, get, ok, put, talk, walk

# --- writing and reading ---


async def test_a_persons_entry_is_in_the_prompt_at_once_with_its_date(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 3))
    entry = await write(api)
    assert (entry["character"], entry["content"], entry["at_seq"], entry["origin"]) == ("Kai", MEMORY, 3, "person")
    assert (entry["edited"], entry["stale"], entry["in_prompt"]) == (False, False, True)
    assert (entry["first_seq"], entry["last_seq"], entry["model"], entry["prompt_version"]) == (None,) * 4
    assert [entry] == await entries(api)
    assert await prompt(api) == f"## Diary\n\n## 04/01 — memo entry\n{MEMORY}"
    (segment,) = (one for one in (await context(api))["segments"] if one["name"] == "diary_recent")
    assert segment["sources"] == [f"diary:{entry['id']}"]


async def test_an_entry_saved_by_a_character_is_in_the_prompt(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await save(api)
    (entry,) = await entries(api)
    assert (entry["character"], entry["origin"], entry["at_seq"], entry["edited"]) == ("Kai", "tool", 2, False)
    assert MEMORY in await prompt(api)


async def test_the_list_is_in_story_order_page_by_page(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    for n in range(1, 4):
        await append(api, talk(n, n))
        await write(api, f"Kai {n}", character="Kai")
        await write(api, f"Mira {n}", character="Mira")
    pages = await walk(api, "/v1/chats/c/diary", limit=4)
    assert [len(page) for page in pages] == [4, 2]
    told = [entry["content"] for page in pages for entry in page]
    assert told == ["Kai 1", "Mira 1", "Kai 2", "Mira 2", "Kai 3", "Mira 3"]
    assert [entry["at_seq"] for page in pages for entry in page] == [1, 1, 2, 2, 3, 3]
    (page,) = await walk(api, "/v1/chats/c/diary", character="Mira")
    assert [entry["content"] for entry in page] == ["Mira 1", "Mira 2", "Mira 3"]


async def test_a_chat_without_characters_has_one_diary(api: httpx.AsyncClient) -> None:
    await put(api)
    assert (await write(api))["character"] is None
    await save(api, "I said nothing.")
    assert await contents(api) == [MEMORY, "I said nothing."]
    assert (await prompt(api)).count("memo entry") == 2
    assert (await get(api, "/diary/folded"))["character"] is None


async def test_every_character_sees_its_own_diary_alone(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await append(api, talk(1, 2))
    await write(api, "Kai's secret.", character="Kai")
    await save(api, "Mira's secret.", character="Mira")
    assert "Kai's secret." in (kais := await prompt(api, character="Kai"))
    assert "Mira's secret." not in kais
    assert "Mira's secret." in (miras := await prompt(api, character="Mira"))
    assert "Kai's secret." not in miras
    assert await prompt(api) == ""


async def test_an_ambiguous_character_is_refused_with_the_names(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    for refused in (
        await write(api, status=422),
        await write(api, status=422, character="Ines"),
        await save(api, status=422),
        await save(api, status=422, character="Ines"),
        await get(api, "/diary", 422, character="Ines"),
        await get(api, "/diary/folded", 422),
    ):
        assert refused["errors"][0]["loc"][-1] == "character"
        assert "“Kai”, “Mira”" in refused["detail"]
    assert await entries(api) == []


async def test_a_disabled_character_is_not_meant_unless_it_is_named(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, {**MIRA, "disabled": True})
    assert (await write(api))["character"] == "Kai"
    assert (await write(api, "Still mine.", character="Mira"))["character"] == "Mira"
    assert await contents(api, character="Mira") == ["Still mine."]


async def test_the_diary_of_a_removed_character_can_still_be_read(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await write(api, "Before I left.", character="Mira")
    await put(api, characters=[KAI], status=200)
    assert await contents(api, character="Mira") == ["Before I left."]
    assert (await get(api, "/diary/folded", character="Mira"))["text"] == ""
    await write(api, status=422, character="Mira")


async def test_days_are_those_of_the_chats_time_zone(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await keep_diary(api)
    clock.step(11 * 3_600)
    await write(api)
    assert "## 04/01 — memo entry" in await prompt(api)
    await put(api, time_zone="Asia/Tokyo", status=200)
    assert "## 04/02 — memo entry" in await prompt(api)


@pytest.mark.parametrize("preset", ["memo", "diary", "scenes", "agent", "decay", "companion"])
async def test_entries_of_people_and_characters_show_in_each_preset(api: httpx.AsyncClient, preset: str) -> None:
    await put(api, settings={"preset": preset}, characters=[KAI])
    await append(api, talk(1, 2))
    await write(api, "By a person.")
    await save(api, "By myself.")
    shown = await prompt(api)
    assert shown.index("By a person.") < shown.index("By myself.")


async def test_the_prompt_has_the_last_lines_and_only_whole_entries(api: httpx.AsyncClient) -> None:
    await keep_diary(api, lines=7)
    await put(api, settings={"diary": {"enabled": False}}, status=200)
    for n in range(1, 5):
        await write(api, f"One {n}\nTwo {n}")
    shown = await prompt(api)
    assert shown.count("memo entry") == 2
    assert shown.startswith("## Diary\n\n## 04/01 — memo entry\nOne 3\nTwo 3")
    assert [entry["in_prompt"] for entry in await entries(api)] == [False, False, True, True]
    await put(api, settings={"diary": {"lines": 50}}, status=200)
    assert (await prompt(api)).count("memo entry") == 4


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n\t"}, "content"),
        ({"content": "x" * 4_001}, "content"),
        ({"content": "nul \x00"}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x", "character": ""}, "character"),
        ({"content": "x", "character": "nul \x00"}, "character"),
        ({"content": "x", "origin": "character"}, "origin"),
    ],
)
async def test_a_malformed_entry_is_refused_by_the_name_of_its_field(
    api: httpx.AsyncClient, body: Json, field: str
) -> None:
    await keep_diary(api)
    refused = ok(await api.post("/v1/chats/c/diary", json=body), 422)
    assert refused["errors"][0]["loc"] == ["body", field]


async def test_an_entry_is_kept_in_the_words_it_was_written_in(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    for content in ("ミラは鍵を持っている。🗝", "שלום, קאי", "x" * 4_000, "  ## 04/02 — memo entry\n\nno heading  "):
        assert (await write(api, content))["content"] == content


async def test_an_unknown_diary_is_404_and_one_without_entries_empty(api: httpx.AsyncClient) -> None:
    for path in ("/diary", "/diary/folded"):
        await get(api, path, 404)
    await write(api, status=404)
    await keep_diary(api)
    assert await get(api, "/diary") == {"items": [], "next_cursor": None}
    folded = await get(api, "/diary/folded")
    assert (folded["character"], folded["version"], folded["text"], folded["entries"]) == ("Kai", None, "", 0)
    await get(api, "/diary", 404, line=str(uuid4()))
    await get(api, "/diary/folded", 404, line=str(uuid4()))
    await get(api, "/diary", 422, cursor="rubbish")
    await change(api, str(uuid4()), "x", 404)
    await change(api, "first", "x", 422)
    assert await prompt(api) == ""


async def test_a_diary_is_its_tenants_alone(api: httpx.AsyncClient, database: Database) -> None:
    await keep_diary(api)
    entry = await write(api)
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, "somebody-else", ["read", "write"], NOON)
    api.headers["Authorization"] = f"Bearer {key.text}"
    await get(api, "/diary", 404)
    await save(api, status=404)
    await put(api)
    assert await entries(api) == []
    await change(api, entry["id"], "x", 404)
    await discard(api, entry["id"], 404)


async def test_writing_to_one_of_many_diaries_reads_no_other(app: FastAPI, api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA, {"name": "Ines"}, {"name": "Tomo"})
    await append(api, talk(1, 2))
    await write(api, "The first.", character="Kai")
    async with watched(app.state.database) as alone:
        await write(api, "Alone.", character="Kai")
    for name in ("Mira", "Ines", "Tomo"):
        await write(api, "As well.", character=name)
    async with watched(app.state.database) as among:
        await write(api, "Among others.", character="Kai")
    assert len(among.asked) == len(alone.asked) > 0
    assert "As well." in await prompt(api, character="Tomo")
    assert "Among others." in await prompt(api, character="Kai")


async def test_a_change_that_concerns_no_diary_reads_none(app: FastAPI, api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    async with watched(app.state.database) as without:
        await edit(api, "m1", content="Something else.")
    assert [text for text in without.asked if "diary_entries" in text] == []
    await write(api)
    async with watched(app.state.database) as unconcerned:
        await edit(api, "m1", content="Something else again.")
    assert len([text for text in unconcerned.asked if "diary_entries" in text]) == 1, "was it written from m1?"


# --- editing and deleting ---


async def test_an_edit_replaces_the_words_at_once_in_list_and_prompt(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await save(api)
    (entry,) = await entries(api)
    edited = await change(api, entry["id"], "Mira asked for my name. Nobody does that.")
    assert edited == entry | {
        "content": "Mira asked for my name. Nobody does that.",
        "origin": "person",
        "edited": True,
    }
    assert [edited] == await entries(api)
    assert "Nobody does that." in await prompt(api)
    own = await write(api)
    assert not (await change(api, own["id"], "Another."))["edited"]


@pytest.mark.parametrize("body", [{}, {"content": " "}, {"content": None}, {"content": "x", "character": "Kai"}])
async def test_a_malformed_edit_is_refused(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    await keep_diary(api)
    entry = await write(api)
    ok(await api.patch(f"/v1/chats/c/diary/{entry['id']}", json=body), 422)
    assert await contents(api) == [MEMORY]


async def test_a_deleted_entry_is_gone(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    first, second = await write(api, "One."), await write(api, "Two.")
    await discard(api, first["id"])
    assert await contents(api) == ["Two."]
    assert "One." not in await prompt(api)
    await discard(api, first["id"], 404)
    await change(api, first["id"], "x", 404)
    await discard(api, second["id"])
    assert await prompt(api) == ""
