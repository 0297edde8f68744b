"""The layer that lives in the tests works from end to end, registered in the registry alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.owners import Owner
from app.kit.settings import Settings
from app.kit.work_queue import RETRY_DELAYS_S
from app.layers.job import Made
from app.layers.layer import Layer
from app.local.running import Urls
from app.main import create_app
from app.pipeline import open_database
from app.registry import LAYERS, registered
from tests.background import until_waited_for
from tests.conftest import NOON, SETTLE_S, client_of, close_app, sqlalchemy_url
from tests.layers.word_counts import LAYER, TOTAL, TOTAL_WORDS, OwnTable
from tests.revision_watch import watch_revisions
from tests.scripted_model import Request, ScriptedModel
from tests.slowness import SLOWNESS
from tests.talk import append, context, edit, get, ok, put, said, talk

ON = {"words": {"enabled": True}, "memos": {"enabled": False}}


@pytest.fixture
async def layers(fresh_database_url: str) -> AsyncIterator[tuple[Layer, ...]]:
    """All layers, with the one of the tests, and its table in a database of the test's own."""
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    with registered(LAYER) as all_layers:
        for statement in _create_tables():
            await connection.execute(statement)
        await connection.close()
        await watch_revisions(fresh_database_url, all_layers)
        yield all_layers


def _create_tables() -> list[str]:
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415
    from sqlalchemy.schema import CreateTable  # noqa: PLC0415

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return [str(CreateTable(table).compile(dialect=dialect)) for table in OwnTable.metadata.sorted_tables]


@pytest.fixture
async def database(fresh_database_url: str, layers: tuple[Layer, ...], clock: SteppedClock) -> AsyncIterator[Database]:
    url = sqlalchemy_url(fresh_database_url)
    opened = open_database(url, layers, clock=clock, settle_s=SETTLE_S, notify=lambda: None, pool_size=8)
    yield opened
    await opened.close()


@pytest.fixture
async def app(
    fresh_database_url: str, servers: Urls, layers: tuple[Layer, ...], clock: SteppedClock
) -> AsyncIterator[FastAPI]:
    settings = Settings(database_url=fresh_database_url, redis_url=servers.redis_url, _env_file=None)
    made = create_app(settings, clock=clock, layers=layers)
    yield made
    await close_app(made)


@pytest.fixture
async def key(database: Database, tenant: str) -> str:
    async with database.unit_of_work() as db_session:
        return (await create_key(db_session, tenant, ["read", "write", "admin"], NOON)).text


@pytest.fixture
async def dispatcher(
    database: Database, layers: tuple[Layer, ...], clock: SteppedClock, model: ScriptedModel
) -> AsyncIterator[Dispatcher]:
    client = ModelClient(model.base_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=8, max_attempts=1)
    yield Dispatcher(JobContext(database, clock, client), layers, slots=8, poll_s=30)
    await client.aclose()


def counting(request: Request) -> str:
    """What a model answers that counts the words of each speaker."""
    words: dict[str, int] = {}
    for line in request["messages"][1]["content"].splitlines():
        name, _, text = line.partition(": ")
        words[name] = words.get(name, 0) + len(text.split())
    return "\n".join(f"{name}: {count}" for name, count in sorted(words.items()))


async def drain(dispatcher: Dispatcher, clock: SteppedClock) -> None:
    clock.step(SETTLE_S)
    await dispatcher.drain()


async def words(api: httpx.AsyncClient) -> list[str]:
    return [item["text"] for item in (await get(api, "/words"))["items"]]


def segment_of(answer: dict[str, Any]) -> dict[str, Any] | None:
    return next((row for row in answer["segments"] if row["name"] == "words"), None)


async def count_rows(database: Database) -> list[Sequence[Any]]:
    async with database.raw() as connection:
        rows = await connection.fetch("SELECT chat_key, line_id, number FROM word_counts ORDER BY 1, 2, 3")
    return [tuple(row) for row in rows]


async def test_words_are_counted_and_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 24))
    work = (await get_work(api))[0]
    assert (work["layer"], work["status"]) == ("words", "due")
    await drain(dispatcher, clock)
    assert await words(api) == ["Character: 40\nUser: 40"] * 2
    found = await context(api)
    segment = segment_of(found)
    assert segment is not None
    assert segment["text"] == "## Words\n\nCharacter: 40\nUser: 40\n\nCharacter: 40\nUser: 40"
    assert segment["sources"] == ["words:0", "words:1"]
    assert '"Words" is how much each of you has said.' in found["segments"][0]["text"]
    usage = ok(await api.get("/v1/usage"), 200)["items"]
    assert [(item["layer"], item["calls"]) for item in usage] == [("words", 2)]
    text = (await api.get("/metrics")).text
    assert 'memobook_work{layer="words",status="due"} 0.0' in text


async def test_without_a_model_words_are_counted_by_rule(
    api: httpx.AsyncClient, database: Database, layers: tuple[Layer, ...], clock: SteppedClock
) -> None:
    await put(api, settings=ON)
    await append(api, talk(1, 10))
    await drain(Dispatcher(JobContext(database, clock), layers, slots=2, poll_s=30), clock)
    assert await words(api) == ["Character: 40\nUser: 40"]


async def test_stale_counts_leave_the_prompt_until_they_are_remade(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 20))
    await drain(dispatcher, clock)
    await edit(api, "m1", content="Hello.")
    segment = segment_of(await context(api))
    assert segment is not None
    assert segment["sources"] == ["words:1"]
    await drain(dispatcher, clock)
    assert await words(api) == ["Character: 40\nUser: 33", "Character: 40\nUser: 40"]
    await edit(api, "m1", content=said(1)["content"])
    await edit(api, "m1", content="Hello.")
    assert await get_work(api) == [], "an edit that was undone makes nothing due"


async def test_runs_go_on_where_the_settings_change(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, database: Database
) -> None:
    model.otherwise = counting
    await put(api, settings=ON | {"words": {"enabled": True, "every_messages": 4}})
    await append(api, talk(1, 9))
    await put(api, status=200, settings={"words": {"every_messages": 10}})
    await append(api, talk(10, 20))
    await put(api, status=200, settings={"words": {"every_messages": 2}})
    await append(api, talk(21, 22))
    async with database.raw() as connection:
        rows = await connection.fetch("SELECT number, first_seq, last_seq FROM word_counts ORDER BY number")
    ends = [(0, 1, 4), (1, 5, 8), (2, 9, 18), (3, 19, 20), (4, 21, 22)]
    assert [tuple(row) for row in rows] == ends


async def test_a_layer_that_is_off_shows_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 10))
    await drain(dispatcher, clock)
    assert segment_of(await context(api)) is not None
    await put(api, status=200, settings={"words": {"enabled": False}})
    assert segment_of(await context(api)) is None


async def test_an_edit_while_it_is_off_is_counted_when_it_is_on_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 20))
    await drain(dispatcher, clock)
    await put(api, status=200, settings={"words": {"enabled": False}})
    await edit(api, "m1", content="Hello.")
    assert await get_work(api) == []
    await put(api, status=200, settings={"words": {"enabled": True}})
    assert [(item["layer"], item["status"]) for item in await get_work(api)] == [("words", "due")]
    await drain(dispatcher, clock)
    assert await words(api) == ["Character: 40\nUser: 33", "Character: 40\nUser: 40"]


async def test_a_small_budget_trims_word_counts_group_by_group(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON | {"history": {"keep_messages": 4, "grow_messages": 0, "edges": "every_8"}})
    await append(api, talk(1, 40))
    await drain(dispatcher, clock)
    whole = await context(api)
    omitted: list[list[str]] = []
    for max_tokens in range(whole["tokens"], 60, -10):
        answer = await api.get("/v1/chats/c/context", params={"max_tokens": max_tokens})
        if answer.status_code != 200:
            break
        assert answer.json()["tokens"] <= max_tokens
        names = [one["name"] for one in answer.json()["omitted"]]
        omitted += [names] if names not in omitted else []
    assert omitted[-1][:4] == ["words 0", "words 1", "words 2", "words 3"]


async def test_the_settings_place_the_segment(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 10))
    await drain(dispatcher, clock)
    placement = {"words": {"position": "in_chat", "depth": 3, "role": "user", "scan": True}}
    await put(api, status=200, settings=placement)
    segment = segment_of(await context(api))
    assert segment is not None
    assert (segment["depth"], segment["role"], segment["scan"]) == (3, "user", True)
    await put(api, status=200, settings={"words": {"position": "none"}})
    assert segment_of(await context(api)) is None


async def test_its_edges_can_be_chosen_and_a_cut_waits_for_them(
    app: FastAPI, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    history = app.openapi()["components"]["schemas"]["HistorySettings"]["properties"]["edges"]
    assert history["enum"] == ["batches", "folds", "scenes", "words", "every_8", "every_message"]
    assert history["default"] == "batches"
    await put(api, settings=ON | {"history": {"keep_messages": 4, "grow_messages": 2, "edges": "words"}})
    await append(api, talk(1, 16))
    assert (await context(api))["history"]["anchor_seq"] == 1, "no run of messages is counted yet"
    await drain(dispatcher, clock)
    found = await context(api)
    assert (found["history"]["anchor_seq"], found["history"]["last_cut"]["reason"]) == (11, "full")


async def test_checkpoints_and_forks_have_their_own_word_counts(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 20))
    await drain(dispatcher, clock)
    before = await context(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    await edit(api, "m2", content="Night falls.")
    await drain(dispatcher, clock)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    after = await context(api)
    assert after["segments"] == before["segments"]
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 15}), 201)
    rows = await count_rows(database)
    assert [number for key, _, number in rows if key == chat_key(tenant, "d")] == [0]
    assert len([number for key, _, number in rows if key == chat_key(tenant, "c")]) == 6, "three lines of two rows"
    ok(await api.delete("/v1/chats/c"), 204)
    assert {key for key, _, _ in await count_rows(database)} == {chat_key(tenant, "d")}


async def test_the_inclusion_report_names_them(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON | {"history": {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}})
    await append(api, talk(1, 14))
    items = (await get(api, "/inclusion"))["items"]
    assert [item["status"] for item in items] == ["pending"] * 10 + ["none"] * 2 + ["verbatim"] * 2
    await drain(dispatcher, clock)
    items = (await get(api, "/inclusion"))["items"]
    assert {(item["status"], item["by"]) for item in items[:10]} == {("words", "words:0")}


async def test_routes_settings_and_prompts_follow_from_the_registry(app: FastAPI, api: httpx.AsyncClient) -> None:
    schema = app.openapi()
    assert "/v1/chats/{chat_id}/words" in schema["paths"]
    assert {"name": "words"} in schema["tags"]
    assert "WordSettingsPatch" in schema["components"]["schemas"]
    ok(await api.put("/v1/chats/c", json={"settings": {"words": {"every_messages": 0}}}), 422)
    settings = (await put(api, settings={"words": {"every_messages": 5}}))["settings"]
    assert settings["words"]["every_messages"] == 5
    refused = await api.post("/v1/chats/c/context", json={"segments": [{"name": "words", "text": "x"}]})
    assert refused.status_code == 422, "the name is the layer's own"


async def get_work(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ok(await api.get("/v1/work"), 200)["items"]
    return found


async def test_the_state_of_a_chat_has_every_layer(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = counting
    await put(api, settings=ON)
    await append(api, talk(1, 10))
    await drain(dispatcher, clock)
    state = (await get(api, "/state"))["layers"]
    assert set(state) == {*(layer.name for layer in LAYERS if layer.settings), "words"}
    assert state["words"]["word_totals"] == []
    assert [row["text"] for row in state["words"]["word_counts"]] == ["Character: 40\nUser: 40"]
    assert state["memos"] == {"memos": []}


async def test_a_user_and_a_tenant_own_work_too(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    model.otherwise = counting
    for chat, user in (("c", "mira"), ("d", "mira"), ("e", "oskar")):
        await put(api, chat, user_id=user, settings=ON)
        await append(api, talk(1, 10), chat)
    await drain(dispatcher, clock)
    owners = [Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant)]
    for owner in owners:
        await schedule_total(database, clock, owner)
    shown = [(item["chat_id"], item["user_id"], item["layer"]) for item in await get_work(api)]
    assert shown == [(None, "mira", "words"), (None, None, "words")]
    await dispatcher.drain()
    assert await get_work(api) == []
    assert await totals(database) == {owners[0].key: 2, owners[1].key: 3}
    await schedule_total(database, clock, owners[0])
    ok(await api.delete("/v1/users/mira"), 204)
    assert await totals(database) == {owners[1].key: 3}
    left = [(item["user_id"], item["layer"]) for item in await get_work(api)]
    assert left == [(None, "words")], "the work of the user is gone with what it made, the tenant's total is due"
    await dispatcher.drain()
    assert await totals(database) == {owners[1].key: 1}


async def test_an_erased_chat_leaves_the_totals_that_include_it(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    model.otherwise = counting
    for chat in ("c", "d"):
        await put(api, chat, user_id="mira", settings=ON)
        await append(api, talk(1, 10), chat)
    await drain(dispatcher, clock)
    ok(await api.delete("/v1/chats/d"), 204)
    await dispatcher.drain()
    assert await totals(database) == {Owner.of_user(tenant, "mira").key: 1, Owner.of_tenant(tenant).key: 1}


async def test_erasing_a_user_waits_for_a_job_that_saves(
    api: httpx.AsyncClient, clock: SteppedClock, database: Database, tenant: str
) -> None:
    owner = Owner.of_user(tenant, "mira")
    await schedule_total(database, clock, owner)
    async with database.unit_of_work() as db_session:
        (claimed,) = await work_queue.claim(db_session, owner, limit=1, now=clock())
    async with database.unit_of_work() as saving:
        assert await work_queue.holds_lease(saving, claimed)
        erasing = asyncio.create_task(api.delete("/v1/users/mira"))
        await until_waited_for(saving.raw)
        await TOTAL_WORDS.save(saving, Made(None, claimed, 1, 1, clock()))
        await work_queue.complete(saving, claimed)
    ok(await erasing, 204)
    assert await totals(database) == {}, "what the job saved is erased too"


async def test_the_words_of_another_user_are_not_found(app: FastAPI, api: httpx.AsyncClient, tenant: str) -> None:
    await put(api, user_id="mira", settings=ON)
    token = ok(await api.post("/v1/tokens", json={"user_id": "oskar", "scopes": ["read"], "ttl_s": 60}), 201)["token"]
    async with client_of(app, token) as oskar:
        for path in ("/v1/chats/c/words", "/v1/chats/unknown/words"):
            ok(await oskar.get(path), 404)


async def test_a_job_of_a_user_that_fails_is_tried_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await put(api, user_id="mira", settings=ON)
    owner = Owner.of_user(tenant, "mira")
    await schedule_total(database, clock, owner)
    async with database.raw() as connection:
        await connection.execute("ALTER TABLE word_totals RENAME TO away")
    await dispatcher.drain()
    (work,) = await get_work(api)
    assert (work["attempts"], work["error"]) == (1, "unexpected: UndefinedTableError")
    async with database.raw() as connection:
        await connection.execute("ALTER TABLE away RENAME TO word_totals")
    clock.step(RETRY_DELAYS_S[0])
    await dispatcher.drain()
    assert await totals(database) == {owner.key: 0}


async def schedule_total(database: Database, clock: SteppedClock, owner: Owner) -> None:
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, "words", [TOTAL], now=clock(), settle_s=0)


async def totals(database: Database) -> dict[UUID, int]:
    async with database.raw() as connection:
        return {row["owner_key"]: row["runs"] for row in await connection.fetch("SELECT * FROM word_totals")}
