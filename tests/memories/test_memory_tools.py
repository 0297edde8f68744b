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
from tests.facts.asking import (
    KAI,
    USER,
    WRITE_MEANWHILE,
    begin,
    call,
    checkpoint,
    delete_fact,
    fork,
    learn_wide,
    note,
    restore,
    set_fact,
)
from tests.memories.asking import Learner, change, delete, history, listed, memories, write
from tests.memories.test_remember import THREE_CATS, TOMAS, TWO_CATS
from tests.talk import CHAT, add_swipe, append, edit, get, put, said, select_swipe, talk, token_of

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


FIRST_DAY = {"day": "2026-04-01"}
EMPTY = "Nothing was learnt on 2026-04-01."


async def test_the_log_has_what_was_replaced_later(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    memory_id = (await learn(TWO_CATS, "m1")).memory_id
    await note(api, "lamp", "red")
    await note(api, "lamp", "green")
    clock.step(DAY_S)
    assert (await learn(THREE_CATS, "m3")).memory_id == memory_id
    await append(api, talk(5, 6))
    await note(api, "lamp", "blue")
    changed = "(it has changed since)"
    first = f"Learnt on 2026-04-01:\n- {TWO_CATS} {changed}\n- [fact] lamp: green {changed}"
    assert await call(api, "memory_log", FIRST_DAY) == first
    second = f"Learnt on 2026-04-02:\n- {THREE_CATS} (id {memory_id})\n- [fact] lamp: blue"
    assert await call(api, "memory_log", {}) == second


async def test_the_log_lacks_what_a_person_corrected(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    """What was wrong must not come back, and its id would make `forget` take away the right text."""
    await begin(api)
    await append(api, talk(1, 4))
    memory_id = (await learn(TWO_CATS, "m1")).memory_id
    await note(api, "lamp", "red")
    clock.step(DAY_S)
    await change(api, str(memory_id), content=THREE_CATS)
    await set_fact(api, "lamp", "blue", status=200)
    assert await call(api, "memory_log", FIRST_DAY) == EMPTY
    assert THREE_CATS in await call(api, "memory_log", {})


async def test_the_log_has_what_is_in_the_archive(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api, memories={"forget_below": 0.3, "max_memories": 1})
    await append(api, talk(1, 2))
    await learn(TOMAS, "m1")
    await learn(TWO_CATS, "m2")
    assert len(await listed(api, archived="false")) == 1
    assert len((await call(api, "memory_log", FIRST_DAY)).splitlines()) == 3
    clock.step(30 * DAY_S)
    await append(api, talk(3, 4))
    assert await listed(api, archived="false") == set()
    assert len((await call(api, "memory_log", FIRST_DAY)).splitlines()) == 3


async def test_the_log_lacks_what_a_person_archived(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    memory = await write(api, TOMAS, under=USER)
    clock.step(DAY_S)
    await change(api, memory["id"], archived=True)
    assert await call(api, "memory_log", FIRST_DAY) == EMPTY
    await learn_wide(api, "d")
    assert TOMAS in await call(api, "memory_log", FIRST_DAY, chat_id="d")
    await change(api, memory["id"], under=USER, archived=True)
    assert await call(api, "memory_log", FIRST_DAY, chat_id="d") == EMPTY
    await change(api, memory["id"], archived=False)
    assert TOMAS in await call(api, "memory_log", FIRST_DAY)


@pytest.mark.parametrize("under", [CHAT, USER, f"{USER}/characters/Kai", "/v1"])
async def test_the_log_lacks_what_a_person_forgot(api: httpx.AsyncClient, clock: SteppedClock, under: str) -> None:
    await begin(api)
    memory = await write(api, TOMAS, under=under)
    await set_fact(api, "lamp", "green", under=under)
    assert len((await call(api, "memory_log", {})).splitlines()) == 3
    clock.step(DAY_S)
    await delete(api, memory["id"])
    await delete_fact(api, "lamp")
    await set_fact(api, "lamp", "blue")
    assert await call(api, "memory_log", FIRST_DAY) == EMPTY
    assert await call(api, "memory_log", {}) == "Learnt on 2026-04-02:\n- [fact] lamp: blue"


async def test_the_log_lacks_a_text_that_the_chat_forgot(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    for chat_id in ("c", "d"):
        await learn_wide(api, chat_id)
        await append(api, talk(1, 2), chat_id)
    memory = await write(api, TOMAS)
    await delete(api, memory["id"])
    await learn(TOMAS, "m1", chat_id="d")
    assert await call(api, "memory_log", FIRST_DAY) == EMPTY
    assert TOMAS in await call(api, "memory_log", FIRST_DAY, chat_id="d")


async def test_the_log_lacks_what_gone_replies_wrote(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await note(api, "lamp", "green")
    memory = await write(api, TOMAS)
    both = f"Learnt on 2026-04-01:\n- {TOMAS} (id {memory['id']})\n- [fact] lamp: green"
    assert await call(api, "memory_log", {}) == both
    await add_swipe(api, "m2", "No lamp.")
    assert "lamp" not in await call(api, "memory_log", {})
    clock.step(1)
    await forget(api, memory["id"])
    assert await call(api, "memory_log", {}) == EMPTY
    await select_swipe(api, "m2", 0)
    assert await call(api, "memory_log", {}) == both


async def test_the_log_follows_messages_and_lines(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(TWO_CATS, "m1")
    await checkpoint(api, "before")
    await learn(THREE_CATS, "m3")
    await fork(api, "d", at_seq=2)
    await learn(TOMAS, "m4")
    clock.step(DAY_S)
    log = await call(api, "memory_log", FIRST_DAY)
    assert THREE_CATS in log
    assert TWO_CATS not in log, "a memory is listed once"
    assert TOMAS in log
    await edit(api, "m3", content="I have a dog.")
    assert TWO_CATS in await call(api, "memory_log", FIRST_DAY)
    assert TWO_CATS in await call(api, "memory_log", FIRST_DAY, chat_id="d")
    assert TOMAS not in await call(api, "memory_log", FIRST_DAY, chat_id="d")
    await restore(api, "before")
    assert len((await call(api, "memory_log", FIRST_DAY)).splitlines()) == 2


async def test_the_log_has_the_nearest_value_of_the_day(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green")
    clock.step(DAY_S)
    await set_fact(api, "lamp", "red", under=USER)
    assert await call(api, "memory_log", {}) == "Nothing was learnt on 2026-04-02."
    await set_fact(api, "boat", "white", under=USER)
    await set_fact(api, "boat", "grey", under=f"{USER}/characters/Ines")
    assert await call(api, "memory_log", {}) == "Learnt on 2026-04-02:\n- [fact] boat: white"
    clock.step(DAY_S)
    await append(api, talk(1, 2))
    await note(api, "boat", "black")
    assert "boat: white (it has changed since)" in await call(api, "memory_log", {"day": "2026-04-02"})
    await delete_fact(api, "boat", under=USER)
    assert await call(api, "memory_log", {"day": "2026-04-02"}) == "Nothing was learnt on 2026-04-02."
    assert "boat: black" in await call(api, "memory_log", {})


async def test_the_log_of_a_group_is_of_the_character(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[KAI, {"name": "Ines"}])
    await set_fact(api, "boat", "white", under=USER)
    await set_fact(api, "boat", "grey", under=f"{USER}/characters/Ines")
    await write(api, TOMAS, under=f"{USER}/characters/Ines")
    of_user = "Learnt on 2026-04-01:\n- [fact] boat: white"
    assert await call(api, "memory_log", {}) == of_user
    assert await call(api, "memory_log", {}, character="Kai") == of_user
    log = await call(api, "memory_log", {}, character="Ines")
    assert [TOMAS in log, "boat: grey" in log, "white" in log] == [True, True, False]


async def test_the_log_of_a_token_of_a_chat_is_its_own(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await set_fact(api, "boat", "white", under=USER)
    await set_fact(api, "lamp", "green")
    clock.step(DAY_S)
    await append(api, talk(1, 2))
    await note(api, "lamp", "blue")
    token = await token_of(api, chat_id="c")
    answer = await api.post(f"{CHAT}/tools/memory_log", json=FIRST_DAY, headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["result"] == "Learnt on 2026-04-01:\n- [fact] lamp: green (it has changed since)"


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
