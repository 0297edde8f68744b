"""The texts of the layers are found by their meaning, as they stand on the current line."""

import asyncio

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.background import settle
from tests.facts.asking import begin, set_fact
from tests.meaning.asking import rest, search
from tests.memories.asking import Learner, change, delete, listed, memories, write
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.search.finding import message
from tests.talk import CHAT, Json, append, context, cut_off, ok, put, soft_delete

FERRY = "Mira came with the ferry."
CAT = "Kai keeps a kitten."


@pytest.fixture
async def story(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat whose messages have left the history and are about nothing, with two memories."""
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    await begin(api, memos={"enabled": False}, history=history, recall={"mode": "auto"})
    await append(api, rest(1, 6))
    await write(api, FERRY)
    await write(api, CAT)
    await settle(dispatcher, clock)


async def list_found(api: httpx.AsyncClient, query: str, **more: object) -> list[str]:
    """The texts of the results that are no messages, best first, without the marks of the words."""
    hits = (await search(api, query, **more))["hits"]
    return [str(hit["snippet"]).replace("**", "") for hit in hits if hit["kind"] != "message"]


async def list_recalled(api: httpx.AsyncClient, query: str) -> list[Json]:
    return [one for one in (await context(api, query=query))["recalled"] if one["kind"] == "memory"]


async def count_texts(database: Database, tenant: str, chat: str = "c") -> int:
    async with database.raw() as connection:
        query = "SELECT count(*) FROM text_vectors WHERE chat_key = $1"
        return int(await connection.fetchval(query, chat_key(tenant, chat)))


@pytest.mark.usefixtures("story")
async def test_a_memory_is_found_by_its_meaning(api: httpx.AsyncClient) -> None:
    answer = await search(api, "Which ship?")
    assert answer["mode"] == "hybrid"
    best = answer["hits"][0]
    assert (best["kind"], best["parts"]["text"], best["parts"]["vector"]) == ("memory", 0, pytest.approx(0.5))
    assert (await list_found(api, "Which ship?"))[0] == FERRY
    assert (await list_found(api, "Who purrs?"))[0] == CAT


async def test_texts_of_several_layers_get_vectors(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"every_messages": 4})
    await set_fact(api, "travel", "by ferry")
    await append(api, [message(1, "The loaf is warm."), message(2, "My oven is old."), *rest(3, 40)])
    await settle(dispatcher, clock)
    await settle(dispatcher, clock)  # the vectors of what was made now
    hits = (await search(api, "A ship, or bread?", limit=100))["hits"]
    nearest = {hit["kind"] for hit in hits if hit["parts"]["vector"] > 0.3}
    assert nearest == {"fact", "memo", "message"}
    assert await count_texts(database, tenant) == len({hit["text"] for hit in hits if hit["kind"] != "message"})


@pytest.mark.usefixtures("story")
async def test_recall_finds_a_memory_by_its_meaning(api: httpx.AsyncClient) -> None:
    (first, *_) = await list_recalled(api, "Which ship?")
    (remembered, *_) = await list_recalled(api, "Who purrs?")  # from the process's memory of texts
    for one in (first, remembered):
        assert (one["parts"]["text"], one["parts"]["vector"]) == (0, pytest.approx(0.5))
    assert first["id"] != remembered["id"]


@pytest.mark.usefixtures("story")
async def test_a_memory_about_something_else_is_not_recalled(api: httpx.AsyncClient) -> None:
    (first, *_) = (await search(api, "Fresh bread?", kinds=["memory"]))["hits"]
    assert first["parts"]["vector"] == pytest.approx(0.5), "it is the most similar one"
    for _ in range(2):  # the second time from the process's memory of texts
        assert await list_recalled(api, "Fresh bread?") == []
    assert len(await list_recalled(api, "A ship with bread?")) == 1


@pytest.mark.usefixtures("story")
async def test_remembered_texts_score_as_those_that_are_read(api: httpx.AsyncClient) -> None:
    query = "Which ship came with Mira?"
    read, remembered = await list_recalled(api, query), await list_recalled(api, query)
    assert [one["parts"] for one in remembered] == [one["parts"] for one in read]


@pytest.mark.usefixtures("story")
async def test_a_changed_memory_is_found_by_its_new_meaning(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    (first, *_) = (await search(api, "Which ship?", kinds=["memory"]))["hits"]
    changed = await change(api, first["id"], content="Mira bakes a loaf.")
    found = (await search(api, "Which ship?", kinds=["memory"]))["hits"]
    assert all(hit["parts"]["vector"] < 0.5 or hit["snippet"] != "Mira bakes a loaf." for hit in found)
    await settle(dispatcher, clock)
    assert (await list_found(api, "the oven"))[0] == "Mira bakes a loaf."
    assert await count_texts(database, tenant) == 2
    await delete(api, changed["id"])
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant) == 1, "a forgotten text keeps no vector"


@pytest.mark.usefixtures("story")
async def test_a_memory_leaves_and_returns_to_search_with_its_message(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    learn: Learner,
) -> None:
    await learn("There is bread on Fridays.", "m3")
    await settle(dispatcher, clock)
    assert (await list_found(api, "the oven"))[0] == "There is bread on Fridays."
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "before"}), 201)
    await cut_off(api, 3)
    assert "There is bread on Fridays." not in await list_found(api, "the oven")
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant) == 2
    ok(await api.post(f"{CHAT}/checkpoints/before/restore"), 201)
    await settle(dispatcher, clock)
    assert (await list_found(api, "the oven"))[0] == "There is bread on Fridays."


@pytest.mark.usefixtures("story")
async def test_the_texts_of_a_line_get_vectors_when_it_returns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, learn: Learner
) -> None:
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "before"}), 201)
    await append(api, [message(7, "The loaf is warm.")])
    await learn("There is bread on Fridays.", "m7")
    former = ok(await api.get(CHAT), 200)["line"]
    ok(await api.post(f"{CHAT}/checkpoints/before/restore"), 201)
    await settle(dispatcher, clock)
    ok(await api.post(f"{CHAT}/lines/{former}/switch"), 200)
    await settle(dispatcher, clock)
    assert (await list_found(api, "the oven"))[0] == "There is bread on Fridays."


@pytest.mark.usefixtures("story")
async def test_a_fork_copies_the_vectors_of_its_texts(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
) -> None:
    asked = len(model.requests)
    ok(await api.post(f"{CHAT}/fork", json={"chat_id": "f"}), 201)
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant, "f") == 2
    assert len(model.requests) == asked
    ok(await api.delete(CHAT), 204)
    assert (await count_texts(database, tenant), await count_texts(database, tenant, "f")) == (0, 2)


async def test_a_shared_diary_is_found_by_its_own_vectors(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    for chat_id in ("c", "d"):
        await begin(api, chat_id, memos={"enabled": False}, diary={"scope": "character"}, recall={"mode": "auto"})
        await append(api, rest(1, 4), chat_id)
    for content in (FERRY, CAT):
        ok(await api.post("/v1/chats/d/diary", json={"content": content}), 201)
    await settle(dispatcher, clock)
    assert (await count_texts(database, tenant), await count_texts(database, tenant, "d")) == (0, 2)
    hit, *_ = (await search(api, "Which ship?", kinds=["diary"]))["hits"]
    assert (hit["text"], hit["parts"]["text"], hit["parts"]["vector"]) == (FERRY, 0, pytest.approx(0.5))
    found = ok(await api.post(f"{CHAT}/tools/memory_search", json={"query": "Who purrs?"}), 200)["result"]
    assert CAT in found.splitlines()[1]
    ok(await api.delete("/v1/chats/d"), 204)
    assert await list_found(api, "Which ship?") == []
    assert await count_texts(database, tenant, "d") == 0


@pytest.mark.usefixtures("story")
async def test_nothing_is_made_again_without_a_change(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedEmbeddings
) -> None:
    asked = len(model.requests)
    await soft_delete(api, "m3")
    await append(api, rest(7, 8))
    await settle(dispatcher, clock)
    texts = [text for request in model.requests[asked:] for text in request["input"]]
    assert texts == ["User: We talk on, day 7.", "Kai: We talk on, day 8."]


@pytest.mark.usefixtures("story")
async def test_a_text_that_changes_meanwhile_is_compared_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedEmbeddings
) -> None:
    await write(api, "There is bread on Fridays.")
    gate = model.hold()
    running = asyncio.create_task(settle(dispatcher, clock))
    await gate.reached()
    await write(api, "Nell mends the vessel.")
    gate.release()
    await running
    await settle(dispatcher, clock)
    assert set(await list_found(api, "Which ship?")) >= {FERRY, "Nell mends the vessel."}


async def test_many_texts_get_vectors_in_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    for number in range(130):
        await write(api, f"Fact number {number} of the story, {number * 7919}.")
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant) == 130


@pytest.mark.usefixtures("story")
async def test_an_imported_vault_gets_vectors_for_its_texts(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    vault = await api.get(f"{CHAT}/export?format=vault")
    ok(await api.post("/v1/import?format=vault&chat_id=d", content=vault.content), 201)
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant, "d") == 2


async def test_erasing_a_chat_deletes_what_it_taught_others(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    learn: Learner,
) -> None:
    for chat in ("c", "d"):
        await begin(api, chat, memos={"enabled": False}, memories={"learn_scope": "user"})
    await append(api, rest(1, 4))
    await learn(FERRY, "m1")
    await write(api, CAT, under="/v1/users/mira")
    await write(api, "Kai likes the dark.", under="/v1/chats/d")
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant, "d") == 3
    ok(await api.delete(CHAT), 204)
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant, "d") == 2


@pytest.mark.usefixtures("story")
async def test_a_faded_memory_keeps_its_vector(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await put(api, status=200, settings={"memories": {"forget_below": 0.3, "max_memories": 2}})
    (cat,) = (one for one in await memories(api) if one["content"] == CAT)
    await change(api, cat["id"], importance=0.69)
    clock.step(60 * 86_400)
    await append(api, rest(7, 8))
    await write(api, "There is bread on Fridays.")
    await settle(dispatcher, clock)
    assert await listed(api, archived=True) == {FERRY, CAT}
    assert await count_texts(database, tenant) == 2, "the weakest of three is too many"
    assert (await list_found(api, "Who purrs?"))[0] == CAT
    (remembered,) = await list_recalled(api, "Who purrs?")
    assert (remembered["parts"]["text"], remembered["parts"]["vector"]) == (0, pytest.approx(0.5))
