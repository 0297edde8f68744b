"""The service's entries while a character's own entry waits for its reply, and after the reply or without it."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from app.diary.bound import REPLY_WAIT_S
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import RETRY_DELAYS_S
from tests.background import settle
from tests.diary.diaries import change, entries, keep_diary, save
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import CALL, add_swipe, append, edit, get, ok, said, talk

WRITTEN = "The girl asked about the lamps again. I told her two of their names, which I tell nobody."


@pytest.fixture(autouse=True)
def writing_model(model: ScriptedModel) -> None:
    model.otherwise = WRITTEN


async def give_up(api: httpx.AsyncClient) -> None:
    """Discard the generation that made the open calls."""
    assert ok(await api.post("/v1/chats/c/tools/discard"), 200)["discarded"] > 0


async def ranges(api: httpx.AsyncClient) -> list[tuple[int, int]]:
    """The messages that the service's entries are about, in story order."""
    return [(one["first_seq"], one["last_seq"]) for one in await entries(api) if one["origin"] == "model"]


# --- which turns the awaited reply belongs to ---


async def test_a_call_for_a_later_reply_delays_no_earlier_entry(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await append(api, talk(1, 2))
    await save(api, "By myself.", message_id="m4")
    assert await settle(dispatcher, clock) == 1
    assert await ranges(api) == [(1, 2)]


@pytest.mark.parametrize(
    "later",
    [
        talk(3, 4),
        [said(3), said(5, role="assistant", tool_calls=[CALL]), said(7, role="tool", tool_call_id="call-1"), said(4)],
    ],
)
async def test_a_reply_replaces_only_the_entry_about_its_turn(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, later: list[dict[str, Any]]
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await append(api, talk(1, 2))
    await save(api, "By myself.", message_id="m4")
    for message in later:
        await append(api, [message])
    await settle(dispatcher, clock)
    assert [(one["origin"], one["at_seq"]) for one in await entries(api)] == [("model", 2), ("tool", 2 + len(later))]
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


@pytest.mark.parametrize("comes", [True, False])
async def test_a_call_for_a_swipe_delays_the_entry_about_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, comes: bool
) -> None:
    await keep_diary(api, auto_write_turns=1)
    await append(api, talk(1, 4))
    await save(api, "By myself.", message_id="m2", swipe="next")
    assert await settle(dispatcher, clock) == 1
    assert await ranges(api) == [(3, 4)]
    if comes:
        await add_swipe(api, "m2", "Another reply.")
    else:
        await give_up(api)
    await settle(dispatcher, clock)
    assert await ranges(api) == ([(3, 4)] if comes else [(1, 2), (3, 4)])
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


# --- while the reply is awaited ---


async def begin_waiting(api: httpx.AsyncClient) -> None:
    """Have the service's entry about the first turn wait for the reply of an open call."""
    await keep_diary(api, auto_write_turns=1)
    await append(api, [said(1), said(2, tool_calls=[CALL])])
    await save(api, "By myself.")


async def test_an_edit_does_not_end_the_wait_for_a_reply(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin_waiting(api)
    await edit(api, "m1", content="Where are the lamps?")
    assert await settle(dispatcher, clock, 60) == 0
    assert await settle(dispatcher, clock, REPLY_WAIT_S - 60) == 1
    assert "Where are the lamps?" in str(model.requests[-1])


async def test_an_edit_reschedules_an_entry_that_failed(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin_waiting(api)
    model.script(*[refuses(400)] * 4)
    for wait_s in (REPLY_WAIT_S, *RETRY_DELAYS_S[:3]):
        assert await settle(dispatcher, clock, wait_s) == 1
    assert await settle(dispatcher, clock) == 0  # it waits for its retry, as long as for a reply
    await edit(api, "m1", content="Where are the lamps?")
    assert await settle(dispatcher, clock) == 1
    assert await ranges(api) == [(1, 2)]


async def test_further_calls_do_not_prolong_the_wait(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_waiting(api)
    assert await settle(dispatcher, clock, REPLY_WAIT_S - 60) == 0
    await save(api, "By myself, again.")
    assert await settle(dispatcher, clock, 60) == 1
    assert await ranges(api) == [(1, 2)]


async def edit_entry(api: httpx.AsyncClient) -> None:
    (entry,) = await entries(api)
    await change(api, entry["id"], "By a person.")


async def keep_entry(api: httpx.AsyncClient) -> None:
    (entry,) = await entries(api)
    ok(await api.patch(f"/v1/chats/c/diary/{entry['id']}", json={"kept": True}), 200)


@pytest.mark.parametrize("end_dependence", [edit_entry, keep_entry])
async def test_an_edited_open_entry_replaces_the_services(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    end_dependence: Callable[[httpx.AsyncClient], Awaitable[None]],
) -> None:
    await begin_waiting(api)
    await end_dependence(api)
    (before,) = await entries(api)
    await append(api, [said(3, role="tool", tool_call_id="call-1"), said(4)])
    await settle(dispatcher, clock, REPLY_WAIT_S)
    (entry,) = await entries(api)
    assert (entry["content"], entry["at_seq"]) == (before["content"], 2 if entry["origin"] == "person" else 4)
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


@pytest.mark.parametrize("end_dependence", [edit_entry, keep_entry])
async def test_without_a_reply_a_kept_entry_delays_nothing(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    end_dependence: Callable[[httpx.AsyncClient], Awaitable[None]],
) -> None:
    await begin_waiting(api)
    await end_dependence(api)
    assert await settle(dispatcher, clock) == 0
    await give_up(api)
    assert await settle(dispatcher, clock) == 1
    assert await ranges(api) == [(1, 2)]
    assert len(await entries(api)) == 2
