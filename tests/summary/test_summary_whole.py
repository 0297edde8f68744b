"""The summary has no gaps and covers no removed messages, for any start of the history."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, context, get, ok, put, soft_delete
from tests.words import segment_words, words


@pytest.fixture(autouse=True)
async def chat(api: httpx.AsyncClient, model: ScriptedModel) -> None:
    model.otherwise = echo
    history = {"keep_messages": 2, "grow_messages": 0, "max_messages": 40}
    await put(api, settings={"memos": {"enabled": False}, "history": history})


async def test_a_summary_requested_while_disabled_becomes_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, status=200, settings={"history": {"edges": "every_message"}})
    await append(api, words(1, 6))
    ok(await api.post("/v1/chats/c/summary/regenerate"), 202)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert "w1w" in (await get(api, "/summary"))["text"]
    await soft_delete(api, "m1")
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert "w1w" not in (await get(api, "/summary"))["text"]


async def test_a_personal_text_shows_while_disabled_despite_its_folds(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    settings = {"history": {"edges": "folds"}}
    await put(api, status=200, settings=settings | {"summary": {"enabled": True, "threshold_messages": 2}})
    ok(await api.put("/v1/chats/c/summary", json={"text": "They had met before p1p."}), 200)
    await append(api, words(1, 20))
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert "w1w" in await segment_words(api, "summary")
    await put(api, status=200, settings={"summary": {"enabled": False}})
    segments = (await context(api))["segments"]
    assert "p1p" in str([one["text"] for one in segments if one["name"] == "summary"])


async def test_an_anchor_moved_back_into_a_fold_leaves_no_gap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    """Where the edges are not the summary's own, the anchor may go back to where no fold ends."""
    history = {"keep_messages": 4, "grow_messages": 8, "max_messages": 60, "edges": "every_message"}
    settings: Json = {"history": history, "summary": {"enabled": True}}
    await put(api, status=200, settings=settings)
    for n in range(1, 14):
        await append(api, words(n, n))
        await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert (await context(api))["history"]["anchor_seq"] == 10
    assert len(await segment_words(api, "summary")) == 9
    await soft_delete(api, "m13")
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert (await context(api))["history"]["anchor_seq"] == 9
    assert (await context(api))["memo_window"]["gaps"] == []
    assert len(await segment_words(api, "summary")) == 8


async def test_messages_of_a_forced_cut_are_folded_with_any_edges(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 4, "max_messages": 20, "edges": "every_8"}
    settings: Json = {"history": history, "summary": {"enabled": True}}
    await put(api, status=200, settings=settings)
    await append(api, words(1, 30))
    anchor_seq = (await context(api))["history"]["anchor_seq"]
    assert anchor_seq > 1, "the history was cut by force"
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert (await context(api))["memo_window"]["gaps"] == []
    assert len(await segment_words(api, "summary")) == anchor_seq - 1
