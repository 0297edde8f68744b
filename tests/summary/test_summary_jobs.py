"""Changes during the job of a fold: its messages are edited or removed, or a person writes a text."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.work_queue import RETRY_DELAYS_S, Claimed
from app.registry import LAYERS
from app.summary.jobs import FOLD_SUMMARY
from tests.background import settle, while_the_model_is_asked
from tests.scripted_model import ScriptedModel, refuses
from tests.slowness import SLOWNESS
from tests.summary.folds import OWN_FOLDS, anchor, counting_fold, gaps, shown, versions
from tests.talk import append, context, cut_off, edit, hide, ok, put, soft_delete, talk

Thinking = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture(autouse=True)
async def chat(api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher) -> None:
    model.otherwise = counting_fold
    await put(api, settings=OWN_FOLDS)
    await append(api, talk(1, 21))


@pytest.fixture
def thinking(dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel) -> Thinking:
    @asynccontextmanager
    async def think() -> AsyncIterator[None]:
        """The model has been asked for the fold of 1…6 and answers when the block ends."""
        gate = model.hold(1)
        clock.step(2)
        draining = asyncio.create_task(dispatcher.drain())
        await gate.reached()
        yield
        gate.release()
        await draining

    return think


async def test_an_edit_during_the_call_is_in_the_next_fold(
    api: httpx.AsyncClient, thinking: Thinking, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async with thinking():
        await edit(api, "m3", content="user says a sentence about lamp number 300.")
    assert await shown(api) == []
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert await shown(api) == [1, 2, 300, 4, 5, 6]


async def test_a_message_deleted_during_the_call_is_in_no_fold(
    api: httpx.AsyncClient, thinking: Thinking, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async with thinking():
        await soft_delete(api, "m3", "m4")
    await append(api, talk(22, 23))
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert (await anchor(api), await shown(api)) == (9, [1, 2, 5, 6, 7, 8])


async def test_messages_that_come_meanwhile_disturb_nothing(api: httpx.AsyncClient, thinking: Thinking) -> None:
    async with thinking():
        await append(api, talk(22, 24))
    assert (await anchor(api), await shown(api)) == (7, [1, 2, 3, 4, 5, 6])


async def test_a_text_written_during_the_call_is_the_next_base(
    api: httpx.AsyncClient, thinking: Thinking, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async with thinking():
        ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert await shown(api) == [999, 1, 2, 3, 4, 5, 6]


async def test_a_line_cut_off_meanwhile_gets_no_fold_of_what_is_gone(
    api: httpx.AsyncClient, thinking: Thinking, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async with thinking():
        await cut_off(api, 4)
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert await versions(api) == []
    assert (await anchor(api), await shown(api)) == (1, [])


async def test_a_wish_survives_a_rewind_after_what_is_folded(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await settle(dispatcher, clock)
    await append(api, talk(22, 24))
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    async with while_the_model_is_asked(dispatcher, model):
        await cut_off(api, 24)
    await settle(dispatcher, clock)
    assert [call for call in model.calls if "Tell of the rain." in str(call.body)] == model.calls[1:]
    assert (len(model.calls), await versions(api)) == (2, [(2, 6, False)])


async def test_a_wish_for_a_first_fold_survives_a_rewind_inside_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(22, 40))
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    async with while_the_model_is_asked(dispatcher, model):
        await cut_off(api, 23)
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert all("Tell of the rain." in str(call.body) for call in model.calls)
    assert (len(model.calls), await versions(api)) == (2, [(1, 7, False)])


async def test_a_wish_ends_with_the_version_that_it_is_about(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    await cut_off(api, 4)
    await settle(dispatcher, clock)
    assert (len(model.calls), ok(await api.get("/v1/work"), 200)["items"]) == (1, [])


async def test_a_cut_does_not_wait_for_a_failed_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = lambda _: refuses(400)
    await settle(dispatcher, clock)
    for delay_s in RETRY_DELAYS_S:
        await settle(dispatcher, clock, delay_s)
    work = ok(await api.get("/v1/work"), 200)["items"]
    assert [(one["layer"], one["status"]) for one in work] == [("summary", "failed")]
    assert [one for one in (await context(api))["segments"] if one["name"] == "summary"] == []
    model.otherwise = counting_fold
    await append(api, talk(22, 22))
    await settle(dispatcher, clock)
    assert await shown(api) == [1, 2, 3, 4, 5, 6, 7]
    assert await gaps(api) == []


async def test_a_fold_of_messages_hidden_during_halving_is_retried(
    api: httpx.AsyncClient, database: Database, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async def draft_while_hidden(ctx: JobContext, claimed: Claimed, fold: Any) -> Any:
        await hide(api, (1, 21))
        try:
            return await FOLD_SUMMARY.draft(ctx, claimed, fold)
        finally:
            await hide(api, (1, 21), hidden=False)

    job = replace(FOLD_SUMMARY, draft=draft_while_hidden)
    layers = [replace(layer, jobs=(job,)) if layer.name == "summary" else layer for layer in LAYERS]
    client = ModelClient(model.base_url, "small", timeout_s=5 * SLOWNESS, max_attempts=1, context_tokens=1_300)
    clock.step(2)
    await Dispatcher(JobContext(database, clock, client), layers, slots=8, poll_s=30).drain()
    await client.aclose()
    assert model.calls == []
    (work,) = ok(await api.get("/v1/work"), 200)["items"]
    assert (work["layer"], work["attempts"], work["error"]) == (
        "summary",
        1,
        "the messages of the fold were deleted while it was being made",
    )
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    assert await versions(api) == [(1, 6, False)]


async def test_an_answer_without_change_loses_no_former_word(
    api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await settle(dispatcher, clock)
    assert await shown(api) == [1, 2, 3, 4, 5, 6]
    model.otherwise = "No changes to the summary."
    await append(api, talk(22, 30))
    await settle(dispatcher, clock)
    assert await shown(api) == [1, 2, 3, 4, 5, 6]
    assert (await gaps(api), await anchor(api) > 7) == ([], True)
