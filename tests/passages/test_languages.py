"""The index of a chat whose lines have different languages."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.background import settle
from tests.facts.asking import begin
from tests.passages.test_index_api import begin_with_names, find, read_progress, sail
from tests.search.finding import message
from tests.talk import CHAT, append, get, ok, put, reimport


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


async def test_a_shortened_line_is_made_again_to_its_end(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    await append(api, sail(1, 64))
    await settle(dispatcher, clock)
    async with database.raw() as connection:
        query = "UPDATE chats SET cursors = jsonb_set(cursors, '{passages,remade}', '50') WHERE chat_key = $1"
        await connection.execute(query, chat_key(tenant, "c"))
    await reimport(api, [*sail(1, 40), message(900, "A bell."), *sail(42, 64)])
    assert await read_progress(database, tenant) == {"seq": 40, "remade": 50}
    await settle(dispatcher, clock)
    assert await read_progress(database, tenant) == {"seq": 64}
