"""Scenes that are longer than a model reads at once, or than a list counts."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.registry import LAYERS
from tests.background import settle, settle_rounds
from tests.scenes.story import BY_HAND, asked_for, calls, ranges, recap, scenes, set_break, statuses, story_model
from tests.scripted_model import Request, ScriptedModel, Step, refuses
from tests.slowness import SLOWNESS
from tests.statements import watched
from tests.talk import append, edit, get, ok, put, talk


@pytest.fixture
async def small_sweep(
    database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> AsyncIterator[Dispatcher]:
    """A worker whose model takes little at once."""
    client = ModelClient(
        model.base_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=8, max_attempts=1, context_tokens=4_096
    )
    yield Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30)
    await client.aclose()


def formers(model: ScriptedModel) -> list[str]:
    """Return the earlier context that each request for a scene's recap contained."""
    asked = [str(call.body["messages"][-1]["content"]) for call in model.calls if asked_for(call.body) == "scene"]
    return [content.partition("<former>\n")[2].partition("\n</former>")[0] for content in asked]


async def test_a_long_scene_is_summarised_in_parts_that_are_joined(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    await settle_rounds(dispatcher, clock)
    assert calls(model) == ["scene", "scene", "scene", "recap", "recap"]  # the last is the running one
    (scene, _) = await scenes(api)
    assert scene["title"] == "Lamps 87 to 130"
    assert await recap(api) == list(range(1, 131))


async def test_parts_that_were_made_are_not_asked_for_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    answer = story_model()
    model.script(answer, answer, refuses(500))
    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    await settle_rounds(dispatcher, clock)
    asked = [body for body in model.requests if asked_for(body) == "scene"]
    first_numbers = [re.findall(r"lamp number (\d+)", body["messages"][-1]["content"])[0] for body in asked]
    assert first_numbers == ["1", "44", "87", "87"]
    assert '"# Outcomes' in formers(model)[3]
    assert await recap(api) == list(range(1, 131))


STORY = "*I take your hand.* You laugh."


async def test_refused_answers_are_counted_for_each_part(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    answer = story_model()
    model.script(STORY, answer, STORY, answer, refuses(500), STORY, STORY, answer, STORY)
    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:10] == ["scene"] * 8 + ["recap"] * 2
    complaints = ["was refused" in body["messages"][-1]["content"] for body in model.requests[:10]]
    assert complaints == [False, True, False, True, False, False, True, True, False, True]
    assert (await scenes(api))[0]["origin"] == "model"
    assert await recap(api) == list(range(1, 131))


async def test_three_refused_answers_for_a_part_end_the_asking(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    answer = story_model()
    model.script(STORY, answer, STORY, STORY, STORY)
    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:6] == ["scene"] * 5 + ["recap"]
    assert (await scenes(api))[0]["origin"] == "extractive"


async def test_parts_of_a_changed_scene_are_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    answer = story_model()
    model.script(answer, answer, refuses(500))
    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    clock.step(1)
    await dispatcher.drain()
    await edit(api, "m50", content="Something about lamp number 777.")
    await settle_rounds(dispatcher, clock)
    assert calls(model).count("scene") == 6
    assert 777 in await recap(api)


@pytest.mark.parametrize(
    ("later", "origin"),
    [
        ([STORY], "model"),
        ([STORY, refuses(500), STORY], "model"),
        ([STORY, refuses(500), STORY, STORY], "extractive"),
    ],
)
async def test_answers_for_parts_thrown_away_do_not_count(
    later: list[Step],
    origin: str,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    answer = story_model()
    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    scene = (await set_break(api, 130))["items"][0]
    await settle_rounds(dispatcher, clock)
    said = (await get(api, "/messages", limit=500))["items"][49]["content"]
    ok(await api.post(f"/v1/chats/c/scenes/{scene['id']}/regenerate", json={"instruction": "Name the lamps."}), 202)
    await edit(api, "m50", content="Something about lamp number 777.")
    model.script(STORY, answer, STORY, refuses(500))
    await settle(dispatcher, clock)  # the first part of the edited scene is kept with the work
    await edit(api, "m50", content=said)  # which makes nothing due: the recap is valid again, and the wish stays
    model.script(*later)
    await settle_rounds(dispatcher, clock)
    assert (await scenes(api))[0]["origin"] == origin


async def test_each_part_knows_what_the_one_before_called_things(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 100))
    await set_break(api, 100)
    await settle_rounds(dispatcher, clock)
    first, second = formers(model)
    assert first == '""'
    assert "lamp: 50" in second


async def test_sixty_messages_are_summarised_in_one_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 62))
    await set_break(api, 60)
    await settle_rounds(dispatcher, clock)
    assert calls(model) == ["scene", "recap"]


async def test_a_part_that_does_not_fit_is_halved(
    api: httpx.AsyncClient, small_sweep: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 60))
    await set_break(api, 60)
    await settle_rounds(small_sweep, clock)
    assert await statuses(api) == ["ready"]
    assert calls(model).count("scene") > 1
    assert await recap(api) == list(range(1, 61))


async def test_a_message_that_does_not_fit_even_alone_is_a_failure(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    await set_break(api, 2)
    client = ModelClient(model.base_url, "scripted", timeout_s=5 * SLOWNESS, max_attempts=1, context_tokens=2_000)
    clock.step(2)
    await Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30).drain()
    await client.aclose()
    assert model.calls == []
    assert "does not fit" in (await scenes(api))[0]["error"]


async def test_a_wish_is_sent_with_every_part(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    def answer(request: Request) -> str:
        return "# Outcomes\n- They spoke of #1." if asked_for(request) == "scene" else "# Outcomes\n- #1."

    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 80))
    scene = (await set_break(api, 80))["items"][0]
    path = f"/v1/chats/c/scenes/{scene['id']}/regenerate"
    assert (await api.post(path, json={"instruction": "Mention the key."})).status_code == 202
    await settle_rounds(dispatcher, clock)
    asked = [str(call.body) for call in model.calls if asked_for(call.body) == "scene"]
    assert ["Mention the key." in request for request in asked] == [True, True]


async def test_without_a_model_a_long_scene_is_quoted_whole(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 132))
    await set_break(api, 130)
    await settle_rounds(quoting_dispatcher, clock)
    assert len(await statuses(api)) == 1
    assert "pending" not in await statuses(api)


async def test_a_list_counts_a_scenes_messages_up_to_a_thousand(api: httpx.AsyncClient) -> None:
    await put(api, settings={"preset": "agent"})  # in which no forced cut closes a scene
    await append(api, talk(1, 1_000))
    assert [scene["messages"] for scene in await scenes(api)] == [1_000]
    await append(api, talk(1_001, 1_001))
    (opened,) = await scenes(api)
    assert (opened["messages"], opened["first_message_id"], opened["last_message_id"]) == (None, "m1", "m1001")
    await set_break(api, 1_000)
    assert [scene["messages"] for scene in await scenes(api)] == [1_000, 1]
    assert await ranges(api) == [(1, 1_000), (1_001, None)]


async def test_setting_a_break_reads_its_messages_once(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 12))
    app_database: Database = api._transport.app.state.database  # type: ignore[attr-defined]
    async with watched(app_database) as statements:
        await set_break(api, 8)
    read = [text for text in statements.asked if "FROM unnest($3::int[], $4::int[])" in text and "digest" in text]
    assert len(read) == 2  # to see whether the message is there, and to say what the scene says
