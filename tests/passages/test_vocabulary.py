"""How many messages of a line have a word."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.passages.vocabulary import count_texts
from tests.background import settle
from tests.facts.asking import begin
from tests.search.finding import message
from tests.talk import append


async def test_of_long_messages_the_beginnings_are_read(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    long = ["A lamp. " + "day " * 5_000 + "A lamb.", "A lamp. " + "day " * 4_000 + "A lamb."]
    await append(api, [message(n, text) for n, text in enumerate(long, start=1)])
    async with database.raw() as connection:
        query = "SELECT chat_key, line_id FROM chats WHERE chat_key = $1"
        line = await connection.fetchrow(query, chat_key(tenant, "c"))
        assert line is not None
        assert await count_texts(connection, tuple(line), ["limb"], ["lamp", "lamb"]) == {"lamp": 2, "lamb": 1}


async def test_a_text_counts_once_for_a_word_with_accents(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, memos={"enabled": False})
    said = ["José rowed.", "Jose sang.", "The joke.", *["…"] * 64]
    await append(api, [message(n, text) for n, text in enumerate(said, start=1)])
    await settle(dispatcher, clock)
    async with database.raw() as connection:
        query = "SELECT chat_key, line_id FROM chats WHERE chat_key = $1"
        line = await connection.fetchrow(query, chat_key(tenant, "c"))
        assert line is not None
        assert await count_texts(connection, tuple(line), ["joxé"], ["josé", "jose"]) == {"josé": 2, "jose": 2}
