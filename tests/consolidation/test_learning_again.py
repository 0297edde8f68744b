"""A person asks for the model again where the rules have learnt, because the model declined or failed its form."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import MAX_ATTEMPTS
from tests.background import settle
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
from tests.scripted_model import Request, ScriptedModel, refuses
from tests.talk import Json, edit, get, ok, soft_delete

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


async def test_an_edit_after_a_failure_keeps_the_request(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    former = await quote(api, dispatcher, clock, model)
    ok(await api.post(PATH), 202)
    model.otherwise = refuses(400)
    for _ in range(MAX_ATTEMPTS):
        await settle(dispatcher, clock, 4_000)
    assert (await get(api, ""))["work"]["failed"] == 1
    await edit(api, "m2", content="Since 2011!")
    assert await sentences(api) == {former["content"]}
    model.otherwise = GOOD
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}
