"""The anchor while auto-hide is on: it skips only hidden messages, and does not go back to the start."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.scenes.story import anchor, asked_for, hidden, recap, set_break, story_model
from tests.scripted_model import Reply, Request, ScriptedModel, quoting_memo
from tests.talk import append, context, cut_off, get, ok, put, said, soft_delete, talk

_tell = story_model(lambda possible: possible[0])


def answer_scenes_and_memos(request: Request) -> str | Reply:
    """A model that breaks at the first possible message, and makes memos too."""
    return quoting_memo(request) if asked_for(request) == "other" else _tell(request)


@pytest.fixture(autouse=True)
async def scripted(model: ScriptedModel) -> None:
    model.otherwise = answer_scenes_and_memos


@pytest.mark.parametrize("preset", ["memo", "companion"])
async def test_memos_cover_the_messages_that_scenes_hide(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, preset: str
) -> None:
    await put(api, settings={"preset": preset, "scenes": {"enabled": True}})
    for n in range(1, 81, 2):
        await append(api, talk(n, n + 1))
        await settle_rounds(dispatcher, clock, rounds=3)
    found = await context(api)
    out_of_sight = max(await hidden(api))
    assert await anchor(api) <= found["history"]["anchor_seq"] == out_of_sight + 1
    assert found["memo_window"]["memos"] == (await anchor(api) - 1) // 8 > 3
    assert found["memo_window"]["gaps"] == []


async def test_the_anchor_goes_back_only_after_a_removal(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "scenes"})
    anchors = []
    for n in range(1, 61, 2):
        await append(api, talk(n, n + 1))
        await settle_rounds(dispatcher, clock, rounds=3)
        anchors.append(await anchor(api))
    assert anchors == sorted(anchors)
    assert anchors[-1] > 1


async def test_a_rewind_keeps_the_memos_of_what_is_not_sent(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    layers = {"scenes": {"enabled": True, "detect": False}, "consolidation": {"enabled": False}}
    await put(api, settings={"preset": "companion", **layers})
    for last in (16, 32, 48, 64, 80):
        await append(api, talk(last - 15, last))
        await set_break(api, last)
        await settle_rounds(dispatcher, clock)
    found = await context(api)
    assert (found["history"]["anchor_seq"], found["memo_window"]["memos"]) == (65, 8)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 50}), 201)
    await cut_off(api, 51)
    await settle_rounds(dispatcher, clock)
    for name in ("c", "d"):
        found = ok(await api.get(f"/v1/chats/{name}/context"), 200)
        assert (found["history"]["anchor_seq"], found["history"]["messages"]) == (33, 18)
        assert found["memo_window"]["memos"] == 4


async def test_deleting_an_imports_last_message_keeps_the_anchor(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "scenes", "scenes": {"detect": False}})
    await append(api, talk(1, 1_000))
    await settle_rounds(dispatcher, clock)
    assert await anchor(api) == 985
    await soft_delete(api, "m1000")
    found = await context(api)
    assert (await anchor(api), found["history"]["messages"]) == (983, 17)
    assert found["history"]["last_cut"]["reason"] == "forced"


async def test_a_full_cut_comes_with_the_append_that_allows_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    scenes = {"detect": False, "auto_hide": -1}
    await put(api, settings={"preset": "scenes", "history": {"keep_messages": 8}, "scenes": scenes})
    await append(api, talk(1, 8))
    await set_break(api, 4)
    await set_break(api, 8)
    await settle_rounds(dispatcher, clock)
    assert await recap(api) == [1, 2, 3, 4, 5, 6, 7, 8]
    for n in range(9, 13):
        assert await anchor(api) == 1
        await append(api, [said(n)])
    assert await anchor(api) == 5


async def test_a_full_cut_comes_with_the_append_that_begins_a_scene(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    scenes = {"detect": False, "auto_hide": -1}
    await put(api, settings={"preset": "scenes", "history": {"keep_messages": 4}, "scenes": scenes})
    for first in range(1, 25, 4):
        await append(api, talk(first, first + 2))
        await append(api, [said(first + 3)])
        await set_break(api, first + 3)
        await settle_rounds(dispatcher, clock)
    assert (await anchor(api), (await get(api, ""))["counters"]["messages"]) == (17, 24)
    await append(api, [said(25)])
    assert await anchor(api) == 21


async def test_the_history_begins_after_what_is_hidden(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history, scenes = {"keep_messages": 1, "edges": "every_message"}, {"detect": False, "auto_hide": 0}
    await put(api, settings={"preset": "scenes", "history": history, "scenes": scenes})
    await append(api, talk(1, 8))
    await set_break(api, 8)
    await settle_rounds(dispatcher, clock)
    assert (await hidden(api), await anchor(api)) == ([], 8)  # at least one message stays in sight
    await append(api, [said(9)])
    await settle_rounds(dispatcher, clock)
    assert (await hidden(api), await anchor(api)) == (list(range(1, 9)), 9)
    assert (await context(api))["history"]["messages"] == 1
