"""Messages are found by their meaning, as they stand on the line."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle
from tests.book import due_rows
from tests.facts.asking import begin
from tests.meaning.asking import count_vectors, find_best, mean, refuse_bombs, rest, search
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.scripted_model import Reply, Request, refuses
from tests.search.finding import message
from tests.talk import CHAT, Json, add_swipe, append, context, cut_off, edit, ok, select_swipe, soft_delete


@pytest.mark.usefixtures("story")
async def test_a_message_is_found_by_its_meaning(api: httpx.AsyncClient) -> None:
    (best, *_) = (await search(api, "Which ferry?"))["hits"]
    assert (best["id"], best["kind"]) == ("m1", "message")
    assert best["parts"]["vector"] == pytest.approx(0.5)
    assert best["parts"]["text"] == 0
    assert best["score"] == pytest.approx(sum(best["parts"].values()))
    assert await find_best(api, "a cat") == "m2"


@pytest.mark.usefixtures("story")
async def test_words_and_meaning_add_up(api: httpx.AsyncClient) -> None:
    (best, *_) = (await search(api, "The vessel"))["hits"]
    assert best["id"] == "m1"
    assert (best["parts"]["text"], best["parts"]["vector"]) == (0.5, pytest.approx(0.5))


@pytest.mark.usefixtures("story")
async def test_a_query_without_a_word_to_look_up_is_answered(api: httpx.AsyncClient) -> None:
    assert (await search(api, "?!"))["mode"] == "hybrid"


@pytest.mark.usefixtures("story")
async def test_an_edit_is_found_by_its_new_meaning(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await edit(api, "m1", content="The loaf is warm.")
    found = (await search(api, "Which ferry?"))["hits"]
    assert all(hit["id"] != "m1" for hit in found), "the vector of the former text is not compared"
    await settle(dispatcher, clock)
    assert await find_best(api, "bread") == "m1"
    assert await count_vectors(database, tenant) == 7


@pytest.mark.usefixtures("story")
async def test_an_edit_is_found_by_its_words_before_it_has_a_vector(api: httpx.AsyncClient) -> None:
    await edit(api, "m5", content="The password is Pumpernickel.")
    assert await find_best(api, "Pumpernickel") == "m5"


@pytest.mark.usefixtures("story")
async def test_the_nearest_of_a_limited_search_are_considered(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, [message(n, f"A vessel, day {n}.", sent_at="2030-01-01T00:00:00Z") for n in range(8, 408)])
    await settle(dispatcher, clock)
    early = (await search(api, "Which ferry?", before="2029-01-01T00:00:00Z"))["hits"]
    assert early[0]["id"] == "m1"


@pytest.mark.usefixtures("story")
async def test_a_swipe_back_needs_no_new_vector(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedEmbeddings
) -> None:
    await add_swipe(api, "m2", "The bread burns.")
    await select_swipe(api, "m2", 0)
    asked = len(model.requests)
    assert await find_best(api, "a cat") == "m2"
    await settle(dispatcher, clock)
    assert await find_best(api, "a cat") == "m2"
    assert [request["input"] for request in model.requests[asked:]] == [["a cat"], ["a cat"]]


@pytest.mark.usefixtures("story")
async def test_a_deleted_message_is_not_found_by_its_meaning(api: httpx.AsyncClient) -> None:
    await soft_delete(api, "m1")
    assert all(hit["id"] != "m1" for hit in (await search(api, "Which ferry?"))["hits"])


@pytest.mark.usefixtures("story")
async def test_a_restored_line_has_its_vectors(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "before"}), 201)
    await cut_off(api, 1)
    await append(api, [message(20, "The oven is cold.")])
    await settle(dispatcher, clock)
    assert all(hit["id"] == "m20" for hit in (await search(api, "Which ferry?"))["hits"])
    ok(await api.post(f"{CHAT}/checkpoints/before/restore"), 201)
    assert await find_best(api, "Which ferry?") == "m1"
    ok(await api.delete(CHAT), 204)
    assert await count_vectors(database, tenant) == 0


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize("at_seq", [None, 2], ids=["whole", "at a message"])
async def test_a_fork_has_vectors_and_asks_for_none_again(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
    at_seq: int | None,
) -> None:
    await edit(api, "m1", content="The loaf is warm.")  # its vector is not made yet
    asked = len(model.requests)
    ok(await api.post(f"{CHAT}/fork", json={"chat_id": "f", "at_seq": at_seq}), 201)
    assert await count_vectors(database, tenant, "f") == (6 if at_seq is None else 1)
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant, "f") == (7 if at_seq is None else 2)
    found = ok(await api.post("/v1/chats/f/memories/search", json={"query": "bread"}), 200)
    assert (found["mode"], found["hits"][0]["id"]) == ("hybrid", "m1")
    texts = [text for request in model.requests[asked:] for text in request["input"]]
    assert sorted(set(texts)) == ["User: The loaf is warm.", "bread"]


async def test_a_long_message_is_found_by_each_part(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    long = f"{'We walk along the shore and say little. ' * 120} The kitten sleeps. {'Then it rains again. ' * 120}"
    await append(api, [message(1, long), message(2, "The vessel leaves."), *rest(3, 4)])
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant) > 6
    found = (await search(api, "a cat", limit=100))["hits"]
    assert found[0]["id"] == "m1"
    assert len({hit["id"] for hit in found}) == len(found)


@pytest.mark.usefixtures("story")
async def test_without_an_answer_of_the_model_words_are_compared(
    impatient_api: httpx.AsyncClient, model: ScriptedEmbeddings
) -> None:
    gate = model.hold()
    answer = await search(impatient_api, "The vessel")
    gate.release()
    assert answer["mode"] == "text"
    assert [hit["id"] for hit in answer["hits"]] == ["m1"]


@pytest.mark.usefixtures("story")
async def test_recall_finds_what_has_the_same_meaning(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    ok(await api.put(CHAT, json={"settings": {"memos": {"enabled": False}, "history": history}}), 200)
    await append(api, rest(8, 12))
    await settle(dispatcher, clock)
    recalled = (await context(api, recall="auto", query="Which ferry?"))["recalled"]
    assert recalled[0]["id"] == "m1"
    assert recalled[0]["parts"]["vector"] == pytest.approx(0.5)


@pytest.mark.usefixtures("story")
async def test_a_context_says_that_recall_compared_words_alone(
    api: httpx.AsyncClient, impatient_api: httpx.AsyncClient, model: ScriptedEmbeddings
) -> None:
    def list_reasons(answer: Json) -> list[str]:
        return [one["why"] for one in answer["omitted"] if one["name"] == "recalled"]

    assert list_reasons(await context(api, recall="auto", query="Which ferry?")) == []
    gate = model.hold()
    assert list_reasons(await context(api, recall="auto", query="Which ferry?")) == ["no_vectors"]
    assert list_reasons(await context(impatient_api, recall="auto", query="A purple zeppelin?")) == ["no_vectors"]
    assert list_reasons(await context(impatient_api, recall="auto", query="who are you?")) == ["no_vectors"]
    gate.release()
    assert list_reasons(await context(api, recall="auto", query="who are you?")) == []


@pytest.mark.usefixtures("story")
async def test_a_character_searches_by_meaning_too(api: httpx.AsyncClient, dispatcher: Dispatcher) -> None:
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    ok(await api.put(CHAT, json={"settings": {"memos": {"enabled": False}, "history": history}}), 200)
    await append(api, rest(8, 12))
    answer = ok(await api.post(f"{CHAT}/tools/memory_search", json={"query": "that ferry"}), 200)
    assert "The vessel leaves at noon." in answer["result"].splitlines()[1]


@pytest.mark.usefixtures("story")
async def test_a_character_asks_without_a_word_to_look_up(api: httpx.AsyncClient) -> None:
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    ok(await api.put(CHAT, json={"settings": {"memos": {"enabled": False}, "history": history}}), 200)
    await append(api, rest(8, 12))
    answer = ok(await api.post(f"{CHAT}/tools/memory_search", json={"query": "Who am I?"}), 200)
    assert "We talk on, day 3." in answer["result"]


async def test_chats_that_permit_it_are_searched_by_meaning_together(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    settings = {"memos": {"enabled": False}, "search": {"across_chats": True}}
    for chat, text in (("a", "The vessel leaves."), ("b", "My kitten purrs."), ("other", "A ferry, a ship, a vessel.")):
        user = "nell" if chat == "other" else "mira"
        ok(await api.put(f"/v1/chats/{chat}", json={"user_id": user, "settings": settings}), 201)
        await append(api, [message(1, text)], chat)
    await settle(dispatcher, clock)
    answer = ok(await api.post("/v1/users/mira/memories/search", json={"query": "Which ferry?"}), 200)
    assert answer["mode"] == "hybrid"
    assert [hit["chat_id"] for hit in answer["hits"]] == ["a", "b"]


@pytest.mark.usefixtures("story")
async def test_a_chat_that_returns_in_a_vault_gets_vectors(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    vault = await api.get(f"{CHAT}/export?format=vault")
    ok(await api.post("/v1/import?format=vault&chat_id=d", content=vault.content), 201)
    await settle(dispatcher, clock)
    found = ok(await api.post("/v1/chats/d/memories/search", json={"query": "Did the ferry go?"}), 200)
    assert (found["mode"], found["hits"][0]["id"]) == ("hybrid", "m1")


@pytest.mark.usefixtures("story")
async def test_a_refused_message_keeps_no_other_from_its_vector(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
) -> None:
    model.otherwise = refuse_bombs
    await append(api, [*rest(8, 10), message(11, "A bomb."), message(12, "The loaf is warm."), *rest(13, 15)])
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant) == 14
    assert await find_best(api, "bread") == "m12"
    assert await due_rows(database, tenant) == []
    await append(api, rest(16, 16))
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant) == 15


@pytest.mark.usefixtures("story")
async def test_a_message_that_is_refused_only_once_gets_its_vector(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
) -> None:
    """As one of several servers behind an address refuses it, and the next one does not."""
    alone: list[Request] = []

    def refuse_once(request: Request) -> Reply:
        alone.extend([request] if len(request["input"]) == 1 and "bomb" in request["input"][0] else [])
        return mean(request) if len(alone) == 2 else refuse_bombs(request)

    model.otherwise = refuse_once
    await append(api, [*rest(8, 10), message(11, "A bomb."), *rest(12, 15)])
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant) == 15
    assert len(alone) == 2


@pytest.mark.usefixtures("story")
async def test_a_model_that_refuses_every_text_is_an_error(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    model: ScriptedEmbeddings,
) -> None:
    model.otherwise = lambda _: refuses(400)
    await append(api, rest(8, 8))
    await settle(dispatcher, clock)
    (row,) = await due_rows(database, tenant)
    assert row["error"] == "the model server refuses the request (400)"
    model.otherwise = mean
    await settle(dispatcher, clock)
    assert await count_vectors(database, tenant) == 8
