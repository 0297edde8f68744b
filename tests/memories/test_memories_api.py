"""Memories that people write, change and forget, in each scope."""

import asyncio

import httpx
import pytest

from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import NOON, client_of
from tests.facts.asking import USER, begin, checkpoint, fork, learn_wide, restore
from tests.memories.asking import Learner, change, delete, history, listed, memories, write
from tests.memories.test_remember import THREE_CATS, TOMAS, TWO_CATS
from tests.talk import CHAT, Json, append, context, cut_off, get, ok, put, soft_delete, talk, token_of

DAY_S = 86_400
KAI_OF_MIRA = f"{USER}/characters/Kai"
SCOPES = [CHAT, KAI_OF_MIRA, USER, "/v1"]


async def test_a_memory_is_written_and_read(api: httpx.AsyncClient) -> None:
    await begin(api)
    memory = await write(api, TOMAS, category="personal", importance=0.8, tags=["family"])
    assert await get(api, f"/memories/{memory['id']}") == memory
    assert await memories(api) == [memory]
    shown = {name: value for name, value in memory.items() if name not in ("id", "said_at", "created_at")}
    assert memory["said_at"] == memory["created_at"]
    assert shown == {
        "content": TOMAS,
        "category": "personal",
        "importance": 0.8,
        "tags": ["family"],
        "scope": "chat",
        "character": None,
        "origin": "person",
        "edited": False,
        "session_id": None,
        "sources": [],
        "pinned": False,
        "archived": False,
        "score": 0.8,
    }


@pytest.mark.parametrize("under", SCOPES)
async def test_each_scope_has_memories(api: httpx.AsyncClient, clock: SteppedClock, under: str) -> None:
    await begin(api)
    memory = await write(api, TWO_CATS, under=under)
    assert await listed(api) == {TWO_CATS}
    clock.step(60)
    changed = await change(api, memory["id"], under=under, content=THREE_CATS, pinned=True)
    assert (changed["id"], changed["pinned"], changed["edited"]) == (memory["id"], True, False)
    assert ok(await api.get(f"{under}/memories/{memory['id']}"), 200) == changed
    assert await listed(api) == await listed(api, under=under) == {THREE_CATS}
    assert await history(api, memory["id"], under=under, limit=1) == [THREE_CATS, TWO_CATS]
    await delete(api, memory["id"], under=under)
    assert await listed(api) == await listed(api, under=under) == set()
    for method, path in (("GET", ""), ("DELETE", "")):
        ok(await api.request(method, f"{under}/memories/{memory['id']}{path}"), 404)
    assert await history(api, memory["id"], under=under) == [None, THREE_CATS, TWO_CATS]


async def test_a_learnt_memory_names_its_messages(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(TOMAS, "m3", "m1")
    (memory,) = await memories(api)
    assert memory["sources"] == ["message:m1", "message:m3"]
    assert memory["origin"] == "model"


async def test_an_edited_memory_holds_on_all_lines(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    found = await learn(TWO_CATS, "m4")
    clock.step(60)
    changed = await change(api, found.memory_id, content=THREE_CATS)
    assert (changed["origin"], changed["edited"]) == ("person", True)
    await restore(api, "before")
    assert await listed(api) == {THREE_CATS}


async def test_a_pin_does_not_keep_what_was_taken_back(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    found = await learn(TOMAS, "m2")
    await change(api, found.memory_id, pinned=True, importance=1, tags=["family"])
    await soft_delete(api, "m2")
    assert await listed(api) == set()


async def test_a_pin_stays_when_the_text_changes(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    found = await learn(TWO_CATS, "m2")
    await change(api, found.memory_id, pinned=True)
    clock.step(60)
    await learn(THREE_CATS, "m4")
    assert [(one["content"], one["pinned"]) for one in await memories(api)] == [(THREE_CATS, True)]


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_fields_set_by_a_person_stay_when_the_text_changes(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock, scope: str
) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 6))
    under = CHAT if scope == "chat" else USER
    found = await learn(TWO_CATS, "m1", importance=0.9, category="personal", tags=("cats",))
    await change(api, found.memory_id, under=under, importance=0.2)
    await change(api, found.memory_id, under=under, tags=["mine"])
    clock.step(60)
    await learn(THREE_CATS, "m3", importance=0.8, category="context", tags=("pets",))
    (memory,) = await memories(api)
    assert (memory["content"], memory["importance"], memory["tags"]) == (THREE_CATS, 0.2, ["mine"])
    assert memory["category"] == "context"
    ok(await api.get(f"{CHAT}/blocks/facts"), 404)
    clock.step(60)
    await learn(TWO_CATS.replace("two", "four"), "m5", importance=0.8, category="personal")
    (memory,) = await memories(api)
    assert (memory["importance"], memory["tags"], memory["category"]) == (0.2, ["mine"], "personal")


async def test_a_chat_changes_wide_memories_for_itself(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await begin(api, "d")
    first, second = await write(api, TWO_CATS, under=USER), await write(api, TOMAS, under=USER)
    clock.step(60)
    changed = await change(api, first["id"], content=THREE_CATS)
    assert changed["scope"] == "chat"
    await delete(api, second["id"])
    assert await listed(api) == {THREE_CATS}
    assert await listed(api, under="/v1/chats/d") == {TWO_CATS, TOMAS}


async def test_a_chat_keeps_a_wide_memory_in_the_archive(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    memory = await write(api, TOMAS, under=USER)
    await change(api, memory["id"], under=USER, archived=True)
    clock.step(60)
    changed = await change(api, memory["id"], tags=["family"])
    assert (changed["scope"], changed["tags"], changed["archived"]) == ("chat", ["family"], True)
    assert await listed(api) == set()
    assert not (await change(api, memory["id"], archived=False))["archived"]


async def test_a_group_chat_does_not_share_what_one_knows(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}, {"name": "Rin"}])
    known = await write(api, TOMAS, under=KAI_OF_MIRA)
    for changed in ({"content": TWO_CATS}, {"pinned": True}):
        problem = ok(await api.patch(f"{CHAT}/memories/{known['id']}", json=changed), 409)
        assert problem["code"] == "memory_of_character"
    assert await listed(api, character="Rin") == set()
    assert await listed(api, character="Kai") == {TOMAS}
    await delete(api, known["id"])
    assert await listed(api, character="Kai") == set()
    assert await listed(api, under=KAI_OF_MIRA) == {TOMAS}


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_forgotten_memory_is_not_learnt_again(api: httpx.AsyncClient, learn: Learner, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    under = CHAT if scope == "chat" else USER
    await learn(TWO_CATS, "m4")
    (memory,) = await memories(api)
    await delete(api, memory["id"], under=under)
    assert (await learn(TWO_CATS, "m4")).outcome == "forgotten"
    assert (await learn(THREE_CATS, "m4")).outcome == "forgotten"
    assert (await learn(TOMAS, "m4")).outcome == "new"
    await restore(api, "before")
    await append(api, talk(3, 4))
    assert (await learn(f" {TWO_CATS.upper()}", "m4")).outcome == "forgotten"
    assert await listed(api) == set()


@pytest.mark.parametrize(
    ("scope", "under"), [("chat", CHAT), ("character", CHAT), ("character", KAI_OF_MIRA), ("user", CHAT)]
)
async def test_a_memory_forgotten_in_a_nearer_scope_is_not_relearnt(
    api: httpx.AsyncClient, learn: Learner, scope: str, under: str
) -> None:
    await begin(api, "d")
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await learn(TWO_CATS, "m1")
    (memory,) = await memories(api)
    await delete(api, memory["id"], under=under)
    await put(api, settings={"memories": {"learn_scope": "user"}}, status=200)
    await cut_off(api, 1)
    await append(api, talk(3, 4))
    assert (await learn(f"{TWO_CATS} ", "m3")).outcome == "forgotten"
    assert await listed(api) == await listed(api, under="/v1/chats/d") == set()
    assert (await learn(TOMAS, "m3")).outcome == "new"


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_corrected_text_does_not_come_back(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock, scope: str
) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 4))
    under = CHAT if scope == "chat" else USER
    found = await learn(TWO_CATS, "m1")
    await change(api, found.memory_id, under=under, content=THREE_CATS)
    for message_id in ("m1", "m3"):
        clock.step(60)
        again = await learn(TWO_CATS, message_id)
        assert (again.outcome, again.memory_id) == ("duplicate", found.memory_id)
    assert await listed(api) == {THREE_CATS}
    assert await history(api, found.memory_id) == [THREE_CATS, TWO_CATS]
    await cut_off(api, 2)
    await soft_delete(api, "m1")
    await append(api, talk(5, 6))
    assert (await learn(TWO_CATS.upper(), "m5")).outcome == "duplicate"
    assert await listed(api) == {THREE_CATS}
    await cut_off(api, 1)
    await append(api, talk(7, 8))
    assert (await learn(TWO_CATS, "m7")).outcome == "forgotten"
    assert await listed(api) == {THREE_CATS}


async def test_a_text_corrected_in_a_chat_is_not_shown_there_again(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await learn_wide(api)
    await begin(api, "d")
    await append(api, talk(1, 2))
    found = await learn(TWO_CATS, "m1")
    await change(api, found.memory_id, content=THREE_CATS)
    await cut_off(api, 1)
    await append(api, talk(3, 4))
    assert (await learn(TWO_CATS, "m3")).outcome == "new"
    assert await listed(api) == {THREE_CATS}
    assert await listed(api, under="/v1/chats/d") == {TWO_CATS}


@pytest.mark.parametrize("under", [CHAT, USER])
async def test_a_memory_archived_by_a_person_stays_archived(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock, under: str
) -> None:
    await learn_wide(api)
    await append(api, talk(1, 4))
    found = await learn(TWO_CATS, "m1")
    await change(api, found.memory_id, under=under, archived=True)
    for message_id in ("m1", "m3"):
        clock.step(60)
        again = await learn(TWO_CATS, message_id)
        assert (again.outcome, again.memory_id) == ("duplicate", found.memory_id)
    assert await listed(api) == set()
    assert await listed(api, archived=True) == {TWO_CATS}
    await soft_delete(api, "m1")
    assert await listed(api, archived=True) == {TWO_CATS}


async def test_other_chats_keep_what_a_chat_forgot(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await learn_wide(api)
    await learn_wide(api, "d")
    await append(api, talk(1, 2))
    ok(await api.post("/v1/chats/d/messages", json={"messages": talk(1, 2)}), 201)
    first = await learn(TWO_CATS, "m1", importance=0.8)
    await delete(api, first.memory_id)
    await cut_off(api, 1)
    again = await learn(TWO_CATS, "m1", chat_id="d", importance=0.8)
    assert (again.outcome, again.memory_id != first.memory_id) == ("new", True)
    assert await listed(api) == set()
    assert await listed(api, under="/v1/chats/d") == {TWO_CATS}
    for chat_id, found in (("c", False), ("d", True)):
        path = f"/v1/chats/{chat_id}"
        shown = ok(await api.get(f"{path}/context", params={"recall": "auto", "query": TWO_CATS}), 200)
        assert (TWO_CATS in str(shown["segments"])) is found
        block = await api.get(f"{path}/blocks/facts")
        assert (TWO_CATS in block.text) is found
        hits = ok(await api.post(f"{path}/memories/search", json={"query": "cats"}), 200)["hits"]
        assert (TWO_CATS in [one["text"] for one in hits]) is found
    clock.step(60)
    await append(api, talk(3, 4))
    assert (await learn(THREE_CATS, "m3")).outcome == "forgotten"
    await write(api, TWO_CATS, under=USER)
    assert await listed(api) == {TWO_CATS}


async def test_a_forgotten_memory_is_not_learnt_in_forks(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    found = await learn(TWO_CATS, "m4")
    await delete(api, found.memory_id)
    await fork(api, "f", at_seq=2)
    assert (await learn(TWO_CATS, "m2", chat_id="f")).outcome == "forgotten"


async def test_a_day_is_that_of_the_chat(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}], time_zone="Pacific/Auckland")  # 13 hours ahead
    await write(api, TWO_CATS)
    await write(api, TWO_CATS, under=USER)
    clock.step(DAY_S)
    await write(api, TOMAS)
    assert await listed(api, day="2026-04-02") == {TWO_CATS}
    assert await listed(api, day="2026-04-03") == {TOMAS}
    assert await listed(api, day="2026-04-01") == set()
    assert await listed(api, under=USER, day="2026-04-01") == {TWO_CATS}
    for day in ("0001-01-01", "9999-12-31", "yesterday"):
        await get(api, "/memories", 422, day=day)


async def test_pages_have_the_strongest_first(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for n in range(7):
        await write(api, f"memory {n}", importance=n / 6)
    names = [f"memory {n}" for n in reversed(range(7))]
    assert [one["content"] for one in await memories(api, limit=2)] == names
    clock.step(7 * DAY_S)
    await write(api, "a later one", importance=0.4)
    assert [one["content"] for one in await memories(api, limit=3)][:4] == [
        *names[:1],
        names[1],
        "a later one",
        names[2],
    ]
    assert (await memories(api))[0]["score"] == pytest.approx(0.5)


async def test_a_half_life_is_long_enough_to_compute_with(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for short in (5e-324, 1e-300, 0.009):
        ok(await api.put(CHAT, json={"settings": {"memories": {"half_life_days": short}}}), 422)
    ok(await api.put(CHAT, json={"settings": {"memories": {"half_life_days": 0.01}}}), 200)
    await write(api, TOMAS, importance=0.5)
    for days, score in ((-3_650, 0.5), (36_500, 0.0)):
        clock.step(days * DAY_S)
        assert [one["score"] for one in await memories(api)] == [score]


async def test_racing_changes_of_a_wide_memory_all_hold(api: httpx.AsyncClient) -> None:
    memory = await write(api, TOMAS, under=USER)
    changes: list[Json] = [
        {"pinned": True},
        {"archived": True},
        {"category": "goal"},
        {"tags": ["family"]},
        {"importance": 1},
        {"content": "Tomas was a ferryman."},
    ]
    await asyncio.gather(*(change(api, memory["id"], under=USER, **one) for one in changes))
    found = ok(await api.get(f"{USER}/memories/{memory['id']}"), 200)
    assert [{name: found[name] for name in one} for one in changes] == changes


async def test_wrong_memories_are_refused(api: httpx.AsyncClient) -> None:
    await begin(api)
    for wrong in (
        {"content": " "},
        {"content": "x", "importance": 1.1},
        {"content": "x", "category": "weather"},
        {"content": "x", "tags": [""]},
        {"content": "x", "tags": ["x"] * 21},
        {"content": "x" * 2_001},
    ):
        ok(await api.post(f"{CHAT}/memories", json=wrong), 422)
    await get(api, "/memories", 422, cursor="x")
    await get(api, "/memories/00000000-0000-0000-0000-000000000000/history", 404)


async def test_a_wide_memory_changes_the_tag_of_a_context(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    memory = await write(api, TOMAS, under=USER)
    tag = (await api.get(f"{CHAT}/context")).headers["etag"]
    await change(api, memory["id"], under=USER, pinned=True)
    assert (await api.get(f"{CHAT}/context", headers={"If-None-Match": tag})).status_code == 200
    assert await context(api)


async def test_tenants_and_tokens_are_kept_apart(api: httpx.AsyncClient, app: object, database: Database) -> None:
    await begin(api)
    memory = await write(api, TOMAS, under=USER)
    async with database.unit_of_work() as db_session:
        other = await create_key(db_session, "another", ["read", "write"], NOON)
    async with client_of(app, other.text) as client:  # type: ignore[arg-type]
        assert await listed(client, under=USER) == set()
        await delete(client, memory["id"], under=USER, status=404)
    async with client_of(app, await token_of(api, chat_id="c")) as browser:  # type: ignore[arg-type]
        for under, status in ((USER, 404), (KAI_OF_MIRA, 404), ("/v1", 403)):
            assert (await browser.get(f"{under}/memories")).status_code == status
            await delete(browser, memory["id"], under=under, status=status)
        await delete(browser, memory["id"], status=404)
    assert await listed(api, under=USER) == {TOMAS}
