"""The index of a chat whose lines have different languages."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.passages.test_index_api import begin_with_names, find, sail
from tests.search.finding import message
from tests.talk import CHAT, append, get, ok, put


async def keep(api: httpx.AsyncClient, name: str) -> None:
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": name}), 201)


async def restore(api: httpx.AsyncClient, name: str) -> None:
    ok(await api.post(f"{CHAT}/checkpoints/{name}/restore"), 201)


async def test_a_line_that_becomes_current_has_its_words_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_with_names(api, dispatcher, clock, "de")
    await keep(api, "german")
    await put(api, status=200, language="en")
    await append(api, sail(65, 128))
    await settle(dispatcher, clock)
    assert (await find(api, "will"), await find(api, "And Will?")) == (set(), {"m5"})
    english = (await get(api, ""))["line"]
    await restore(api, "german")
    await settle(dispatcher, clock)
    assert await find(api, "will") == {"m5", "m10"}
    ok(await api.post(f"{CHAT}/lines/{english}/switch"), 200)
    assert await find(api, "And Will?") == {"m5"}, "also before the index is made again"
    await settle(dispatcher, clock)
    assert (await find(api, "will"), await find(api, "And Will?")) == (set(), {"m5"})


async def test_a_short_line_makes_no_longer_one_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_with_names(api, dispatcher, clock, "de")
    await keep(api, "short")
    await append(api, [*sail(65, 127), message(128, "Er will fort.")])
    await settle(dispatcher, clock)
    await keep(api, "long")
    await put(api, status=200, language="en")
    await append(api, sail(129, 192))
    await settle(dispatcher, clock)
    await restore(api, "short")
    await settle(dispatcher, clock)
    assert await find(api, "will") == {"m5", "m10"}
    await restore(api, "long")
    await settle(dispatcher, clock)
    assert await find(api, "will") == {"m5", "m10", "m128"}
