"""Which words a search takes for misspelt ones, and which for the words that are meant."""

import httpx
import pytest

from tests.facts.asking import begin
from tests.search.finding import find, message
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
