"""Memos are held to the cut: the history waits for them, and they enter the prompt with it."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import RETRY_DELAYS_S
from tests.background import settle
from tests.book import book, shown, statuses
from tests.memos.texts import MEMO
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, context, ok, put, talk

# --- the cut waits for memos ---


async def history(api: httpx.AsyncClient) -> tuple[int, str | None]:
    """Where the history begins, and why it was cut there."""
    found = (await context(api))["history"]
    return found["anchor_seq"], found["last_cut"] and found["last_cut"]["reason"]


async def test_a_cut_waits_for_its_memos_and_follows_the_last_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 33))
    assert await history(api) == (1, None)
    model.otherwise = lambda request: refuses(400) if "number 10." in str(request) else MEMO
    await settle(dispatcher, clock)
    assert await statuses(api) == ["ready", "pending", "ready", "ready"]
    assert await history(api) == (1, None)
    model.otherwise = MEMO
    clock.step(1)
    await dispatcher.drain()
    assert await history(api) == (17, "full")
    assert await shown(api) == [1, 2]


async def test_a_cut_does_not_wait_for_a_memo_that_failed_for_good(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = lambda request: refuses(400) if "number 10." in str(request) else MEMO
    await append(api, talk(1, 33))
    for delay_s in (2, *RETRY_DELAYS_S):
        assert await history(api) == (1, None)
        clock.step(delay_s)
        await dispatcher.drain()
    assert await statuses(api) == ["ready", "failed", "ready", "ready"]
    assert await history(api) == (17, "full")
    assert (await context(api))["memo_window"]["gaps"] == [[9, 16]]


async def test_a_cut_does_not_wait_for_a_deleted_or_personal_memo(
    api: httpx.AsyncClient,
) -> None:
    await append(api, talk(1, 33))
    first, second, *_ = await book(api)
    ok(await api.delete(f"/v1/chats/c/memos/{first['id']}"), 204)
    assert await history(api) == (1, None)
    ok(await api.patch(f"/v1/chats/c/memos/{second['id']}", json={"text": "It was quite different."}), 200)
    assert await history(api) == (17, "full")
    assert await shown(api) == [2]


async def test_a_cut_that_waited_goes_where_it_would_go_now(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 33))
    await append(api, talk(34, 42))
    assert await history(api) == (1, None)
    await settle(dispatcher, clock)
    assert await history(api) == (25, "full")


async def test_a_history_at_its_maximum_is_cut_with_a_gap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 63))
    assert await history(api) == (1, None)
    await append(api, talk(64, 64))
    assert await history(api) == (49, "forced")
    assert (await context(api))["memo_window"] == {"memos": 0, "first_seq": None, "last_seq": None, "gaps": [[1, 48]]}
    await settle(dispatcher, clock)
    window = (await context(api))["memo_window"]
    assert (window["memos"], window["first_seq"], window["last_seq"], window["gaps"]) == (6, 1, 48, [])


async def test_a_memo_of_messages_in_the_history_is_not_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 32))
    await settle(dispatcher, clock)
    assert await statuses(api) == ["ready"] * 4
    assert await shown(api) == []
    await append(api, talk(33, 33))
    assert await shown(api) == [1, 2]


# --- the window ---


async def test_the_sixteenth_memo_expires_the_oldest_from_the_prompt(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"history": {"keep_messages": 1, "grow_messages": 0}})
    await append(api, talk(1, 121))
    await settle(dispatcher, clock)
    await append(api, talk(122, 122))
    assert await shown(api) == list(range(1, 16))
    await append(api, talk(123, 129))
    await settle(dispatcher, clock)
    assert await shown(api) == list(range(2, 17))
    assert [memo["number"] for memo in await book(api)] == list(range(1, 17))


async def test_an_older_memo_replaces_one_that_does_not_count(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = lambda request: "NONE" if "number 26." in str(request) else MEMO
    await put(api, settings={"memos": {"window": 3}, "history": {"keep_messages": 1, "grow_messages": 0}})
    await append(api, talk(1, 49))
    await settle(dispatcher, clock)
    await append(api, talk(50, 50))
    assert await statuses(api) == ["ready", "ready", "ready", "empty", "ready", "ready"]
    assert await shown(api) == [3, 5, 6]
    ok(await api.delete(f"/v1/chats/c/memos/{(await book(api))[4]['id']}"), 204)
    assert await shown(api) == [2, 3, 6]
    ok(await api.patch(f"/v1/chats/c/memos/{(await book(api))[1]['id']}", json={"pinned": True}), 200)
    assert await shown(api) == [1, 2, 3, 6]
