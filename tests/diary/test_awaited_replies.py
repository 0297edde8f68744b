"""The service's entries while a character's own entry waits for its reply, and after the reply or without it."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.diary.diaries import entries, keep_diary, save
from tests.scripted_model import ScriptedModel
from tests.talk import CALL, add_swipe, append, get, ok, said, talk

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
