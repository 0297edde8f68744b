"""The summary and the cuts that wait for it: each gets its fold, and leaves nothing out."""

import asyncio

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import RETRY_DELAYS_S
from tests.background import settle
from tests.scripted_model import ScriptedModel, refuses
from tests.summary.folds import OWN_FOLDS, anchor, counting_fold, gaps, shown
from tests.talk import Json, append, cut_off, edit, ok, put, soft_delete, talk

EVERY_8 = {
    "history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 60, "edges": "every_8"},
    "memos": {"enabled": False},
    "summary": {"enabled": True},
}


@pytest.fixture(autouse=True)
async def scripted(model: ScriptedModel) -> None:
    model.otherwise = counting_fold


async def assert_whole(api: httpx.AsyncClient) -> None:
    """Check that the summary covers exactly the messages before the history."""
    assert await shown(api) == list(range(1, await anchor(api)))
    assert await gaps(api) == []


async def test_a_waiting_cut_gets_its_fold_after_a_truncation(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    await cut_off(api, 30)
    await settle(dispatcher, clock)
    assert await anchor(api) == 25
    await assert_whole(api)


async def test_a_cut_that_waits_gets_its_fold_also_in_a_fork(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 29}), 201)
    await settle(dispatcher, clock)
    assert ok(await api.get("/v1/chats/f/context"), 200)["history"]["anchor_seq"] == 25


async def test_a_cut_that_moves_back_during_its_fold_leaves_no_gap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    await soft_delete(api, "m28", "m29", "m30")
    await settle(dispatcher, clock)
    assert await anchor(api) == 17
    await assert_whole(api)
    assert len(model.calls) == 1


async def test_a_full_cut_waits_for_a_fold_even_if_it_reaches_further(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await soft_delete(api, "m28", "m29", "m30")
    model.otherwise = lambda _: refuses(400)
    gate.release()
    await draining
    for _ in range(5):
        await settle(dispatcher, clock, 40)
        await assert_whole(api)
    model.otherwise = counting_fold
    await settle(dispatcher, clock, RETRY_DELAYS_S[-1])
    assert await anchor(api) == 17
    await assert_whole(api)


@pytest.mark.parametrize("settings", [EVERY_8, OWN_FOLDS])
async def test_an_edit_makes_a_fold_that_waits_for_an_hour_due_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, settings: Json
) -> None:
    model.otherwise = lambda _: refuses(400)
    await put(api, settings=settings)
    await append(api, talk(1, 30))
    await settle(dispatcher, clock)
    for delay_s in RETRY_DELAYS_S[:4]:
        await settle(dispatcher, clock, delay_s)
    model.otherwise = counting_fold
    await edit(api, "m3", content="user says a sentence about lamp number 300.")
    await settle(dispatcher, clock, 40)
    told_numbers = await shown(api)
    assert told_numbers[:4] == [1, 2, 300, 4]
    assert len(told_numbers) == await anchor(api) - 1


@pytest.mark.parametrize("settings", [EVERY_8, OWN_FOLDS])
async def test_due_folds_are_dropped_when_the_summary_is_disabled(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, settings: Json
) -> None:
    await put(api, settings=settings)
    await append(api, talk(1, 30))
    await put(api, status=200, settings={"summary": {"enabled": False}})
    await settle(dispatcher, clock, 40)
    assert model.calls == []


async def test_a_cold_cut_goes_to_no_edge_inside_a_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={**EVERY_8, "history": {"edges": "every_8"}})
    for n in range(1, 50):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    assert await anchor(api) == 33
    await soft_delete(api, *[f"m{n}" for n in range(34, 50)])
    await settle(dispatcher, clock)
    await append(api, talk(50, 59))
    await settle(dispatcher, clock)
    clock.step(400)
    await append(api, talk(60, 60))
    await assert_whole(api)


async def test_a_full_cut_covered_by_a_personal_text_needs_an_append(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    await settle(dispatcher, clock)
    assert await anchor(api) == 25
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999.", "keep": False}), 200)
    await soft_delete(api, *[f"m{n}" for n in range(18, 31)])
    assert await anchor(api) == 9
    for n in (34, 35, 36):  # from the third on, 17 leaves enough, in the middle of the text's range
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        assert (await anchor(api), await shown(api)) == (9, [])
    await append(api, talk(37, 37))
    assert (await anchor(api), await shown(api)) == (31, [999])
    assert await gaps(api) == []


async def test_a_full_cut_does_not_wait_for_what_a_kept_text_covers(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    await soft_delete(api, *[f"m{n}" for n in range(18, 31)])
    assert (await anchor(api), await shown(api)) == (9, [999])
    await append(api, talk(34, 36))
    assert (await anchor(api), await shown(api)) == (17, [999])
    assert await gaps(api) == []
