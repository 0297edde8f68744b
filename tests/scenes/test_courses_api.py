"""Scenes where the line takes another course: cut off, forked, restored, imported again; messages that go."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle_rounds
from tests.scenes.story import (
    BY_HAND,
    ask,
    calls,
    lift_break,
    ranges,
    recap,
    scenes,
    set_break,
    shown,
    statuses,
    story_model,
    versions,
)
from tests.scripted_model import ScriptedModel
from tests.statements import watched
from tests.talk import append, context, cut_off, edit, get, ok, put, said, soft_delete, talk


async def make_three_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """Three scenes of four messages, each folded in when it was closed, and an open one of two."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    for seq in (4, 8, 12):
        await append(api, talk((await get(api, ""))["head_seq"] + 1, seq + 2))
        await set_break(api, seq)
        await settle_rounds(dispatcher, clock, rounds=3)


async def test_a_break_moves_from_a_deleted_message_to_the_one_before(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    await soft_delete(api, "m8", "m7")
    assert await ranges(api) == [(1, 4), (5, 6), (7, 12), (13, None)]
    assert await statuses(api) == ["ready", "ready!", "ready"]
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["ready", "ready", "ready"]
    assert await recap(api) == [1, 2, 3, 4, 5, 6, 9, 10, 11, 12]


async def test_a_scene_with_only_deleted_messages_is_removed(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    await soft_delete(api, "m8", "m5", "m7", "m6")
    found = await scenes(api)
    assert [(scene["number"], scene["first_seq"], scene["last_seq"]) for scene in found] == [
        (1, 1, 4),
        (2, 5, 12),
        (3, 13, None),
    ]
    assert await statuses(api) == ["ready", "ready"]
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 9, 10, 11, 12]


async def test_deleting_many_messages_leaves_the_scenes_in_order(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    left = [said(n) for n in (1, 2, 9, 10, 13, 14)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": left}), 200)
    assert await ranges(api) == [(1, 2), (3, 10), (11, None)]
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 9, 10]


async def test_truncation_reopens_the_scene_that_it_divides(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    asked = len(model.calls)
    await cut_off(api, 7)
    assert await ranges(api) == [(1, 4), (5, None)]
    assert await versions(api) == [(1, 4, False, True)]
    assert await shown(api) == [1, 2, 3, 4]
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    await append(api, talk(15, 17))
    await set_break(api, 16)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 5, 6, 15, 16]


async def test_a_personal_recap_returns_when_its_scene_ends_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    scene = (await scenes(api))[1]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "Kai found #55.", "title": "The pier"})
    await cut_off(api, 7)
    assert await ranges(api) == [(1, 4), (5, None)]
    (again,) = (await set_break(api, 6))["items"]
    assert (again["id"], again["recap"], again["title"], again["stale"]) == (
        scene["id"],
        "Kai found #55.",
        "The pier",
        True,
    )


async def test_a_personal_recap_of_a_removed_scene_moves_to_the_next(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    scene = (await scenes(api))[2]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "Kai found #55.", "title": "The pier"})
    await cut_off(api, 7)
    await append(api, talk(15, 20))
    (again, _) = (await set_break(api, 18))["items"]
    assert (again["id"], again["recap"], again["title"]) == (scene["id"], "Kai found #55.", "The pier")
    assert (again["first_seq"], again["last_seq"], again["edited"], again["stale"]) == (5, 18, True, True)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 55]
    await set_break(api, 20)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 55, 19, 20]


async def test_personal_recaps_of_removed_scenes_are_joined_in_order(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    _, second, third, _ = await scenes(api)
    await ask(api, "PATCH", f"/scenes/{third['id']}", 200, {"recap": "Mira left #66.", "title": "The pier"})
    await ask(api, "PATCH", f"/scenes/{second['id']}", 200, {"recap": "Kai found #55."})
    await cut_off(api, 7)
    await append(api, talk(15, 20))
    await set_break(api, 18)
    await settle_rounds(dispatcher, clock)
    assert [(scene["title"], scene["recap"]) for scene in (await scenes(api))[1:]] == [
        ("The pier", "Kai found #55.\n\nMira left #66."),
        (None, None),
    ]
    assert await recap(api) == [1, 2, 3, 4, 55, 66]


async def test_a_personal_recap_returns_when_its_break_is_set_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    scene = (await scenes(api))[2]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "Kai found #55."})
    await lift_break(api, 12)
    await set_break(api, 14)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == list(range(1, 15))
    (again, _) = (await set_break(api, 12))["items"]
    assert again["recap"] == "Kai found #55."


async def test_a_persons_running_recap_outlives_what_was_cut_off(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    await cut_off(api, 7)
    found = await get(api, "/recap")
    assert (found["text"], found["last_seq"], found["edited"]) == ("All of it was #42.", 6, True)
    assert await shown(api) == [42]


async def test_a_fork_has_the_scenes_before_it_and_its_origin_has_all(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    before = await scenes(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 10}), 201)
    await settle_rounds(dispatcher, clock)
    forked = ok(await api.get("/v1/chats/d/scenes"), 200)["items"]
    assert [(scene["first_seq"], scene["last_seq"]) for scene in forked] == [(1, 4), (5, 8), (9, None)]
    assert [scene["recap"] for scene in forked] == [*(scene["recap"] for scene in before[:2]), None]
    assert ok(await api.get("/v1/chats/d/recap"), 200)["last_seq"] == 8
    assert await scenes(api) == before


async def test_a_restore_returns_scenes_and_recap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    before, told = await scenes(api), await context(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "x"}), 201)
    await lift_break(api, 8)
    await edit(api, "m2", content="Something about lamp number 77.")
    await settle_rounds(dispatcher, clock)
    former = (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/checkpoints/x/restore"), 201)
    await settle_rounds(dispatcher, clock)
    assert await scenes(api) == before
    assert (await context(api)) | {"line": told["line"]} == told
    assert len(await scenes(api, line=former)) == 3


async def test_a_persons_break_moves_with_its_message_in_a_re_import(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    scene = (await scenes(api))[2]
    await ask(api, "PATCH", f"/scenes/{scene['id']}", 200, {"recap": "Kai found #55.", "title": "The pier"})
    wanted = [*talk(1, 6), said(90, content="A new one about lamp number 90."), *talk(7, 14)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert await ranges(api) == [(1, 4), (5, 9), (10, 13), (14, None)]
    await settle_rounds(dispatcher, clock)
    found = await scenes(api)
    assert (found[2]["recap"], found[2]["title"], found[2]["edited"]) == ("Kai found #55.", "The pier", True)
    assert await recap(api) == [1, 2, 3, 4, 5, 6, 90, 7, 8, 55]


async def test_a_re_import_asks_no_more_for_many_breaks_than_for_few(api: httpx.AsyncClient) -> None:
    asked = []
    for chat, breaks in (("few", 2), ("many", 19)):
        await put(api, chat, settings=BY_HAND)
        await append(api, talk(1, 60), chat)
        for number in range(1, breaks + 1):
            ok(await api.put(f"/v1/chats/{chat}/scenes/breaks/{3 * number}"), 201)
        app_database: Database = api._transport.app.state.database  # type: ignore[attr-defined]
        async with watched(app_database) as statements:
            wanted = [said(90), *talk(1, 60)]
            ok(await api.put(f"/v1/chats/{chat}/messages", json={"messages": wanted}), 200)
        asked.append(len(statements.asked))
        found = ok(await api.get(f"/v1/chats/{chat}/scenes"), 200)["items"]
        assert [(scene["number"], scene["last_seq"]) for scene in found[:-1]] == [
            (number, 3 * number + 1) for number in range(1, breaks + 1)
        ]
    assert asked[1] - asked[0] <= 2


async def test_a_detected_break_is_kept_by_a_reimport(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: possible[0])
    await put(api, settings={"preset": "scenes", "scenes": {"min_messages": 4}})
    await append(api, talk(1, 12))
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 4), (5, None)]
    model.otherwise = story_model()
    ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1), said(90), *talk(2, 12)]}), 200)
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, None)]


async def test_a_break_removed_by_a_person_is_not_found_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: possible[0])
    await put(api, settings={"preset": "scenes", "scenes": {"min_messages": 4}})
    await append(api, talk(1, 12))
    await settle_rounds(dispatcher, clock)
    await lift_break(api, 4)
    ok(await api.put("/v1/chats/c/messages", json={"messages": [said(90), *talk(1, 12)]}), 200)
    await settle_rounds(dispatcher, clock)
    found = await scenes(api)
    assert [scene["last_message_id"] for scene in found] == ["m3", "m12"]  # m4 would have been the next
    await lift_break(api, 4)
    await append(api, talk(13, 16))
    await settle_rounds(dispatcher, clock)
    assert [scene["last_message_id"] for scene in await scenes(api)] == ["m5", "m16"]


async def test_an_append_without_scenes_runs_no_query_for_them(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "decay"})
    await append(api, talk(1, 4))
    app_database: Database = api._transport.app.state.database  # type: ignore[attr-defined]
    async with watched(app_database) as statements:
        await append(api, talk(5, 60))
        await soft_delete(api, "m7")
        await cut_off(api, 50)
    assert [text for text in statements.asked if "scenes" in text or "'recap'" in text] == []
    assert statements.asked


async def test_reenabled_scenes_process_changes_made_meanwhile(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_three_scenes(api, dispatcher, clock, model)
    await put(api, status=200, settings={"scenes": {"enabled": False}})
    await edit(api, "m6", content="Something about lamp number 77.")
    asked = len(model.calls)
    await settle_rounds(dispatcher, clock)
    assert len(model.calls) == asked
    assert await statuses(api) == ["ready", "ready!", "ready"]
    await put(api, status=200, settings={"scenes": {"enabled": True}})
    await settle_rounds(dispatcher, clock)
    assert calls(model)[asked:] == ["scene", "recap"]
    assert await recap(api) == [1, 2, 3, 4, 5, 77, 7, 8, 9, 10, 11, 12]
