"""The session in which a memory was learnt."""

from typing import Any

import httpx
import pytest

from tests.facts.asking import USER, begin, checkpoint, fork, restore, switch_to
from tests.memories.asking import Learner, change, memories, write
from tests.memories.test_remember import TOMAS, TWO_CATS
from tests.talk import append, cut_off, get, ok, put, soft_delete, talk

IDLE: dict[str, Any] = {"sessions": {"idle_timeout_s": 3_600}}


@pytest.fixture(autouse=True)
async def two_sessions(api: httpx.AsyncClient) -> None:
    """A chat of two sessions: the messages 1 to 4, and 5 to 8."""
    await begin(api, **IDLE)
    await append(api, talk(1, 4))
    ok(await api.post("/v1/chats/c/sessions/break"), 201)
    await append(api, talk(5, 8))


async def sessions(api: httpx.AsyncClient, chat_id: str = "c") -> list[str]:
    return [str(one["id"]) for one in ok(await api.get(f"/v1/chats/{chat_id}/sessions"), 200)["items"]]


async def session_of(api: httpx.AsyncClient, content: str, **query: Any) -> str | None:
    (one,) = (memory for memory in await memories(api, **query) if memory["content"] == content)
    found: str | None = one["session_id"]
    return found


async def test_a_memory_has_the_session_of_its_newest_source(api: httpx.AsyncClient, learn: Learner) -> None:
    first, second = await sessions(api)
    await learn(TWO_CATS, "m3")
    await learn(TOMAS, "m2", "m6")
    assert await session_of(api, TWO_CATS) == first
    assert await session_of(api, TOMAS) == second
    await soft_delete(api, "m6")
    assert await session_of(api, TOMAS) == first


async def test_a_text_by_a_person_belongs_to_no_session(api: httpx.AsyncClient, learn: Learner) -> None:
    await write(api, TWO_CATS)
    found = await learn(TOMAS, "m2")
    await change(api, found.memory_id, content="Mira's brother Tomas is a pilot.")
    assert [one["session_id"] for one in await memories(api)] == [None, None]


async def test_the_session_survives_a_restore_switch_and_fork(api: httpx.AsyncClient, learn: Learner) -> None:
    _, second = await sessions(api)
    await learn(TOMAS, "m6")
    await checkpoint(api, "later")
    line = (await get(api, ""))["line"]
    await cut_off(api, 8)
    await restore(api, "later")
    assert await session_of(api, TOMAS) == second
    await switch_to(api, line)
    assert await session_of(api, TOMAS) == second
    await fork(api, "d", at_seq=7)
    (one,) = ok(await api.get("/v1/chats/d/memories"), 200)["items"]
    assert one["session_id"] == (await sessions(api, "d"))[1]


async def test_a_memory_of_the_user_names_where_it_was_learnt(api: httpx.AsyncClient, learn: Learner) -> None:
    await put(api, status=200, settings={"memories": {"learn_scope": "user"}})
    _, second = await sessions(api)
    await learn(TOMAS, "m6")
    await begin(api, "d")
    (of_user,) = ok(await api.get(f"{USER}/memories"), 200)["items"]
    (in_other,) = ok(await api.get("/v1/chats/d/memories"), 200)["items"]
    assert (of_user["session_id"], in_other["session_id"]) == (second, second)
    assert (of_user["sources"], in_other["sources"]) == ([], [])


async def test_a_chat_without_breaks_has_a_session_if_they_are_on(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, "d", **IDLE)
    await append(api, talk(1, 2), "d")
    found = await learn(TOMAS, "m1", chat_id="d")
    path = f"/v1/chats/d/memories/{found.memory_id}"
    assert ok(await api.get(path), 200)["session_id"] == (await sessions(api, "d"))[0]
    await put(api, "d", status=200, settings={"sessions": None})
    assert ok(await api.get(path), 200)["session_id"] is None
