"""Which words a search takes for misspelt ones, and which for the words that are meant."""

from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.search.meant import find_words_meant
from tests.background import settle
from tests.facts.asking import begin
from tests.memories.asking import write
from tests.search.finding import begin_long, find, message
from tests.search.test_search_api import found, search
from tests.talk import append, put


async def test_a_word_that_says_nothing_is_never_meant(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "tool"})
    await append(api, [message(n, f"Then they left the pier, day {n}.") for n in range(1, 9)])
    assert await found(api, "Theo") == []
    assert "Nothing was found" in await find(api, "Theo")
    await append(api, [message(n, f"The thief came to their house, day {n}.") for n in range(9, 12)])
    await append(api, [message(n, f"It was their house, day {n}.") for n in range(12, 32)])
    hits = (await search(api, "theif"))["hits"]
    assert sorted(hit["id"] for hit in hits) == ["m10", "m11", "m9"]
    assert hits[0]["snippet"].startswith("The **thief** came to ")


@pytest.mark.parametrize("language", [None, "en"])
async def test_a_word_that_says_nothing_is_not_similar(api: httpx.AsyncClient, language: str | None) -> None:
    await begin(api)
    await append(api, [message(1, "A thief."), message(2, "It is their lantern.")])
    if language:
        await put(api, status=200, language=language)
    assert await found(api, "theif lantern") == ["message:m2", "message:m1"]


async def test_other_languages_have_words_of_their_own(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put(api, status=200, language="de")
    await append(api, [message(1, "Er hatte eine Not."), message(2, "Das Boot sinkt.")])
    assert await found(api, "noot") == ["message:m1"]


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_word_of_a_message_is_not_misspelt(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, is_indexed: bool
) -> None:
    await begin(api, memos={"enabled": False}, recall={"mode": "tool"})
    lamps = [message(n, f"The lamp burns, day {n}.") for n in range(1, 601)]
    await append(api, [*lamps, message(601, "The lamb sleeps."), *[message(n, "We sail.") for n in range(602, 666)]])
    await write(api, "They have two lamps and a lamp.")
    if is_indexed:
        await settle(dispatcher, clock)
    assert await found(api, "lamb", kinds=["message"]) == ["message:m601"]
    assert await found(api, "lamb", kinds=["memory"]) == []
    assert len(await found(api, "lamo", kinds=["memory"])) == 1


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("language", [None, "es"])
async def test_the_word_that_is_meant_may_have_accents(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, language: str | None, is_indexed: bool
) -> None:
    await put(api, language=language, settings={"memos": {"enabled": False}})
    texts = ["José rowed home.", "José sang.", "The joke was good.", *["…"] * 64]
    await append(api, [message(n, text) for n, text in enumerate(texts, start=1)])
    if is_indexed:
        await settle(dispatcher, clock)
    assert sorted(await found(api, "jole")) == ["message:m1", "message:m2"]
    assert "**José**" in (await search(api, "jole"))["hits"][0]["snippet"]
    assert await found(api, "jkoe") == ["message:m3"]


async def test_a_word_of_the_history_is_not_misspelt(api: httpx.AsyncClient) -> None:
    await begin_long(api, "The lamp burns.")
    assert "The lamp burns." in await find(api, "lamb")
    await append(api, [message(7, "The lamb sleeps.")])
    assert "Nothing was found" in await find(api, "lamb")


async def test_a_name_of_the_chat_is_not_misspelt(api: httpx.AsyncClient) -> None:
    await begin_long(api, "Hanna sails.")
    for query in ("Anna", "Canna"):
        assert await found(api, query) == ["message:m1"]
        assert "Hanna" in await find(api, query)
    await put(api, status=200, characters=[{"name": "Anna Berg"}], user_name="Canna")
    for query in ("Anna", "Canna"):
        assert await found(api, query) == []
        assert "Nothing was found" in await find(api, query)


async def test_the_speaker_of_a_found_message_is_not_misspelt(api: httpx.AsyncClient) -> None:
    await begin_long(api, "Hanna sails.")
    await append(api, [message(7, "No key.", name="Janna"), *[message(n, "Well.") for n in range(8, 12)]])
    assert await found(api, "Janna key") == ["message:m7"]
    assert "Hanna" not in await find(api, "Janna key")
    assert await found(api, "Janna") == [], "she is a speaker of the newest messages"


async def test_a_query_without_such_a_word_reads_no_text(database: Database) -> None:
    line, unread = (UUID(int=1), UUID(int=2)), [dict[str, Any]()]
    async with database.raw() as connection:
        find_meant = partial(
            find_words_meant, connection, line, rows=unread, language=None, names=["Anna"], speakers={}
        )
        assert await find_meant(["key", "42", "猫", "Will", "anna"]) == {}
        with pytest.raises(KeyError, match="text"):
            await find_meant(["lantern"])
