"""A word of nearly all messages, in a search that is limited to a few of them."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.passages.lookup import MOST_IN_INDEX, MOST_WITH_KEY
from tests.background import settle
from tests.facts.asking import begin
from tests.passages.test_index_api import sail
from tests.search.finding import find, message
from tests.talk import CHAT, Json, append, cut_off, ok

EARLY = "2026-01-01T12:00:00Z"
LATE = "2026-03-01T12:00:00Z"
FEW = 70
"""So many messages are early, and spoken by Kai."""


@pytest.fixture
async def voyage(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat whose messages all have the word `sail`, more than a search considers; a checkpoint has the first ones."""
    await begin(api, memos={"enabled": False}, recall={"mode": "auto"})
    kai = [message(n, f"We sail on, day {n}.", role="assistant", name="Kai", sent_at=EARLY) for n in range(1, FEW + 1)]
    await append(api, kai)
    await settle(dispatcher, clock)
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "early"}), 201)
    last = MOST_WITH_KEY + MOST_IN_INDEX
    for first in range(FEW + 1, last, 750):
        late = [one | {"role": "user", "sent_at": LATE} for one in sail(first, min(first + 749, last))]
        await append(api, late)
    await settle(dispatcher, clock)


async def search(api: httpx.AsyncClient, query: str = "sail", **limits: str) -> set[str]:
    body: Json = {"query": query, "limit": 100, "kinds": ["message"], **limits}
    return {hit["id"] for hit in ok(await api.post(f"{CHAT}/memories/search", json=body), 200)["hits"]}


EARLY_ONES = {f"m{n}" for n in range(1, FEW + 1)}


@pytest.mark.usefixtures("voyage")
async def test_the_limits_of_a_search_decide_what_is_considered(api: httpx.AsyncClient) -> None:
    assert len(await search(api)) == 100
    assert await search(api, before="2026-02-01T00:00:00Z") == EARLY_ONES
    assert await search(api, character="Kai") == EARLY_ONES
    (line,) = [one["line"] for one in ok(await api.get(f"{CHAT}/checkpoints"), 200)["items"] if one["name"] == "early"]
    assert await search(api, line=line) == EARLY_ONES


@pytest.mark.usefixtures("voyage")
async def test_messages_of_a_restored_line_are_found(api: httpx.AsyncClient) -> None:
    ok(await api.post(f"{CHAT}/checkpoints/early/restore"), 201)
    assert await search(api) == EARLY_ONES
    await append(api, [message(9_000 + n, "Good night.") for n in range(40)])
    assert (await find(api, "sail", limit=50)).count("We sail on") == 50


@pytest.mark.usefixtures("voyage")
async def test_messages_left_after_a_truncation_are_found(api: httpx.AsyncClient) -> None:
    await cut_off(api, FEW + 1)
    assert await search(api) == EARLY_ONES
