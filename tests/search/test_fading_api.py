"""The preset `decay`: an old memory is no longer recalled unasked, and then leaves for the archive."""

from collections.abc import Awaitable, Callable

import httpx
import pytest

from app.kit.clock import SteppedClock
from tests.facts.asking import begin
from tests.memories.asking import change, listed, write
from tests.search.finding import LANTERN, message
from tests.talk import CHAT, Json, append, context, ok, put

DAY_S = 86_400

WEAK = "The lantern of the south pier is rusty."
STRONG = "The lantern of the west pier saved Mira."
PINNED = "The lantern of the east pier is Kai's."

Talk = Callable[[], Awaitable[Json]]


@pytest.fixture
async def talk(api: httpx.AsyncClient) -> Talk:
    """A chat with three memories of a lantern, in which the user speaks of it and gets a context."""
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [message(n, f"We sail on, day {n}.") for n in range(1, 3)])
    await write(api, WEAK, importance=0.3)
    await write(api, STRONG, importance=0.69)
    pinned = await write(api, PINNED, importance=0.1)
    await change(api, pinned["id"], pinned=True)
    seq = 2

    async def turn() -> Json:
        nonlocal seq
        await append(api, [message(seq + 1, "Where is the lantern of the pier?")])
        answer = await context(api)
        assert (await context(api))["segments"] == answer["segments"], "reading twice changes nothing"
        await append(api, [message(seq + 2, "Over there.")])
        seq += 2
        return answer

    return turn


def recalled(answer: Json) -> set[str]:
    texts = [segment["text"] for segment in answer["segments"] if segment["name"] == "recalled"]
    return {line.partition("] ")[2] for text in texts for line in text.splitlines() if "[memory]" in line}


async def test_an_old_memory_leaves_recall_then_the_chat(
    api: httpx.AsyncClient, clock: SteppedClock, talk: Talk
) -> None:
    assert recalled(await talk()) == {WEAK, STRONG, PINNED}
    clock.step(12 * DAY_S)
    assert recalled(await talk()) == {STRONG, PINNED}
    assert await listed(api) == {WEAK, STRONG, PINNED}
    assert recalled(await context(api, query="lantern south pier")) >= {WEAK}
    await append(api, [message(n, "We sail on.") for n in (7, 8, 9, 10)])
    clock.step(7 * DAY_S)
    assert recalled(await context(api, draft="Where is the lantern of the pier?")) == {STRONG, PINNED}
    assert await listed(api) == {WEAK, STRONG, PINNED}, "nothing fades while the conversation rests"
    await append(api, [message(11, "We are back.")])
    assert (await listed(api), await listed(api, archived=True)) == ({STRONG, PINNED}, {WEAK})
    answer = ok(await api.post(f"{CHAT}/memories/search", json={"query": "rusty lantern"}), 200)
    assert answer["hits"][0]["text"] == WEAK
    assert recalled(await context(api, query="rusty lantern")) >= {WEAK}


async def test_a_weaker_memory_has_a_lower_score_unasked(
    api: httpx.AsyncClient, clock: SteppedClock, talk: Talk
) -> None:
    await put(api, status=200, settings={"preset": "agent", "consolidation": {"enabled": False}})
    clock.step(30 * DAY_S)
    answer = await talk()
    assert recalled(answer) >= {PINNED}, "without forget_below, nothing is forgotten"
    for one in answer["recalled"]:
        assert one["score"] == pytest.approx(sum(one["parts"].values()))
        assert one["parts"].get("fading", 0.0) <= 0
    faded = [one for one in answer["recalled"] if "fading" in one["parts"]]
    asked = await context(api, query="Where is the lantern of the pier?")
    assert not [one for one in asked["recalled"] if "fading" in one["parts"]]
    assert len(asked["recalled"]) > len(answer["recalled"]) or faded


async def test_a_new_memory_is_recalled_whatever_the_floor(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    memories = {"forget_below": 0.4, "half_life_days": 0.01}
    await begin(api, recall={"mode": "auto"}, memories=memories)
    await append(api, [message(1, "Where is the lantern of the pier?")])
    clock.step(30 * DAY_S)
    await write(api, WEAK, importance=0.5)
    assert recalled(await context(api)) == {WEAK}
    clock.step(DAY_S)
    await append(api, [message(3, "Where is the lantern of the pier?")])
    assert recalled(await context(api)) == set()
    assert await listed(api, archived=True) == {WEAK}


async def test_what_a_person_archived_is_not_found(api: httpx.AsyncClient, talk: Talk) -> None:
    await talk()
    lantern = await write(api, LANTERN)
    await change(api, lantern["id"], archived=True)
    assert LANTERN not in recalled(await context(api, query="green glass lantern"))
    answer = ok(await api.post(f"{CHAT}/memories/search", json={"query": "green glass"}), 200)
    assert LANTERN not in {hit["text"] for hit in answer["hits"]}


async def test_of_what_has_faded_only_the_strongest_is_found(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    memories = {"forget_below": 0.3, "max_memories": 2}
    await begin(api, recall={"mode": "auto"}, memories=memories, search={"across_chats": True})
    await append(api, [message(1, "We sail on.")])
    for text, importance in ((WEAK, 0.4), (STRONG, 0.69)):
        await write(api, text, importance=importance)
    pinned = await write(api, PINNED, importance=0.1)
    await change(api, pinned["id"], pinned=True)
    clock.step(30 * DAY_S)
    await append(api, [message(2, "We sail on.")])
    assert (await listed(api), await listed(api, archived=True)) == ({PINNED}, {WEAK, STRONG})
    for path in (CHAT, "/v1/users/mira"):
        answer = ok(await api.post(f"{path}/memories/search", json={"query": "lantern of the pier"}), 200)
        assert {hit["text"] for hit in answer["hits"]} == {STRONG, PINNED}
    assert recalled(await context(api, query="lantern of the pier")) == {STRONG, PINNED}
    await change(api, pinned["id"], archived=True)
    assert recalled(await context(api, query="lantern of the pier")) == {WEAK, STRONG}
