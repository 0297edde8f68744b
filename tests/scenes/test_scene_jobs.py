"""The recap of a scene in the background: due with the break, made once, and what a person does meanwhile wins."""

from datetime import timedelta

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from app.registry import LAYERS
from tests.background import settle_rounds, while_the_model_is_asked
from tests.book import change, due_rows
from tests.scenes.story import (
    BY_HAND,
    ask,
    calls,
    lift_break,
    recap,
    scenes,
    set_break,
    statuses,
    story_model,
    versions,
)
from tests.scripted_model import HANG_UP, Request, ScriptedModel, refuses
from tests.talk import append, edit, get, put, said, talk


async def close_one(api: httpx.AsyncClient) -> str:
    """A chat of eight messages whose first five are a scene; returns its path."""
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 8))
    return f"/scenes/{(await set_break(api, 5))['items'][0]['id']}"


async def test_a_break_makes_the_recap_of_its_scene_due(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    path = await close_one(api)
    rows = {row["key"]: row for row in await due_rows(database, tenant)}
    assert rows.keys() == {path.rpartition("/")[2], "hide"}
    row = rows[path.rpartition("/")[2]]
    assert (row["layer"], row["at_seq"], row["run_after"]) == ("scenes", 1, clock() + timedelta(seconds=1))


async def test_an_edit_while_the_recap_is_made_wins(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await close_one(api)
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await edit(api, "m2", content="Something about lamp number 77.")
    assert await statuses(api) == ["pending"]
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:2] == ["scene", "scene"]
    assert "#77" in (await scenes(api))[0]["recap"]


async def test_a_text_written_while_the_recap_is_made_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    path = await close_one(api)
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "PATCH", path, 200, {"recap": "Kai stayed."})
    await settle_rounds(dispatcher, clock)
    assert (await get(api, path))["recap"] == "Kai stayed."


async def test_a_title_given_while_the_recap_is_made_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    path = await close_one(api)
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await ask(api, "PATCH", path, 200, {"title": "The pier"})
    made = await get(api, path)
    assert (made["title"], made["status"]) == ("The pier", "ready")


async def test_a_break_lifted_while_the_recap_is_made_leaves_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await close_one(api)
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await lift_break(api, 5)
    await settle_rounds(dispatcher, clock)
    assert [scene["open"] for scene in await scenes(api)] == [True]
    assert calls(model) == ["scene"]


async def test_a_call_that_fails_is_a_failure_that_the_scene_shows(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.script(HANG_UP, refuses(400))
    model.otherwise = story_model()
    path = await close_one(api)
    clock.step(2)
    await dispatcher.drain()
    failed = await get(api, path)
    assert (failed["status"], failed["attempts"]) == ("pending", 1)
    assert "connection" in failed["error"]
    clock.step(RETRY_DELAYS_S[0])
    await dispatcher.drain()
    assert (await get(api, path))["attempts"] == 2
    clock.step(RETRY_DELAYS_S[1])
    await dispatcher.drain()
    made = await get(api, path)
    assert (made["status"], made["attempts"], made["error"]) == ("ready", 3, None)


async def test_after_a_model_that_never_answers_the_chat_continues(
    api: httpx.AsyncClient,
    database: Database,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    path = await close_one(api)
    model.hold()
    client = ModelClient(model.base_url, "scripted", timeout_s=0.2, max_attempts=1)
    clock.step(2)
    await Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30).drain()
    await client.aclose()
    failed = await get(api, path)
    assert (failed["status"], failed["attempts"]) == ("pending", 1)
    assert "did not answer" in failed["error"]
    await append(api, talk(9, 9))


async def test_a_scene_is_summarised_from_its_own_messages_only(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    path = await close_one(api)
    await settle_rounds(dispatcher, clock)
    await append(api, talk(9, 12))
    await set_break(api, 10)
    await settle_rounds(dispatcher, clock)
    await ask(api, "POST", f"{path}/regenerate", 202)
    await settle_rounds(dispatcher, clock)
    formers = [
        "They spoke of" in str(call.body["messages"][-1]["content"]).partition("<messages>")[0]
        for call in model.calls
        if "You write down" in str(call.body["messages"][0]["content"])
    ]
    assert formers == [False, False, False]


async def test_the_recap_skips_a_scene_that_kills_each_worker(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = lambda request: refuses(500) if "lamp number 2." in str(request) else story_model()(request)
    await close_one(api)
    await append(api, talk(9, 12))
    await set_break(api, 10)
    await settle_rounds(dispatcher, clock)
    assert (await statuses(api), await recap(api)) == (["pending", "ready"], [])
    await change(database, tenant, "work", f"attempts = {MAX_ATTEMPTS}")
    clock.step(RETRY_DELAYS_S[-1])
    await settle_rounds(dispatcher, clock)
    assert await statuses(api) == ["failed", "ready"]
    assert await recap(api) == list(range(6, 11))


async def test_a_chosen_recap_is_not_extended_by_a_scene_that_failed(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = story_model()
    await close_one(api)
    await settle_rounds(dispatcher, clock)
    await append(api, talk(9, 16))
    await set_break(api, 10)
    await change(database, tenant, "work", f"attempts = {MAX_ATTEMPTS}")
    await set_break(api, 14)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 5, 11, 12, 13, 14]
    await ask(api, "PUT", "/recap/current", 200, {"version": 1})
    asked = len(model.calls)
    await settle_rounds(dispatcher, clock)
    assert (await recap(api), len(model.calls)) == ([1, 2, 3, 4, 5], asked)


async def test_a_recap_that_failed_for_good_is_not_retried_endlessly(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = lambda _: refuses(400)
    await close_one(api)
    for _ in range(3 * MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    assert await statuses(api) == ["failed"]
    assert await versions(api) == [(1, 5, False, True)]  # which has no eligible messages, so the model was not called
    model.otherwise = lambda request: story_model()(request) if "You write" in str(request) else refuses(400)
    await append(api, talk(9, 12))
    await set_break(api, 10)
    for _ in range(3 * MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    assert calls(model).count("recap") == MAX_ATTEMPTS


async def test_the_model_gets_the_users_name_and_the_language(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(str(request["messages"][-1]["content"]))
        return str(story_model(lambda possible: possible[0])(request))

    model.otherwise = answer
    await put(api, language="de", settings={"preset": "scenes", "scenes": {"min_messages": 4}})
    await append(api, [said(n, **({"name": "Nell"} if n % 2 else {})) for n in range(1, 13)])
    await settle_rounds(dispatcher, clock)
    looked, told = asked[:2]
    assert 'Write the reason in this language: "de".' in looked
    assert 'the user, whose name is "Nell"' in told
    assert 'Write in this language: "de".' in told


async def test_a_recap_without_headings_is_asked_for_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    model.script("They spoke of the lamps, and he promised to stay.")
    path = await close_one(api)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:2] == ["scene", "scene"]
    assert "lacks the headings Outcomes, Threads and State" in model.requests[1]["messages"][-1]["content"]
    assert "promised to stay" not in (await get(api, path))["recap"]


async def test_a_second_recap_without_headings_is_kept_as_outcomes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    told = "They spoke of the lamps, and he promised to stay."
    model.otherwise = story_model()
    model.script(told, told)
    path = await close_one(api)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:3] == ["scene", "scene", "recap"]
    assert (await get(api, path))["recap"] == f"# Outcomes\n{told}"


async def test_after_two_refusals_one_without_headings_is_kept(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    outcomes = "They spoke of the lamps, and he promised to stay."
    model.otherwise = story_model()
    model.script("*I take your hand.* You laugh.", "*You laugh.* I take your hand.", outcomes)
    path = await close_one(api)
    await settle_rounds(dispatcher, clock)
    assert calls(model)[:4] == ["scene", "scene", "scene", "recap"]
    scene = await get(api, path)
    assert (scene["origin"], scene["recap"]) == ("model", f"# Outcomes\n{outcomes}")
