"""A rebuild of the running recap: in parts over all scenes, and not while scenes are disabled."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle_rounds, while_the_model_is_asked
from tests.book import due_rows
from tests.scenes.story import BY_HAND, ask, calls, recap, set_break, shown, story_model, versions
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, edit, get, put, talk


async def make_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, *, scenes: int
) -> None:
    """Scenes of two messages each with recaps, and a running recap that a person has edited."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 2 * scenes + 2))
    for number in range(1, scenes + 1):
        await set_break(api, 2 * number)
    await settle_rounds(dispatcher, clock)
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})


async def test_a_rebuild_folds_all_scenes_in_several_calls(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=10)
    asked = len(model.calls)
    await ask(api, "POST", "/recap/rebuild", 202)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[asked:] == ["recap", "recap"]
    assert await recap(api) == await shown(api) == list(range(1, 21))


async def test_a_rebuild_is_refused_while_scenes_are_disabled(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    await put(api, status=200, settings={"scenes": {"enabled": False}})
    refused = await ask(api, "POST", "/recap/rebuild", 409)
    assert refused["code"] == "scenes_off"
    assert "scenes.enabled" in refused["detail"]
    await settle_rounds(dispatcher, clock)
    assert await shown(api) == [42]


async def test_a_rebuild_due_is_dropped_when_scenes_are_disabled(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    before, asked = await versions(api), len(model.calls)
    await ask(api, "POST", "/recap/rebuild", 202)
    await put(api, status=200, settings={"scenes": {"enabled": False}})
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    assert await versions(api) == before
    assert (await get(api, "/recap"))["text"] == "All of it was #42."


async def test_a_text_written_during_a_rebuild_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    await ask(api, "POST", "/recap/rebuild", 202)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "PUT", "/recap", 200, {"text": "In truth it was #43."})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [43]


async def test_a_text_written_while_a_rebuild_waits_for_a_retry_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    model.otherwise = refuses(500)
    await ask(api, "POST", "/recap/rebuild", 202)
    await settle_rounds(dispatcher, clock, rounds=1)
    await ask(api, "PUT", "/recap", 200, {"text": "In truth it was #43."})
    model.otherwise = story_model()
    clock.step(600)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [43]


async def test_a_version_chosen_during_a_rebuild_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    await ask(api, "POST", "/recap/rebuild", 202)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "PUT", "/recap/current", 200, {"version": 2})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [42]


async def test_a_due_scene_is_folded_into_the_chosen_version(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    await set_break(api, 8)
    clock.step(1)
    await dispatcher.drain()  # its own recap is made now
    await ask(api, "PUT", "/recap/current", 200, {"version": 2})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [42, 7, 8]


async def test_a_rebuild_waits_for_the_pending_first_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_scenes(api, dispatcher, clock, model, scenes=3)
    await edit(api, "m2", content="Something about lamp number 77.")
    await ask(api, "POST", "/recap/rebuild", 202)
    await dispatcher.drain()
    assert await recap(api) == [42]
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [1, 77, 3, 4, 5, 6]


async def test_a_rebuild_of_a_story_without_scenes_waits_for_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    await ask(api, "POST", "/recap/rebuild", 202)
    await dispatcher.drain()
    assert await due_rows(database, tenant) == []
