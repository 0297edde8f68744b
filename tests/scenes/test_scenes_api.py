"""Scenes by hand: breaks set and lifted, the list a navigator reads, what people write, bad input."""

import random

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.scenes.schemas import SceneOut
from tests.background import settle_rounds
from tests.scenes.story import BY_HAND, ask, calls, lift_break, ranges, scenes, set_break, statuses, story_model
from tests.scripted_model import ScriptedModel
from tests.talk import WAITING_FOR_NOTHING, append, edit, get, put, soft_delete, talk, walk


async def test_a_chat_without_breaks_is_one_open_scene(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    assert await scenes(api) == []
    await append(api, talk(1, 3))
    (scene,) = await scenes(api)
    assert (scene["id"], scene["number"], scene["open"], scene["recap"]) == (None, 1, True, None)
    assert (scene["first_seq"], scene["last_seq"], scene["messages"]) == (1, None, 3)
    assert (scene["first_message_id"], scene["last_message_id"]) == ("m1", "m3")


async def test_a_scene_has_its_fields_in_the_order_of_the_schema(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 3))
    await set_break(api, 2)
    for scene in await scenes(api):
        assert list(scene) == list(SceneOut.model_fields)


async def test_a_break_closes_the_scene_on_its_message(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    changed = await set_break(api, 5)
    assert changed["items"] == await scenes(api)
    closed, opened = changed["items"]
    assert (closed["number"], closed["first_seq"], closed["last_seq"], closed["messages"]) == (1, 1, 5, 5)
    assert (closed["status"], closed["closed_by"], closed["recap"], closed["stale"]) == (
        "pending",
        "person",
        None,
        False,
    )
    assert (closed["first_message_id"], closed["last_message_id"]) == ("m1", "m5")
    assert (opened["number"], opened["first_seq"], opened["open"], opened["messages"]) == (2, 6, True, 3)
    assert await get(api, f"/scenes/{closed['id']}") == closed


async def test_a_break_on_the_newest_message_leaves_no_open_scene(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    assert [item["last_seq"] for item in (await set_break(api, 4))["items"]] == [4]
    assert await ranges(api) == [(1, 4)]
    await append(api, talk(5, 5))
    assert await ranges(api) == [(1, 4), (5, None)]


async def test_a_break_inside_a_scene_splits_it_and_keeps_its_id(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 12))
    await set_break(api, 10)
    await settle_rounds(dispatcher, clock)
    (whole, _) = await scenes(api)
    first, rest = (await set_break(api, 4))["items"]
    assert (first["number"], first["first_seq"], first["last_seq"], first["status"]) == (1, 1, 4, "pending")
    assert (rest["id"], rest["number"], rest["first_seq"], rest["last_seq"]) == (whole["id"], 2, 5, 10)
    assert rest["stale"] is True
    await settle_rounds(dispatcher, clock)
    assert [scene["title"] for scene in await scenes(api)] == ["Lamps 1 to 4", "Lamps 5 to 10", None]
    assert await statuses(api) == ["ready", "ready"]


async def test_a_lifted_break_gives_its_scene_to_the_next_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 12))
    await set_break(api, 4)
    await set_break(api, 8)
    await settle_rounds(dispatcher, clock)
    await lift_break(api, 4)
    joined, _ = await scenes(api)
    assert (joined["number"], joined["first_seq"], joined["last_seq"], joined["stale"]) == (1, 1, 8, True)
    await settle_rounds(dispatcher, clock)
    assert [scene["title"] for scene in await scenes(api)] == ["Lamps 1 to 8", None]


async def test_lifting_the_last_break_opens_its_scene_again(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await lift_break(api, 5)
    (opened,) = await scenes(api)
    assert (opened["id"], opened["first_seq"], opened["open"], opened["messages"]) == (None, 1, True, 8)


async def test_a_break_that_is_set_again_restores_its_recap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    (before, _) = await scenes(api)
    asked = len(model.calls)
    await lift_break(api, 5)
    await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    (after, _) = await scenes(api)
    assert after == before
    assert "scene" not in calls(model)[asked:]


async def test_a_recap_that_comes_back_to_other_messages_is_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    await lift_break(api, 5)
    await edit(api, "m2", content="Something about lamp number 77.")
    (again, _) = (await set_break(api, 5))["items"]
    assert (again["status"], again["stale"], again["title"]) == ("ready", True, "Lamps 1 to 5")
    await settle_rounds(dispatcher, clock)
    assert "#77" in (await scenes(api))[0]["recap"]


async def test_a_break_lifted_at_once_makes_no_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await lift_break(api, 5)
    await settle_rounds(dispatcher, clock)
    assert model.calls == []


async def test_any_order_of_breaks_gives_gapless_numbered_scenes(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 24))
    chance = random.Random(7)
    breaks: set[int] = set()
    for _ in range(60):
        seq = chance.randint(1, 24)
        breaks ^= {seq}
        await (set_break if seq in breaks else lift_break)(api, seq)
        ends = sorted(breaks)
        expected: list[tuple[int, int | None]] = [
            (first, last) for first, last in zip([1, *(end + 1 for end in ends)], ends, strict=False)
        ]
        if 24 not in breaks:
            expected.append((ends[-1] + 1 if ends else 1, None))
        found = await scenes(api)
        assert [(scene["first_seq"], scene["last_seq"]) for scene in found] == expected
        assert [scene["number"] for scene in found] == list(range(1, len(expected) + 1))


async def test_the_list_is_paged_with_the_open_scene_on_the_last_page(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 9))
    for seq in (2, 4, 6, 8):
        await set_break(api, seq)
    whole = await scenes(api)
    for limit in range(1, 7):
        pages = await walk(api, "/v1/chats/c/scenes", limit=limit)
        assert [scene for page in pages for scene in page] == whole
        assert all(len(page) == limit for page in pages[:-1])


async def test_a_personal_recap_of_a_scene_stays_and_is_marked_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    closed, _ = (await set_break(api, 5))["items"]
    written = await ask(api, "PATCH", f"/scenes/{closed['id']}", 200, {"recap": "Kai stayed.", "title": "The pier"})
    assert (written["recap"], written["title"], written["edited"], written["origin"], written["status"]) == (
        "Kai stayed.",
        "The pier",
        False,
        "person",
        "ready",
    ), "nothing that the service had written was changed"
    await edit(api, "m2", content="Something about lamp number 77.")
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["ready!"]
    assert (await scenes(api))[0]["recap"] == "Kai stayed."
    assert "scene" not in calls(model)


@pytest.mark.parametrize("is_written_first", [True, False])
async def test_a_title_of_the_service_goes_when_messages_change(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, is_written_first: bool
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 10))
    await set_break(api, 5)
    await set_break(api, 8)
    await settle_rounds(dispatcher, clock)
    assert [scene["title"] for scene in await scenes(api)] == ["Lamps 1 to 5", "Lamps 6 to 8", None]
    path = f"/scenes/{(await scenes(api))[0]['id']}"
    if is_written_first:
        assert (await ask(api, "PATCH", path, 200, {"recap": "Kai stayed."}))["title"] == "Lamps 1 to 5"
        await soft_delete(api, "m1")
    else:
        await soft_delete(api, "m1")
        await ask(api, "PATCH", path, 200, {"recap": "Kai stayed."})
    await settle_rounds(dispatcher, clock)
    assert [scene["title"] for scene in await scenes(api)] == [None, "Lamps 6 to 8", None]
    assert "Lamps 1 to 5" not in str(model.calls[-1].body), "the running recap is made without the title"


async def test_a_title_of_a_person_outlives_the_messages(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    path = f"/scenes/{(await set_break(api, 5))['items'][0]['id']}"
    await ask(api, "PATCH", path, 200, {"title": "The pier"})
    await ask(api, "PATCH", path, 200, {"recap": "Kai stayed."})
    await soft_delete(api, "m1")
    assert (await get(api, path))["title"] == "The pier"


async def test_a_personal_recap_is_regenerated_only_on_request(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    path = f"/scenes/{(await set_break(api, 5))['items'][0]['id']}"
    await ask(api, "PATCH", path, 200, {"recap": "Kai stayed.", "title": "The pier"})
    refused = await ask(api, "POST", f"{path}/regenerate", 409)
    assert refused["code"] == "scene_edited"
    assert "replace_edited" in refused["detail"]
    await ask(api, "POST", f"{path}/regenerate", 202, {"replace_edited": True, "instruction": "Mention the key."})
    await settle_rounds(dispatcher, clock)
    made = await get(api, path)
    assert (made["title"], made["edited"], made["origin"]) == ("The pier", False, "model")
    assert "#5" in made["recap"]
    assert any("Mention the key." in str(call.body) for call in model.calls), "the running recap is made, too"


async def test_excluded_and_deleted_messages_are_no_part_of_a_recap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    await edit(api, "m1", excluded=True)
    await soft_delete(api, "m3")
    await settle_rounds(dispatcher, clock)
    (scene, _) = await scenes(api)
    assert scene["recap"].startswith("# Outcomes\n- They spoke of #2 #4 #5.")
    assert (scene["messages"], scene["stale"]) == (4, False)


async def test_a_scene_of_excluded_messages_is_empty_without_a_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    for n in (1, 2):
        await edit(api, f"m{n}", excluded=True)
    await set_break(api, 2)
    await settle_rounds(dispatcher, clock)
    (scene, _) = await scenes(api)
    assert (scene["status"], scene["recap"], scene["title"]) == ("empty", "", None)
    assert calls(model) == []


@pytest.mark.parametrize("seq", ["0", "two", "2.5", "-1", "2147483648"])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_break_without_a_proper_seq_is_refused(api: httpx.AsyncClient, method: str, seq: str) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    problem = await ask(api, method, f"/scenes/breaks/{seq}", 422)
    assert problem["errors"][0]["loc"] == ["path", "seq"]
    assert await ranges(api) == [(1, None)]


async def test_setting_a_break_again_changes_nothing(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    made = await set_break(api, 5)
    assert await set_break(api, 5, 200) == made
    assert made["items"] == await scenes(api)


async def test_a_break_that_is_not_there_cannot_be_lifted(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    before = await scenes(api)
    for seq in (4, 6, 9):
        assert (await lift_break(api, seq, 404))["code"] == "break_not_found"
    assert await scenes(api) == before
    await lift_break(api, 5)
    assert (await lift_break(api, 5, 404))["code"] == "break_not_found"


async def test_a_break_needs_a_message_that_is_there(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    assert "no messages" in (await set_break(api, 1, 422))["detail"]
    await append(api, talk(1, 4))
    await soft_delete(api, "m3")
    assert "4" in (await set_break(api, 5, 422))["errors"][0]["msg"]
    deleted = await set_break(api, 3, 422)
    assert deleted["errors"][0]["loc"] == ["path", "seq"]
    assert "deleted" in deleted["errors"][0]["msg"]
    assert await ranges(api) == [(1, None)]


async def test_an_unknown_scene_is_a_404(api: httpx.AsyncClient) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    lifted = (await set_break(api, 2))["items"][0]["id"]
    await lift_break(api, 2)
    for scene_id in (lifted, "019f0000-0000-7000-8000-000000000000"):
        assert (await ask(api, "PATCH", f"/scenes/{scene_id}", 404, {"title": "A"}))["code"] == "scene_not_found"
        await ask(api, "POST", f"/scenes/{scene_id}/regenerate", 404)
        await get(api, f"/scenes/{scene_id}", 404)


@pytest.mark.parametrize("body", [{}, {"title": ""}, {"title": "x" * 51}, {"recap": " "}, {"recap": "a", "number": 3}])
async def test_an_empty_or_invalid_patch_is_refused(api: httpx.AsyncClient, body: dict[str, object]) -> None:
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 4))
    scene = (await set_break(api, 2))["items"][0]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 422, body)
    assert (await scenes(api))[0] == scene


async def test_breaks_by_hand_work_in_every_preset(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=WAITING_FOR_NOTHING)
    await append(api, talk(1, 8))
    await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["pending"]
    assert model.calls == []
    await put(api, status=200, settings={"scenes": {"enabled": True, "detect": False}})
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["ready"]


async def test_a_personal_recap_moves_with_its_scenes_last_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 10))
    for seq in (4, 8):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    first, second, _ = await scenes(api)
    for scene, words in ((first, "Mine"), (second, "Mine too")):
        await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"title": words, "recap": f"{words}."})
    await lift_break(api, 8)  # what follows it is the open scene
    await lift_break(api, 4)
    await soft_delete(api, "m4", "m8", "m7")
    await settle_rounds(dispatcher, clock)
    await set_break(api, 3)
    await set_break(api, 6)
    found = [(scene["title"], scene["recap"], scene["last_seq"]) for scene in await scenes(api)]
    assert found == [("Mine", "Mine.", 3), ("Mine too", "Mine too.", 6), (None, None, None)]
