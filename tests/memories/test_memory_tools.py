"""What a character learnt on a day, and what it forgets while its reply has the same text."""

import asyncio
from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.ids import user_key
from app.kit.tokens import count_tokens
from app.layers.tool_pages import MAX_PAGE_TOKENS
from tests.background import holding, until_waited_for
from tests.facts.asking import KAI, USER, WRITE_MEANWHILE, begin, call, learn_wide, note
from tests.memories.asking import Learner, change, delete, history, listed, memories, write
from tests.memories.test_remember import THREE_CATS, TOMAS, TWO_CATS
from tests.talk import add_swipe, append, get, put, said, select_swipe, talk

DAY_S = 86_400
UNKNOWN = "01a20751-31a1-7229-9891-97a89e4c4c1a"


async def forget(api: httpx.AsyncClient, memory_id: str, **query: Any) -> str:
    return await call(api, "forget", {"memory_id": memory_id}, **query)


async def test_a_memory_forgotten_by_a_reply_returns_without_it(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS)
    clock.step(1)
    assert TOMAS in await forget(api, memory["id"])
    assert await listed(api) == set()
    assert await history(api, memory["id"]) == [None, TOMAS]
    await add_swipe(api, "m2", "I will always remember Tomas.")
    assert await listed(api) == {TOMAS}
    await select_swipe(api, "m2", 0)
    assert await listed(api) == set()


async def test_forgetting_again_changes_nothing(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS)
    clock.step(1)
    assert "It is forgotten" in await forget(api, memory["id"])
    assert "It is forgotten" in await forget(api, memory["id"])
    assert len((await get(api, "/tools/calls"))["items"]) == 1


async def test_a_pinned_memory_is_not_forgotten(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS)
    await change(api, memory["id"], pinned=True)
    clock.step(1)
    assert "pinned" in await forget(api, memory["id"])
    assert await listed(api) == {TOMAS}
    await change(api, memory["id"], pinned=False)
    assert "It is forgotten" in await forget(api, memory["id"])


async def test_a_call_for_a_reply_to_come_waits_for_it(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, [said(1)])
    memory = await write(api, TOMAS)
    clock.step(1)
    await forget(api, memory["id"])
    assert await listed(api) == {TOMAS}
    await append(api, [said(2)])
    assert await listed(api) == set()


async def test_a_retry_that_waits_is_not_refused_after_a_pin(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, [said(1)])
    memory = await write(api, TOMAS)
    clock.step(1)
    assert TOMAS in await forget(api, memory["id"])
    await change(api, memory["id"], pinned=True)
    assert await forget(api, memory["id"]) == "It is forgotten. Go on with the story; do not mention it."
    await append(api, [said(2)])
    assert await listed(api) == set()


async def test_an_unknown_memory_is_answered_in_words(api: httpx.AsyncClient) -> None:
    await begin(api)
    memory = await write(api, TOMAS)
    await delete(api, memory["id"])
    for memory_id in (UNKNOWN, memory["id"]):
        assert "There is no memory with this id" in await forget(api, memory_id)
    assert "forget" in await call(api, "forget", {"memory_id": "Tomas"}, status=422)
    assert {one["outcome"] for one in (await get(api, "/tools/calls"))["items"]} == {"refused"}


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_character_forgets_only_what_it_knows(api: httpx.AsyncClient, clock: SteppedClock, scope: str) -> None:
    await put(api, user_id="mira", characters=[KAI, {"name": "Ida"}], settings={"memories": {"learn_scope": scope}})
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS, under=f"{USER}/characters/Ida")
    clock.step(1)
    assert "There is no memory with this id" in await forget(api, memory["id"], character="Kai")
    assert await listed(api, character="Ida") == {TOMAS}
    assert TOMAS in await forget(api, memory["id"], character="Ida")
    assert await listed(api, character="Ida") == set()


async def test_a_wide_memory_is_forgotten_in_the_chat_alone(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS, under=USER)
    clock.step(1)
    await forget(api, memory["id"])
    assert await listed(api) == set()
    assert await listed(api, under=USER) == {TOMAS}


async def test_with_a_wide_scope_it_is_forgotten_there(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS, under=USER)
    clock.step(1)
    await forget(api, memory["id"])
    assert await listed(api, under=USER) == set()


async def test_a_text_that_another_chat_stored_meanwhile_is_forgotten(
    api: httpx.AsyncClient, database_url: str, tenant: str
) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    memory = await write(api, TWO_CATS, under=USER)
    writing = WRITE_MEANWHILE.format(owner=user_key(tenant, "mira"), content=THREE_CATS)
    async with holding(database_url, writing) as holder:
        forgetting = asyncio.create_task(forget(api, memory["id"]))
        await until_waited_for(holder)
    assert THREE_CATS in await forgetting
    assert await listed(api, under=USER) == set()


async def test_a_text_forgotten_by_a_tool_is_learnt_after_a_swipe(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    remembered = await learn(TOMAS, "m1")
    clock.step(1)
    await forget(api, str(remembered.memory_id))
    assert (await learn(TOMAS, "m3")).outcome == "forgotten"
    await add_swipe(api, "m4", "Tomas? I know him well.")
    assert (await learn(TOMAS, "m3")).outcome == "duplicate"


async def test_an_undone_tool_deletion_keeps_a_memory_archived(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS)
    await change(api, memory["id"], archived=True)
    clock.step(1)
    await forget(api, memory["id"])
    await add_swipe(api, "m2", "I will always remember Tomas.")
    changed = await change(api, memory["id"], pinned=True)
    assert (changed["archived"], changed["pinned"]) == (True, True)
    assert await listed(api) == set()


async def test_an_undone_tool_deletion_keeps_fields_set_by_a_person(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    learnt = await learn(TWO_CATS, "m1", importance=0.9)
    await change(api, learnt.memory_id, importance=0.2, tags=["mine"])
    clock.step(1)
    await forget(api, str(learnt.memory_id))
    await add_swipe(api, "m4", "I will always remember the cats.")
    clock.step(1)
    await learn(THREE_CATS, "m3", importance=0.8, tags=("pets",))
    (memory,) = await memories(api)
    assert (memory["content"], memory["importance"], memory["tags"]) == (THREE_CATS, 0.2, ["mine"])


async def test_the_log_of_a_day_has_memories_and_facts(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}], time_zone="Asia/Tokyo")
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS, category="personal")
    await note(api, "lamp", "green")
    first = f"Learnt on 2026-04-01:\n- [personal] {TOMAS} (id {memory['id']})\n- [fact] lamp: green"
    assert await call(api, "memory_log", {}) == first
    clock.step(DAY_S)
    other = await write(api, TWO_CATS)
    assert await call(api, "memory_log", {}) == f"Learnt on 2026-04-02:\n- {TWO_CATS} (id {other['id']})"
    assert await call(api, "memory_log", {"day": "2026-04-01"}) == first
    assert await call(api, "memory_log", {"day": "2026-03-31"}) == "Nothing was learnt on 2026-03-31."
    assert "memory_log" in await call(api, "memory_log", {"day": "yesterday"}, status=422)


async def test_the_log_of_a_full_day_has_pages(api: httpx.AsyncClient) -> None:
    await put(api)
    for number in range(60):
        await write(api, f"The lamp number {number} hangs at the harbour. {'It is a brass lamp. ' * 18}".strip())
    first = await call(api, "memory_log", {})
    assert count_tokens(first) <= MAX_PAGE_TOKENS
    heading, *lines, note = first.splitlines()
    again = "call `memory_log` with day 2026-04-01 and page 2"
    assert (heading, note) == ("Learnt on 2026-04-01:", f"{60 - len(lines)} more. To read on, {again}.")
    second = await call(api, "memory_log", {"day": "2026-04-01", "page": 2})
    assert f"The lamp number {len(lines)} " in second.splitlines()[1]


async def test_a_day_begins_at_midnight_of_the_chat(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, time_zone="Asia/Tokyo")
    clock.step(3 * 3_600 - 1)
    await write(api, TOMAS)
    clock.step(1)
    await write(api, TWO_CATS)
    assert TOMAS in await call(api, "memory_log", {"day": "2026-04-01"})
    assert TWO_CATS in await call(api, "memory_log", {"day": "2026-04-02"})
    assert len(await memories(api)) == 2


@pytest.mark.parametrize("name", ["forget", "memory_log"])
async def test_the_tools_are_offered_while_memories_are_on(api: httpx.AsyncClient, name: str) -> None:
    await put(api)
    for enabled in (True, False):
        await put(api, status=200, settings={"memories": {"enabled": enabled}})
        tools = (await api.get("/v1/tools", params={"chat_id": "c"})).json()["tools"]
        assert (name in {tool["function"]["name"] for tool in tools}) == enabled
