"""The running recap: folds, chosen, written, deleted and rebuilt versions, and excluded scenes."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.background import settle_rounds, while_the_model_is_asked
from tests.book import due_rows
from tests.scenes.story import (
    BY_HAND,
    ask,
    asked_for,
    calls,
    recap,
    scenes,
    set_break,
    shown,
    statuses,
    story_model,
    versions,
)
from tests.scripted_model import Reply, Request, ScriptedModel, refuses
from tests.talk import append, edit, get, put, talk


async def make_scenes(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, *ends: int) -> None:
    """Append up to two messages behind each of `ends`, set a break there, and have all made that follows."""
    for end in ends:
        head = (await get(api, ""))["head_seq"]
        await append(api, talk(head + 1, end + 2))
        await set_break(api, end)
        await settle_rounds(dispatcher, clock, rounds=3)


@pytest.fixture
async def three_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """Three scenes of four messages, each folded in when it was closed."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await make_scenes(api, dispatcher, clock, 4, 8, 12)


async def test_an_empty_chat_has_an_empty_recap(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    found = await get(api, "/recap")
    assert (found["version"], found["text"], found["current"]) == (None, "", False)
    assert (await get(api, "/recap/versions"))["items"] == []


async def test_the_state_is_headed_by_the_scene_it_belongs_to(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    def answer(request: Request) -> str | Reply:
        if asked_for(request) == "recap":
            return "# Outcomes\n- They met.\n# Threads\n# State\n- place: the pier\n- scene: somewhere\n- lamp: lit"
        return story_model()(request)

    model.otherwise = answer
    await put(api, settings=BY_HAND)
    await make_scenes(api, dispatcher, clock, 4, 8)
    expected = "# Outcomes\n- They met.\n\n# State\n- scene: {}\n- place: the pier\n- lamp: lit"
    assert (await get(api, "/recap/versions/1"))["text"] == expected.format("Lamps 1 to 4")
    assert (await get(api, "/recap"))["text"] == expected.format("Lamps 5 to 8")
    segments = (await get(api, "/context"))["segments"]
    (shown_text,) = (segment["text"] for segment in segments if segment["name"] == "recap")
    assert "### State\n- scene: Lamps 5 to 8\n- place: the pier" in shown_text

    model.otherwise = lambda request: answer(request) if asked_for(request) == "recap" else "# Outcomes\n- #9 left."
    await make_scenes(api, dispatcher, clock, 12)  # a scene without a state
    assert (await get(api, "/recap"))["text"] == expected.format("Lamps 5 to 8")
    scene = (await scenes(api))[2]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "# State\n- lamp: broken", "title": None})
    await settle_rounds(dispatcher, clock)
    assert (await get(api, "/recap"))["text"] == expected.format("3")


async def test_every_scene_is_folded_in_when_its_recap_is_made(api: httpx.AsyncClient, three_scenes: None) -> None:
    assert await recap(api) == list(range(1, 13))
    assert await shown(api) == list(range(1, 13))
    assert await versions(api) == [(3, 12, False, True), (2, 8, False, False), (1, 4, False, False)]
    found = await get(api, "/recap")
    assert (found["version"], found["first_seq"], found["last_seq"]) == (3, 1, 12)
    assert (found["origin"], found["edited"], found["current"]) == ("model", False, True)


async def test_scenes_closed_in_bulk_are_one_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 14))
    for seq in (4, 8, 12):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    assert calls(model) == ["scene", "scene", "scene", "recap"]
    assert await versions(api) == [(1, 12, False, True)]


async def test_too_many_scenes_for_one_call_are_folded_in_parts(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 22))
    for seq in range(2, 21, 2):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    assert calls(model).count("recap") == 2
    assert await versions(api) == [(2, 20, False, True), (1, 16, False, False)]
    assert await recap(api) == list(range(1, 21))


async def test_a_change_in_an_older_scene_rebuilds_from_there(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    asked = len(model.calls)
    await edit(api, "m6", content="Something about lamp number 77.")
    assert await recap(api) == [1, 2, 3, 4]
    assert await shown(api) == [1, 2, 3, 4]
    await settle_rounds(dispatcher, clock)
    assert calls(model)[asked:] == ["scene", "recap"]
    assert await recap(api) == [1, 2, 3, 4, 5, 77, 7, 8, 9, 10, 11, 12]
    assert await versions(api) == [(4, 12, False, True), (1, 4, False, False)]


async def test_an_edit_undone_before_any_job_costs_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    asked = len(model.calls)
    before = (await get(api, "/messages/m6"))["content"]
    await edit(api, "m6", content="Something about lamp number 77.")
    await edit(api, "m6", content=before)
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    assert await recap(api) == list(range(1, 13))


async def test_a_scene_recap_by_a_person_is_folded_in(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    scene = (await scenes(api))[1]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "Kai found #55."})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 55, 9, 10, 11, 12]


async def test_an_older_version_made_current_waits_for_the_next_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    asked = len(model.calls)
    chosen = await ask(api, "PUT", "/recap/current", 200, {"version": 1})
    assert (chosen["version"], chosen["current"]) == (1, True)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [1, 2, 3, 4]
    assert len(model.calls) == asked
    await make_scenes(api, dispatcher, clock, 16)
    assert await recap(api) == list(range(1, 17))
    assert calls(model)[asked:] == ["scene", "recap"]
    assert [version for version, *_ in await versions(api)] == [4, 3, 2, 1]


async def test_a_chosen_older_version_waits_for_the_next_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await ask(api, "PUT", "/recap/current", 200, {"version": 1})
    await put(api, status=200, metadata={"theme": "dark"})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [1, 2, 3, 4]
    await make_scenes(api, dispatcher, clock, 16)
    assert await recap(api) == list(range(1, 17))


async def test_a_scene_is_folded_in_when_it_is_no_longer_excluded(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 14))
    for seq in (4, 8, 12):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 1}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == list(range(1, 9))
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 0}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == list(range(1, 13))


async def test_a_persons_version_is_the_base_of_the_next_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    asked = len(model.calls)
    written = await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    assert (written["version"], written["edited"], written["last_seq"]) == (4, True, 12)
    assert await shown(api) == [42]
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    await make_scenes(api, dispatcher, clock, 16)
    assert await recap(api) == [42, 13, 14, 15, 16]


async def test_a_persons_version_stays_and_says_when_it_is_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    await edit(api, "m10", content="Something about lamp number 77.")
    await settle_rounds(dispatcher, clock)
    found = await get(api, "/recap")
    assert (found["text"], found["stale"]) == ("All of it was #42.", True)
    assert await shown(api) == [42]


async def test_after_a_deletion_the_highest_version_is_current(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await ask(api, "DELETE", "/recap/versions/3", 204)
    assert await versions(api) == [(2, 8, False, True), (1, 4, False, False)]
    assert await shown(api) == list(range(1, 9))
    await ask(api, "DELETE", "/recap/versions/1", 204)
    assert await versions(api) == [(2, 8, False, True)]
    await ask(api, "DELETE", "/recap/versions/1", 404)
    await ask(api, "PUT", "/recap/current", 404, {"version": 9})


async def test_a_rebuild_starts_empty_and_keeps_former_versions(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    asked = len(model.calls)
    due = await ask(api, "POST", "/recap/rebuild", 202)
    assert set(due) == {"layer", "work_id", "run_after"}
    await settle_rounds(dispatcher, clock)
    assert calls(model)[asked:] == ["recap"]
    assert await recap(api) == list(range(1, 13))
    assert [(version, current) for version, _, _, current in await versions(api)][:2] == [(5, True), (4, False)]


async def test_the_newest_scenes_are_left_out_on_every_path(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 1}}})
    assert await recap(api) == await shown(api) == list(range(1, 9))
    await settle_rounds(dispatcher, clock)
    await make_scenes(api, dispatcher, clock, 16)
    assert await recap(api) == await shown(api) == list(range(1, 13))
    await ask(api, "POST", "/recap/rebuild", 202)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == list(range(1, 13))
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 4}}})
    assert await recap(api) == await shown(api) == []
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == []
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 0}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == list(range(1, 17))


async def test_a_scene_no_longer_excluded_does_not_wait_for_the_next(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings={"preset": "scenes", "scenes": {"detect": False, "recap": {"exclude_latest": 1}}})
    await make_scenes(api, dispatcher, clock, 4, 8)
    assert await recap(api) == [1, 2, 3, 4]
    tell = story_model()
    model.otherwise = lambda request: refuses(500) if asked_for(request) == "scene" else tell(request)
    await make_scenes(api, dispatcher, clock, 12)
    assert await statuses(api) == ["ready", "ready", "pending"]
    assert await recap(api) == await shown(api) == list(range(1, 9))


async def test_a_personal_recap_replaces_the_current_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 1}}})
    written = await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    assert (written["last_seq"], written["edited"]) == (8, True)
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 0}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [42, 9, 10, 11, 12]


async def test_a_personal_recap_survives_the_exclusion_of_its_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 14))
    for seq in (4, 8, 12):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 1}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == []
    await make_scenes(api, dispatcher, clock, 16)
    assert await recap(api) == await shown(api) == [42]
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 0}}})
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == await shown(api) == [42, 13, 14, 15, 16]


async def test_a_recap_without_scenes_is_shown_in_each_preset(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    written = await ask(api, "PUT", "/recap", 200, {"text": "Long ago there was #42."})
    assert (written["version"], written["first_seq"], written["last_seq"]) == (1, None, None)
    assert await shown(api) == [42]


async def test_with_scenes_off_only_a_persons_version_is_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    await put(api, status=200, settings={"scenes": {"enabled": False}})
    assert await shown(api) == []
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    assert await shown(api) == [42]


async def test_a_failed_scene_is_skipped_and_covered_when_it_is_made(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    tell = story_model()

    def without_second(request: Request) -> str | Reply:
        refused = asked_for(request) == "scene" and "lamp number 6." in str(request)
        return refuses(400) if refused else tell(request)

    model.otherwise = without_second
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 14))
    for seq in (4, 8, 12):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock, rounds=2)
    assert await recap(api) == [1, 2, 3, 4]
    for _ in range(MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["ready", "failed", "ready"]
    assert await recap(api) == [1, 2, 3, 4, 9, 10, 11, 12]
    model.otherwise = tell
    await ask(api, "POST", f"/scenes/{(await scenes(api))[1]['id']}/regenerate", 202)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == list(range(1, 13))


async def test_a_scene_without_content_keeps_the_recap_without_a_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    await append(api, talk(15, 18))
    for n in range(13, 17):
        await edit(api, f"m{n}", excluded=True)
    asked = len(model.calls)
    await set_break(api, 16)
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    found = await get(api, "/recap")
    assert (found["last_seq"], await recap(api)) == (16, list(range(1, 13)))


async def test_a_scene_changed_during_its_fold_is_folded_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 6))
    await set_break(api, 4)
    clock.step(2)
    await dispatcher.drain()
    assert calls(model) == ["scene"]
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await edit(api, "m2", content="Something about lamp number 77.")
    assert await recap(api) == []
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 77, 3, 4]


async def test_a_fold_does_not_build_on_a_version_deleted_meanwhile(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, three_scenes: None
) -> None:
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    await append(api, talk(15, 18))
    await set_break(api, 16)
    clock.step(2)
    await dispatcher.drain()  # its own recap is made now
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "DELETE", "/recap/versions/4", 204)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == list(range(1, 17))


async def test_rubbish_for_a_recap_is_a_failure_that_is_tried_again(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 6))
    await set_break(api, 4)
    clock.step(2)
    await dispatcher.drain()
    model.otherwise = refuses(400)
    clock.step(2)
    await dispatcher.drain()
    (row,) = [row for row in await due_rows(database, tenant) if row["key"] == "recap"]
    assert (row["attempts"], row["failed_at"]) == (1, None)
    assert row["error"]
    model.otherwise = story_model()
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4]


async def test_without_a_model_scenes_are_quoted_and_put_together(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=BY_HAND)
    messages = talk(1, 10)
    messages[1]["content"] = "I promised my brother Jonas to bring the brass key back to the lighthouse."
    messages[6]["content"] = "Odette, the keeper of the lighthouse, was found dead on 14 June in Port Ellery."
    await append(api, messages)
    await set_break(api, 4)
    await set_break(api, 8)
    await settle_rounds(quoting_dispatcher, clock)
    first, second, _ = await scenes(api)
    assert (first["origin"], first["prompt_version"]) == ("extractive", "extractive/1")
    assert "brass key" in first["recap"]
    assert "14 June" in second["recap"]
    found = await get(api, "/recap")
    assert (found["origin"], found["last_seq"]) == ("extractive", 8)
    assert found["text"].startswith("# Outcomes\n- ")
    assert "brass key" in found["text"]
    assert "14 June" in found["text"]


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "  "}, {"text": "a", "version": 1}])
async def test_an_empty_recap_is_refused(api: httpx.AsyncClient, body: dict[str, object]) -> None:
    await put(api, settings=BY_HAND)
    await ask(api, "PUT", "/recap", 422, body)


async def test_the_recap_of_an_unknown_chat_is_a_404(api: httpx.AsyncClient) -> None:
    for method, path in (("GET", "/recap"), ("GET", "/recap/versions"), ("POST", "/recap/rebuild"), ("GET", "/scenes")):
        assert (await ask(api, method, path, 404))["code"] == "chat_not_found"
