"""The folded part of a diary is made again because a person asks for it, for example after the model declined."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle
from tests.book import due_rows
from tests.diary.diaries import KAI, MIRA, change, contents, entries, keep_diary, letters, prompt, write
from tests.diary.test_fold_jobs import FOLDED, asked, write_many
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, get, ok, put, talk

DECLINES = "I'm sorry, but I can't help with that request."
PATH = "/v1/chats/c/diary/folded/regenerate"


async def regenerate(api: httpx.AsyncClient, status: int = 202, **body: str) -> Json:
    """Ask for the fold of a diary of the chat `c` again."""
    return ok(await api.post(PATH, json=body), status)


async def quote(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel) -> Json:
    """A diary of five entries, of which the model has declined to fold the first three."""
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script(DECLINES, DECLINES)
    await settle(dispatcher, clock)
    folded = await get(api, "/diary/folded")
    assert (folded["origin"], folded["entries"]) == ("extractive", 3)
    return folded


async def test_a_quoted_fold_is_tried_again_with_the_model(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    quoted = await quote(api, dispatcher, clock, model)
    asked_again = await regenerate(api)
    assert {name: value for name, value in asked_again.items() if name != "work_id"} == quoted
    assert quoted["text"] in await prompt(api)
    model.script(FOLDED)
    assert await settle(dispatcher, clock) == 1
    assert asked(model.requests[-1]) == ("", [letters(1), letters(2), letters(3)])
    folded = await get(api, "/diary/folded")
    assert (folded["origin"], folded["text"], folded["entries"], folded["model"]) == ("model", FOLDED, 3, "scripted-1")
    assert await prompt(api) == (
        f"## Diary\n\n{FOLDED}\n\n## 04/01 — memo entry\n{letters(4)}\n\n## 04/01 — memo entry\n{letters(5)}"
    )
    assert await due_rows(database, tenant) == []
    assert await contents(api) == [letters(n) for n in range(1, 6)]


async def test_a_model_that_declines_again_leaves_a_quoted_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    quoted = await quote(api, dispatcher, clock, model)
    await regenerate(api)
    model.script(DECLINES, DECLINES)
    await settle(dispatcher, clock)
    assert len(model.requests) == 4
    folded = await get(api, "/diary/folded")
    assert (folded["origin"], folded["text"]) == ("extractive", quoted["text"])


async def test_only_the_newest_fold_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    model.script(DECLINES, DECLINES)
    await write_many(api, 6, 9)
    await settle(dispatcher, clock)
    quoted, times = await get(api, "/diary/folded"), len(model.requests)
    assert quoted["origin"] == "extractive"
    await regenerate(api, character="Kai")
    model.script("05/01: I kept all of the letters dry.")
    await settle(dispatcher, clock)
    former, again = asked(model.requests[times])
    assert (former, again[0]) == (FOLDED, letters(4))
    folded = await get(api, "/diary/folded")
    assert (folded["origin"], folded["entries"]) == ("model", quoted["entries"])
    assert folded["text"] == "05/01: I kept all of the letters dry."


async def test_an_edited_diary_is_folded_as_it_is_now(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await quote(api, dispatcher, clock, model)
    await regenerate(api)
    first = (await entries(api))[0]
    await change(api, first["id"], letters(8))
    model.script(FOLDED)
    await settle(dispatcher, clock)
    assert asked(model.requests[-1]) == ("", [letters(8), letters(2), letters(3)])
    assert (await get(api, "/diary/folded"))["origin"] == "model"
    assert len(model.requests) == 3


async def test_a_failed_fold_is_tried_again_by_hand(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, lines=12)
    await write_many(api, 1, 5)
    model.otherwise = refuses(400)
    for _ in range(6):
        await settle(dispatcher, clock, 3_600)
    assert (await get(api, "/diary/folded"))["version"] is None
    model.otherwise = FOLDED
    await regenerate(api)
    await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["text"] == FOLDED


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_short_diary_has_nothing_to_fold(
    enabled: bool, api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await keep_diary(api, lines=12)
    await write(api)
    await put(api, settings={"diary": {"enabled": enabled}}, status=200)
    assert (await regenerate(api, 409))["code"] == "nothing_to_fold"
    assert await due_rows(database, tenant) == []


async def test_a_fold_of_an_unclear_diary_is_not_made_again(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA, lines=12)
    for body in ({}, {"character": "Somebody"}):
        assert (await regenerate(api, 422, **body))["errors"][0]["loc"] == ["body", "character"]


async def test_another_diary_stays_as_it_is(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, KAI, MIRA, lines=12)
    model.otherwise = FOLDED
    for name in ("Kai", "Mira"):
        await write_many(api, 1, 5, character=name)
    await settle(dispatcher, clock)
    before = await get(api, "/diary/folded", character="Kai")
    await regenerate(api, character="Mira")
    model.otherwise = "I kept the letters."
    await settle(dispatcher, clock)
    assert await get(api, "/diary/folded", character="Kai") == before
    assert (await get(api, "/diary/folded", character="Mira"))["text"] == "I kept the letters."


async def test_a_fold_that_waits_for_its_cut_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await keep_diary(api, lines=12)
    await append(api, talk(1, 4))
    await write_many(api, 1, 8)
    model.script(DECLINES, DECLINES)
    await settle(dispatcher, clock)
    shown = await prompt(api)
    assert (await get(api, "/diary/folded"))["in_prompt"] is False
    await regenerate(api)
    model.script(FOLDED)
    await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["text"] == FOLDED
    assert await prompt(api) == shown
