"""A person asks for the model again where the rules have learnt, because the model declined or failed its form."""

import logging

import httpx
import pytest

from app.consolidation.regeneration import MOST_AT_ONCE
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.consolidation.learning import (
    begin,
    fact,
    facts,
    learn_all,
    learns,
    memories,
    memory,
    quoted,
    sentences,
    turn,
)
from tests.facts.asking import set_fact
from tests.scripted_model import Request, ScriptedModel
from tests.talk import Json, append, get, ok, put, said, soft_delete

DECLINES = "I'm sorry, but I can't help with that request."
PATH = "/v1/chats/c/consolidation/regenerate"
SAID = "My brother Tomas works as a ferryman at the harbour since 2011, I promise."
FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
GOOD = learns({"ferryman": lambda n: memory(FERRY, n)})


async def quote(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel) -> Json:
    """A chat whose first turn was read by the rules; returns the memory that they quoted."""
    await begin(api)
    await turn(api, 1, SAID)
    model.script(DECLINES, DECLINES)
    await learn_all(dispatcher, clock)
    (found,) = await memories(api)
    assert found["origin"] == "extractive"
    return found


async def test_what_rules_have_learnt_is_replaced_by_the_model(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    former = await quote(api, dispatcher, clock, model)
    await turn(api, 2, "My name is Mira.")
    model.otherwise = GOOD
    await learn_all(dispatcher, clock)
    asked = ok(await api.post(PATH), 202)
    assert (asked["ranges"], asked["first_seq"], asked["last_seq"]) == (1, 1, 2)
    assert ok(await api.get(f"/v1/work/{asked['work_id']}"), 200)["layer"] == "consolidation"
    assert await sentences(api) == {former["content"]}
    calls = len(model.requests)
    assert await learn_all(dispatcher, clock) == 1
    assert len(model.requests) == calls + 1
    (learnt,) = await memories(api)
    assert (learnt["content"], learnt["origin"], learnt["sources"]) == (FERRY, "model", ["message:m1"])
    assert ok(await api.post(PATH), 200) == {"ranges": 0, "first_seq": None, "last_seq": None}


async def test_a_model_that_declines_again_changes_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    former = await quote(api, dispatcher, clock, model)
    ok(await api.post(PATH), 202)
    model.script(DECLINES, DECLINES)
    await learn_all(dispatcher, clock)
    (kept,) = await memories(api)
    assert kept | {"score": former["score"]} == former  # it only fades
    assert len(model.requests) == 4


@pytest.mark.parametrize("change", [{"pinned": True}, {"content": "Tomas is Mira's brother."}, {"importance": 0.9}])
async def test_what_a_person_has_changed_stays(
    change: Json, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    former = await quote(api, dispatcher, clock, model)
    ok(await api.patch(f"/v1/chats/c/memories/{former['id']}", json=change), 200)
    ok(await api.post(PATH), 202)
    model.otherwise = learns({"ferryman": lambda n: memory("Mira fears the deep water below the pier.", n)})
    await learn_all(dispatcher, clock)
    kept = {one["id"]: one["content"] for one in await memories(api)}
    assert kept[former["id"]] == change.get("content", former["content"])
    assert len(kept) == 2


async def test_a_fact_of_the_rules_gives_way_to_the_model(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My name is Mirabel.")
    model.script(DECLINES, DECLINES)
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"name": "Mirabel"}
    await set_fact(api, "home", "Sandoy")
    ok(await api.post(PATH), 202)

    def repeat_nothing(request: Request) -> str:
        known = [one["fact"] for one in quoted(request, "known")]
        assert known == ["home"], "what gives way is not among what must not be repeated"
        return "NONE" if "name" in known else fact("name", "Mirabel", 1)

    model.otherwise = repeat_nothing
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"name": "Mirabel", "home": "Sandoy"}
    assert [(one["key"], one["origin"]) for one in (await get(api, "/facts"))["items"]] == [
        ("home", "person"),
        ("name", "model"),
    ]


async def test_what_the_model_does_not_learn_again_is_gone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await quote(api, dispatcher, clock, model)
    ok(await api.post(PATH), 202)
    model.otherwise = "NONE"
    await learn_all(dispatcher, clock)
    assert not quoted(model.requests[-1], "known")
    assert await memories(api) == []


@pytest.mark.parametrize(("wanted", "ranges"), [({"first_seq": 3}, 1), ({"last_seq": 2}, 1), ({"first_seq": 5}, 0)])
async def test_only_ranges_of_the_wanted_messages_are_read_again(
    wanted: Json,
    ranges: int,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    model.otherwise = DECLINES
    await begin(api)
    for number in (1, 2):
        await turn(api, number, SAID)
    await learn_all(dispatcher, clock)
    assert ok(await api.post(PATH, json=wanted), 202 if ranges else 200)["ranges"] == ranges
    assert (await get(api, ""))["work"]["due"] == ranges


async def test_a_range_without_messages_is_not_read_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await quote(api, dispatcher, clock, model)
    for message_id in ("m1", "m2"):
        await soft_delete(api, message_id)
    await learn_all(dispatcher, clock)
    calls = len(model.requests)
    assert ok(await api.post(PATH), 200)["ranges"] == 0
    assert await learn_all(dispatcher, clock) == 0
    assert len(model.requests) == calls


async def test_nothing_is_read_again_while_consolidation_is_off(api: httpx.AsyncClient) -> None:
    await begin(api, consolidation={"enabled": False})
    assert ok(await api.post(PATH), 409)["code"] == "consolidation_off"


async def test_a_range_of_messages_must_not_be_empty(api: httpx.AsyncClient) -> None:
    await begin(api)
    refused = ok(await api.post(PATH, json={"first_seq": 3, "last_seq": 2}), 422)
    assert refused["errors"][0]["loc"] == ["body", "last_seq"]


RANGES = 230

# The chat has read so many ranges of a turn each by rules.
READ_BY_RULE = f"""
    INSERT INTO consolidations (chat_key, line_id, first_seq, last_seq, learnt_at, generated_at, origin, filters,
        source_hash, current_hash, prompt_version)
    SELECT r.chat_key, r.line_id, 2 * n - 1, 2 * n, r.learnt_at + make_interval(secs => n), r.generated_at,
        'extractive', r.filters, '\\x00', '\\x00', 'extractive/1'
    FROM consolidations AS r CROSS JOIN generate_series(2, {RANGES}) AS n WHERE r.chat_key = $1 AND r.first_seq = 1"""


async def due_again(database: Database, tenant: str) -> list[int]:
    """Where the ranges begin that are due."""
    async with database.raw() as connection:
        rows = await connection.fetch(
            "SELECT at_seq FROM work WHERE owner_key = $1 AND layer = 'consolidation' ORDER BY at_seq",
            chat_key(tenant, "c"),
        )
    return [row["at_seq"] for row in rows]


async def test_many_ranges_are_scheduled_step_by_step(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await quote(api, dispatcher, clock, model)
    await put(api, status=200, settings={"consolidation": {"enabled": False}})
    await append(api, [said(n) for n in range(3, 2 * RANGES + 1)])
    await put(api, status=200, settings={"consolidation": {"enabled": True}})
    async with database.raw() as connection:
        await connection.execute(READ_BY_RULE, chat_key(tenant, "c"))
    asked = ok(await api.post(PATH), 202)
    assert (asked["ranges"], asked["first_seq"], asked["last_seq"]) == (RANGES, 1, 2 * RANGES)
    assert await due_again(database, tenant) == list(range(1, 2 * MOST_AT_ONCE, 2))
    part = ok(await api.post(PATH, json={"first_seq": 1, "last_seq": 4}), 202)
    assert (part["ranges"], part["work_id"]) == (2, asked["work_id"])
    model.otherwise, calls = "NONE", len(model.requests)
    with caplog.at_level(logging.INFO, "app.kit.work_queue"):
        await learn_all(dispatcher, clock)
    found = [one for one in caplog.records if one.getMessage() == "scheduled consolidation"]
    scheduled = [len(one.__dict__["fields"]["work"]) for one in found]
    assert scheduled == [MOST_AT_ONCE, RANGES - 2 * MOST_AT_ONCE]
    assert len(model.requests) == calls + RANGES
    assert ok(await api.post(PATH), 200)["ranges"] == 0
