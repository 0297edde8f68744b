"""Memos that are switched on in a chat which ran without them, for a while or from the start."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.book import book
from tests.talk import append, context, get, put, talk


async def test_enabling_memos_makes_those_of_the_window(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "diary", "memos": {"window": 3}})
    await append(api, talk(1, 100))
    await settle_rounds(dispatcher, clock, rounds=3)
    anchor_seq = (await get(api, ""))["anchor_seq"]
    assert anchor_seq > 50
    await put(api, status=200, settings={"preset": "memo", "memos": {"window": 3}})
    await append(api, talk(101, 101))
    await settle_rounds(dispatcher, clock, rounds=3)
    ranges = [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)]
    assert ranges[:3] == [(seq, seq + 7) for seq in range(anchor_seq - 24, anchor_seq, 8)]
    assert ranges[-1][1] > 93
    found = await context(api)
    assert (found["memo_window"]["memos"], found["memo_window"]["gaps"]) == (3, [])


async def test_messages_from_before_memos_were_enabled_get_memos(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 14))
    await put(api, status=200, settings={"memos": {"enabled": False}})
    await append(api, talk(15, 16))
    await put(api, status=200, settings={"memos": {"enabled": True}})
    await append(api, talk(17, 40))
    await settle_rounds(dispatcher, clock, rounds=3)
    ranges = [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)]
    assert ranges == [(seq, seq + 7) for seq in range(1, 40, 8)]
