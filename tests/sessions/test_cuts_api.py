"""What the end of a session does to the history, and what it leaves alone."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle, settle_rounds
from tests.book import book
from tests.scenes.story import hidden, set_break, story_model
from tests.scripted_model import ScriptedModel, refuses
from tests.sessions.sample import end_session
from tests.talk import CALL, Json, append, context, get, put, read_cut, said, talk

HIGHLIGHTS = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."


async def test_a_break_by_hand_cuts_the_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 27))
    await settle(dispatcher, clock)
    former = await context(api)
    await end_session(api)
    shown = await context(api)
    assert shown["history"]["last_cut"] == {"at_seq": 9, "reason": "session", "at": clock().isoformat()}
    assert (shown["history"]["messages"], shown["memo_window"]["memos"]) == (19, 1)
    assert shown["prefix_hash"] != former["prefix_hash"]
    await append(api, talk(28, 32))
    assert [memo["last_seq"] for memo in await book(api)] == [8, 16, 24, 32], "the open batch stays open"


async def test_a_short_history_is_not_cut(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await append(api, talk(1, 23))
    await settle(dispatcher, clock)
    former = await context(api)
    await end_session(api)
    assert await context(api) == former


@pytest.mark.parametrize("limit", [{"idle_timeout_s": 86_400}, {"daily_reset_hour": 3}, {"max_turns": 12}])
async def test_each_break_cuts_before_a_cold_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, limit: Json
) -> None:
    await put(api, settings={"sessions": limit})
    await append(api, talk(1, 24))
    await settle(dispatcher, clock)
    clock.step(86_400)
    await append(api, [said(25)])
    assert await read_cut(api) == (9, "session")


async def test_a_cut_by_hand_waits_for_its_memos(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await append(api, talk(1, 24))
    await settle(dispatcher, clock)
    await end_session(api)
    assert await read_cut(api) == (1, None)
    model.otherwise = HIGHLIGHTS
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")
    assert (await context(api))["memo_window"]["gaps"] == []


async def test_a_call_stays_with_its_result(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 30, "edges": "every_message"}
    await put(api, settings={"memos": {"enabled": False}, "history": history})
    called = [said(4, tool_calls=[CALL]), said(5, role="tool", tool_call_id=CALL["id"])]
    await append(api, [*talk(1, 3), *called, *talk(6, 8)])
    await end_session(api)
    assert await read_cut(api) == (4, "session")


async def test_with_scenes_it_leaves_the_last_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    history = {"keep_messages": 4, "grow_messages": 40, "max_messages": 60, "keep_scenes": 2}
    await put(api, settings={"preset": "scenes", "history": history, "scenes": {"detect": False, "auto_hide": -1}})
    await append(api, talk(1, 24))
    for seq in (6, 12, 18):
        await set_break(api, seq)
    await end_session(api)
    assert await read_cut(api) == (1, None)
    await settle_rounds(dispatcher, clock, rounds=4)
    assert await read_cut(api) == (13, "session")
    assert await hidden(api) == []


async def test_the_summary_is_folded_for_the_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "diary", "history": {"grow_messages": 40, "edges": "every_8"}})
    await append(api, talk(1, 27))
    await settle(dispatcher, clock)
    await end_session(api)
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")
    assert (await get(api, "/summary"))["last_seq"] == 8


async def test_each_session_cuts_the_history_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    await settle(dispatcher, clock)
    await end_session(api)
    await append(api, talk(25, 26))
    await end_session(api)
    assert await read_cut(api) == (9, "session")
    await append(api, talk(27, 36))
    await settle(dispatcher, clock)
    await end_session(api)
    assert await read_cut(api) == (17, "session")
