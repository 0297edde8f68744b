"""Detection of breaks: when it runs, which answers are valid, and what happens without a model."""

import re
from collections.abc import Sequence
from datetime import timedelta

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.background import settle_rounds, while_the_model_is_asked
from tests.book import due_rows
from tests.scenes.story import (
    BY_HAND,
    NO_BREAK,
    ask,
    asked_for,
    calls,
    lift_break,
    ranges,
    scenes,
    set_break,
    story_model,
)
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, cut_off, edit, put, said, soft_delete, talk

LOOKING = {"preset": "scenes", "scenes": {"min_messages": 4, "offset": 2}}


def first_of(possible: Sequence[int]) -> int:
    return possible[0]


def numbers_of(content: str) -> list[int]:
    """The numbers of the messages that a request quotes."""
    return [int(n) for n in re.findall(r"lamp number (\d+)", content)]


async def looks(database: Database, tenant: str) -> list[Json]:
    """The looks for a break that are due."""
    return [dict(row) for row in await due_rows(database, tenant) if row["key"] == "detect"]


async def test_detection_follows_an_answer_in_a_long_enough_scene(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings=LOOKING)
    for n in range(1, 12):
        await append(api, [said(n)])
        assert await looks(database, tenant) == []
    await append(api, [said(12)])
    (due,) = await looks(database, tenant)
    assert (due["layer"], due["at_seq"]) == ("scenes", 1)


async def test_the_users_message_and_a_thought_make_nothing_due(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings=LOOKING)
    await append(api, [said(n, role="user") for n in range(1, 15)])
    await append(api, [said(15, role="assistant", kind="thought")])
    assert await looks(database, tenant) == []


async def test_the_break_that_the_model_names_closes_the_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: 5 if 5 in possible else None)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    await settle_rounds(dispatcher, clock)
    closed, opened = await scenes(api)
    assert (closed["last_seq"], closed["closed_by"], closed["reason"]) == (5, "model", "Next day.")
    assert (closed["title"], closed["status"]) == ("Lamps 1 to 5", "ready")
    assert opened["first_seq"] == 6


async def test_the_model_gets_candidates_and_messages_for_context(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    await edit(api, "m2", excluded=True)
    await settle_rounds(dispatcher, clock)
    (call,) = model.calls
    content = call.body["messages"][-1]["content"]
    assert "Possible answers: 5, 6, 7, 8, 9, 10 or null" in content
    assert "lamp number 2." not in content
    assert content.count('"context": true') == 2


async def test_an_answer_outside_the_candidates_is_asked_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.script('{"break_at": 2, "reason": "The pier."}', '{"break_at": 4, "reason": "The pier."}')
    model.otherwise = story_model()
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    await settle_rounds(dispatcher, clock, rounds=1)
    assert await ranges(api) == [(1, 4), (5, None)]
    assert calls(model)[:2] == ["break", "break"]
    assert "2 is not one of the possible answers" in model.calls[1].body["messages"][-1]["content"]


async def test_after_three_useless_answers_a_pause_ends_a_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = "What a lovely story! Shall we go on?"
    await put(api, settings=LOOKING)
    start = clock()
    hours = [*range(4), *range(12, 20)]
    await append(
        api, [said(n, sent_at=(start + timedelta(hours=hour)).isoformat()) for n, hour in enumerate(hours, start=1)]
    )
    clock.step(2)
    await dispatcher.drain()
    assert calls(model)[:3] == ["break"] * 3
    closed = (await scenes(api))[0]
    assert (closed["last_seq"], closed["closed_by"]) == (4, "time")
    assert closed["reason"] == "no usable answer: 9 h passed here"


async def test_a_detection_that_failed_is_due_again_after_an_answer(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = refuses(400)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    for _ in range(MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    assert (await looks(database, tenant))[0]["failed_at"] is not None
    model.otherwise = story_model(first_of)
    await append(api, talk(13, 14))
    await settle_rounds(dispatcher, clock, rounds=1)
    assert (await ranges(api))[0] == (1, 4)


async def test_messages_added_during_detection_are_searched_next(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await append(api, talk(13, 22))
    clock.step(2)
    await dispatcher.drain()
    assert ["lamp number 22" in str(call.body) for call in model.calls] == [False, True]


async def test_messages_after_a_detected_break_are_searched_too(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(first_of)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 20))
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 4), (5, 8), (9, 12), (13, None)]


async def test_a_break_that_a_person_lifted_is_never_found_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: 5 if 5 in possible else None)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 5), (6, None)]
    await lift_break(api, 5)
    await append(api, talk(13, 18))
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, None)]
    asked = [call for call in model.calls if asked_for(call.body) == "break"]
    assert "Possible answers: 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 or null" in str(asked[-1].body)


async def test_a_break_can_be_found_in_a_truncated_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: 6 if 6 in possible else None)
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    closed = (await set_break(api, 8))["items"][0]
    await ask(api, "PATCH", f"/scenes/{closed['id']}", 200, {"title": "The lamps"})
    await cut_off(api, 7)
    await put(api, status=200, settings={"scenes": {"min_messages": 4, "detect": True}})
    await append(api, talk(9, 14))
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 6), (7, None)]
    assert (await scenes(api))[0]["title"] == "The lamps"


async def test_a_break_set_meanwhile_wins_over_the_models(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: 6 if 6 in possible else None)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await set_break(api, 5)
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 5), (6, None)]


async def test_a_break_set_and_lifted_meanwhile_stays_lifted(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: 5 if 5 in possible else None)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await set_break(api, 5)
        await lift_break(api, 5)
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, None)]


async def test_a_break_at_a_deleted_message_is_searched_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model(lambda possible: possible[-1])
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await soft_delete(api, "m10")
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 9), (10, None)]


async def test_a_detection_that_lost_its_lease_sets_no_break(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = story_model(first_of)
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "POST", "/scenes/detect", 202)  # a person requests detection again, for the current messages
        assert (await looks(database, tenant))[0]["lease"] is None
        await cut_off(api, 3)
    assert await ranges(api) == [(1, None)]


async def test_a_person_may_have_a_break_looked_for_where_that_is_off(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = story_model(first_of)
    await put(api, settings={"preset": "scenes", "scenes": {"min_messages": 4, "detect": False}})
    await append(api, talk(1, 8))
    assert await looks(database, tenant) == []
    due = await ask(api, "POST", "/scenes/detect", 202)
    assert set(due) == {"layer", "work_id", "run_after"}
    await settle_rounds(dispatcher, clock)
    assert await ranges(api) == [(1, 4), (5, None)]


async def test_detection_disabled_meanwhile_makes_no_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=LOOKING)
    await append(api, talk(1, 12))
    await put(api, status=200, settings={"scenes": {"detect": False}})
    await settle_rounds(dispatcher, clock)
    assert model.calls == []


async def test_the_oldest_messages_are_read_first(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes", "scenes": {"min_messages": 15, "max_messages": 10}})
    await append(api, talk(1, 30))
    await settle_rounds(dispatcher, clock)
    first, second = (call.body["messages"][-1]["content"] for call in model.calls)
    assert "Possible answers: 15, 16 or null" in first
    assert "Possible answers: 17, 18, 19, 20, 21, 22, 23, 24 or null" in second
    assert numbers_of(first) == list(range(1, 19))  # 9 to 18, and the judged ones before them as context
    assert numbers_of(second) == list(range(7, 27))


async def test_without_a_model_a_long_pause_ends_the_scene(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=LOOKING)
    start = clock()
    hours = [0, 1, 2, 3, 4, *range(13, 20)]
    await append(
        api,
        [said(n, sent_at=(start + timedelta(hours=hour)).isoformat()) for n, hour in enumerate(hours, start=1)],
    )
    await settle_rounds(quoting_dispatcher, clock)
    closed, opened = await scenes(api)
    assert (closed["last_seq"], closed["closed_by"]) == (5, "time")
    assert closed["reason"] == "no model: 9 h passed here"
    assert closed["origin"] == "extractive"
    assert opened["first_seq"] == 6


async def test_without_a_model_and_without_a_pause_the_scene_goes_on(
    api: httpx.AsyncClient, database: Database, tenant: str, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=LOOKING)
    await append(api, talk(1, 20))
    await settle_rounds(quoting_dispatcher, clock)
    assert await ranges(api) == [(1, None)]
    assert await looks(database, tenant) == []
