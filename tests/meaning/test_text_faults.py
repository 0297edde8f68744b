"""Vectors of the layers' texts if the model fails, or if texts change while it is asked."""

import asyncio

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.passages.texts import MOST_TEXTS
from app.registry import LAYERS
from tests.background import settle
from tests.facts.asking import begin, set_fact
from tests.meaning.asking import refuse_bombs, rest
from tests.meaning.test_text_vectors import CAT, FERRY, count_texts, list_found
from tests.memories.asking import Learner, delete, write
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.scripted_model import refuses
from tests.talk import CHAT, append, ok

USER = "/v1/users/mira"


@pytest.fixture
async def two_chats(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """Two chats of mira that teach their user."""
    for chat in ("c", "d"):
        await begin(
            api, chat, memos={"enabled": False}, memories={"learn_scope": "user"}, search={"across_chats": True}
        )
        await append(api, rest(1, 4), chat)
    await settle(dispatcher, clock)


async def test_a_refused_text_keeps_no_other_from_its_vector(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
) -> None:
    model.otherwise = refuse_bombs
    await begin(api, memos={"enabled": False})
    for number in range(MOST_TEXTS + 5):
        await write(api, f"A bomb, number {number}.")
    await write(api, FERRY)
    await settle(dispatcher, clock)
    for _ in range(12):  # each change of a text tries others of those that are missing
        if await count_texts(database, tenant):
            break
        await write(api, FERRY.replace(".", "!"))
        await settle(dispatcher, clock)
    assert (await list_found(api, "Which ship?"))[0].startswith("Mira came with the ferry")


@pytest.mark.parametrize("is_configured", [True, False])
async def test_a_forgotten_text_loses_its_vector_without_a_model(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    of_worker: Database,
    clock: SteppedClock,
    tenant: str,
    model: ScriptedEmbeddings,
    is_configured: bool,
) -> None:
    await begin(api, memos={"enabled": False})
    memory = await write(api, FERRY)
    await settle(dispatcher, clock)
    assert await count_texts(of_worker, tenant) == 1
    await delete(api, memory["id"])
    await write(api, CAT)
    model.otherwise = lambda _: refuses(503)
    worker = dispatcher if is_configured else Dispatcher(JobContext(of_worker, clock), LAYERS, slots=8, poll_s=30)
    await settle(worker, clock)
    assert await count_texts(of_worker, tenant) == 0


@pytest.mark.usefixtures("two_chats")
async def test_a_text_that_is_erased_meanwhile_gets_no_vector(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
    learn: Learner,
) -> None:
    await learn(FERRY, "m1")
    await settle(dispatcher, clock)
    await append(api, rest(5, 6), "d")
    gate = model.hold()
    running = asyncio.create_task(settle(dispatcher, clock))
    await gate.reached(2)  # a message's vector, and the memory's
    ok(await api.delete(CHAT), 204)
    gate.release()
    await running
    await settle(dispatcher, clock)
    assert await count_texts(database, tenant, "d") == 0


@pytest.mark.usefixtures("two_chats")
async def test_facts_of_the_user_are_found_in_other_chats(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await set_fact(api, "travel", "by ferry", under=USER)
    await append(api, rest(5, 6), "d")
    await settle(dispatcher, clock)
    answer = ok(await api.post("/v1/chats/d/memories/search", json={"query": "Which ship?"}), 200)
    assert (answer["hits"][0]["kind"], answer["hits"][0]["parts"]["vector"]) == ("fact", pytest.approx(0.5))


@pytest.mark.usefixtures("two_chats")
@pytest.mark.parametrize("chat", ["c", "d"])
async def test_a_users_search_finds_a_memory_by_any_chats_vector(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, chat: str
) -> None:
    await write(api, FERRY, under=USER)
    await append(api, rest(5, 6), chat)
    await settle(dispatcher, clock)
    answer = ok(await api.post(f"{USER}/memories/search", json={"query": "Which ship?"}), 200)
    assert (answer["hits"][0]["kind"], answer["hits"][0]["parts"]["vector"]) == ("memory", pytest.approx(0.5))
