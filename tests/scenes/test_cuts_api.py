"""Scenes and the history: where cuts fall, what they wait for, what a forced one closes."""

from typing import Any

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from app.registry import LAYERS
from app.scenes.schedule import NAME
from tests.background import settle_rounds
from tests.scenes.story import (
    NO_BREAK,
    anchor,
    ask,
    asked_for,
    calls,
    lift_break,
    ranges,
    scenes,
    set_break,
    shown,
    story_model,
)
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, context, edit, get, put, soft_delete, talk

SHORT: dict[str, Any] = {
    "preset": "scenes",
    "history": {"keep_messages": 4, "max_messages": 24},
    "scenes": {"detect": False, "auto_hide": -1},
}


async def inclusion(api: httpx.AsyncClient) -> list[str]:
    return [item["status"] for item in (await get(api, "/inclusion"))["items"]]


async def test_a_cut_is_at_a_break_and_leaves_the_last_two_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 10))
    for seq, expected in ((4, 1), (8, 5)):
        await set_break(api, seq)
        await settle_rounds(dispatcher, clock)
        await append(api, talk((await get(api, ""))["head_seq"] + 1, seq + 7))
        assert await anchor(api) == expected
    found = await context(api)
    assert found["history"]["last_cut"]["reason"] == "full"
    assert await shown(api) == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_a_cut_waits_until_the_recap_covers_what_it_removes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await put(api, settings=SHORT)
    await append(api, talk(1, 12))
    await set_break(api, 4)
    await set_break(api, 8)
    await append(api, talk(13, 14))
    await settle_rounds(dispatcher, clock)
    assert await anchor(api) == 1
    model.otherwise = story_model()
    clock.step(600)
    await settle_rounds(dispatcher, clock)
    assert await anchor(api) == 5
    assert await inclusion(api) == ["recap"] * 4 + ["verbatim"] * 10


async def test_a_fold_that_a_cut_waits_for_is_retried_like_others(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    tell = story_model()
    model.otherwise = lambda request: refuses(400) if asked_for(request) == "recap" else tell(request)
    await put(api, settings=SHORT)
    await append(api, talk(1, 12))
    await set_break(api, 4)
    await set_break(api, 8)
    await append(api, talk(13, 14))
    for _ in range(2 * MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    assert calls(model).count("recap") == MAX_ATTEMPTS


async def test_a_forced_cut_closes_the_open_scene_and_makes_its_recap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 24))
    found = await context(api)
    assert found["history"]["last_cut"]["reason"] == "forced"
    at_seq = found["history"]["anchor_seq"]
    (closed, opened) = await scenes(api)
    assert (closed["last_seq"], closed["closed_by"], opened["first_seq"]) == (at_seq - 1, "cut", at_seq)
    assert found["memo_window"]["gaps"] == [[1, at_seq - 1]]
    assert (await inclusion(api))[0] == "pending"
    await settle_rounds(dispatcher, clock)
    assert await shown(api) == list(range(1, at_seq))
    assert (await context(api))["memo_window"]["gaps"] == []
    assert (await inclusion(api))[0] == "recap"


async def test_a_forced_cut_at_an_existing_break_closes_no_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await put(api, settings=SHORT)
    await append(api, talk(1, 12))
    await set_break(api, 4)
    await set_break(api, 8)
    await append(api, talk(13, 24))
    assert (await context(api))["history"]["last_cut"]["reason"] == "forced"
    assert await anchor(api) == 5
    assert await ranges(api) == [(1, 4), (5, 8), (9, None)]


async def test_the_recap_is_at_the_position_of_the_settings(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 6))
    await set_break(api, 4)
    await settle_rounds(dispatcher, clock)
    assert await shown(api) == [1, 2, 3, 4]  # at once, though the history still has all of it
    await put(api, status=200, settings={"scenes": {"recap": {"position": "none"}}})
    assert await shown(api) == []
    await put(api, status=200, settings={"scenes": {"recap": {"position": 1, "depth": 1, "scan": True}}})
    assert await shown(api) == [1, 2, 3, 4]


async def test_a_failed_scene_before_the_history_is_a_gap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK  # an answer that is kept whole as outcomes
    await put(api, settings=SHORT)
    await append(api, talk(1, 12))
    await set_break(api, 4)
    await set_break(api, 8)
    await append(api, talk(13, 14))
    await settle_rounds(dispatcher, clock)
    assert await anchor(api) == 5
    await edit(api, "m2", content="Something about lamp number 77.")
    assert (await context(api))["memo_window"]["gaps"] == [[1, 4]]


async def test_the_context_cache_equals_the_tables_after_each_change(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 12))

    async def check() -> None:
        key = chat_key(tenant, "c")
        query = "SELECT (context_cache -> 'scenes')::text FROM chats WHERE chat_key = $1 AND line_status = 'current'"
        async with database.raw() as connection:
            before = await connection.fetchval(query, key)
        await put(api, status=200, metadata={})  # applies all settings again
        async with database.raw() as connection:
            assert await connection.fetchval(query, key) == before

    await check()
    for seq in (4, 8, 12):
        await set_break(api, seq)
        await check()
        await settle_rounds(dispatcher, clock)
        await check()
    await append(api, talk(13, 13))
    await check()
    await soft_delete(api, "m13")
    await check()
    await append(api, talk(19, 19))
    await check()
    await edit(api, "m6", content="Something about lamp number 77.")
    await check()
    await append(api, talk(14, 18))
    await check()
    await lift_break(api, 8)
    await check()
    await settle_rounds(dispatcher, clock)
    await check()
    await ask(api, "PUT", "/recap", 200, {"text": "All of it was #42."})
    await check()
    await ask(api, "DELETE", "/messages?from_seq=6", 204)
    await check()
    assert NAME in {layer.name for layer in LAYERS}
