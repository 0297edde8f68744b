"""The summary and the cuts that wait for it: each gets its fold, and leaves nothing out."""

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.sweep import Sweep
from tests.scripted_model import ScriptedModel
from tests.summary.folds import anchor, counting_fold, gaps, make, shown
from tests.talk import append, cut_off, ok, put, talk

EVERY_8 = {
    "history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 60, "edges": "every_8"},
    "memos": {"enabled": False},
    "summary": {"enabled": True},
}


@pytest.fixture(autouse=True)
async def scripted(model: ScriptedModel) -> None:
    model.otherwise = counting_fold


async def assert_whole(api: httpx.AsyncClient) -> None:
    """Everything before the history is told, and nothing else."""
    assert await shown(api) == list(range(1, await anchor(api)))
    assert await gaps(api) == []


async def test_a_cut_that_waits_gets_its_fold_also_when_the_end_was_cut_off(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    await cut_off(api, 30)
    await make(sweep, clock)
    assert await anchor(api) == 25
    await assert_whole(api)


async def test_a_cut_that_waits_gets_its_fold_also_in_a_fork(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    await put(api, settings=EVERY_8)
    await append(api, talk(1, 30))
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 29}), 201)
    await make(sweep, clock)
    assert ok(await api.get("/v1/chats/f/context"), 200)["history"]["anchor_seq"] == 25
