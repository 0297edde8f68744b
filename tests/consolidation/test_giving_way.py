"""What rules have learnt gives way to what the model learns from the same messages, but not what a person decided."""

import asyncio
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.ids import tenant_key, user_key
from tests.background import holding, settle, until_waited_for
from tests.consolidation.learning import begin, fact, facts, learn_all, learns, memories, memory, sentences, turn
from tests.facts.asking import delete_fact, history, set_fact
from tests.scripted_model import ScriptedModel
from tests.talk import CHAT, ok

DECLINES = "I'm sorry, but I can't help with that request."
PATH = f"{CHAT}/consolidation/regenerate"
SAID = "My brother Tomas works as a ferryman at the harbour since {}, I promise."
QUOTED = "Mira: “My brother Tomas works as a ferryman at the harbour since {}, I promise.”"
NAMED = "My name is Mirabel."
FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
LEARNT = learns({"ferryman": lambda n: memory(FERRY, n), "My name": lambda n: fact("name", "Mirabel Voss", n)})


async def learn_by_rule(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, *said: str
) -> None:
    """Let the rules read turns in which the user says this."""
    model.otherwise = DECLINES
    for number, text in enumerate(said, start=1):
        await turn(api, number, text)
        await learn_all(dispatcher, clock)
    model.otherwise = LEARNT


async def learn_again(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """Let the model read all of them."""
    ok(await api.post(PATH), 202)
    await learn_all(dispatcher, clock)


@pytest.mark.parametrize("layer", ["facts", "memories"])
async def test_a_layer_that_is_off_keeps_what_it_has(
    layer: str, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await learn_by_rule(api, dispatcher, clock, model, f"{NAMED} {SAID.format(2011)}")
    quoted = await sentences(api)
    assert await facts(api) == {"name": "Mirabel"}
    off: dict[str, Any] = {layer: {"enabled": False}}
    await begin(api, status=200, **off)
    await learn_again(api, dispatcher, clock)
    await begin(api, status=200, **off | {layer: {"enabled": True}})
    assert await facts(api) == {"name": "Mirabel" if layer == "facts" else "Mirabel Voss"}
    assert await sentences(api) == (quoted if layer == "memories" else {FERRY})


async def test_a_quotation_that_replaced_another_gives_way(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await learn_by_rule(api, dispatcher, clock, model, SAID.format(2011), SAID.format(2012))
    (one,) = await memories(api)
    assert one["content"] == QUOTED.format(2012)
    await learn_again(api, dispatcher, clock)
    assert await sentences(api) == {FERRY}


@pytest.mark.parametrize("learn_scope", ["chat", "user"])
async def test_what_was_forgotten_is_not_learnt_again(
    learn_scope: str, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, memories={"learn_scope": learn_scope})
    await learn_by_rule(api, dispatcher, clock, model, SAID.format(2011))
    (quoted,) = await memories(api)
    ok(await api.delete(f"{CHAT}/memories/{quoted['id']}"), 204)
    model.otherwise = learns({"ferryman": lambda n: memory(QUOTED.format(2012), n)})
    await learn_again(api, dispatcher, clock)
    assert await sentences(api) == set()


async def test_the_history_keeps_what_a_person_replaced(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await learn_by_rule(api, dispatcher, clock, model, f"{NAMED} {SAID.format(2011)}")
    (quoted,) = await memories(api)
    ok(await api.patch(f"{CHAT}/memories/{quoted['id']}", json={"content": "Tomas ferries."}), 200)
    await set_fact(api, "name", "Mira", status=200)
    model.otherwise = "NONE"
    await learn_again(api, dispatcher, clock)
    assert [one["value"] for one in await history(api, "name")] == ["Mira", "Mirabel"]
    texts = ok(await api.get(f"{CHAT}/memories/{quoted['id']}/history"), 200)["items"]
    assert [one["content"] for one in texts] == ["Tomas ferries.", quoted["content"]]


@pytest.mark.parametrize("learn_scope", ["chat", "user"])
async def test_the_model_replaces_what_a_person_set(
    learn_scope: str, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, memories={"learn_scope": learn_scope})
    await set_fact(api, "name", "Mira", status=201)
    clock.step(60)
    await learn_by_rule(api, dispatcher, clock, model, NAMED)
    assert await facts(api) == {"name": "Mira"}
    await learn_again(api, dispatcher, clock)
    assert [one["value"] for one in await history(api, "name")] == ["Mirabel Voss", "Mira"]


@pytest.mark.parametrize("learn_scope", ["chat", "user"])
async def test_what_rules_learn_after_a_person_gives_way(
    learn_scope: str, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, memories={"learn_scope": learn_scope})
    await set_fact(api, "name", "Mira", status=201)
    await delete_fact(api, "name")
    clock.step(60)
    await learn_by_rule(api, dispatcher, clock, model, NAMED)
    assert await facts(api) == {"name": "Mirabel"}
    await learn_again(api, dispatcher, clock)
    assert [one["value"] for one in await history(api, "name")] == ["Mirabel Voss", None, "Mira"]


@pytest.mark.parametrize("learn_scope", ["chat", "user"])
async def test_call_me_keeps_what_a_model_learnt(
    learn_scope: str, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, memories={"learn_scope": learn_scope})
    model.otherwise = LEARNT
    await turn(api, 1, NAMED)
    await learn_all(dispatcher, clock)
    model.otherwise = DECLINES
    await turn(api, 2, "Call me Rosa.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"name": "Mirabel Voss"}
    await turn(api, 3, "My name is Rosa.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"name": "Rosa"}
    await turn(api, 4, "Call me Kit.")
    await learn_all(dispatcher, clock)
    assert [one["value"] for one in await history(api, "name")] == ["Kit", "Rosa", "Mirabel Voss"]


async def test_a_chat_keeps_a_model_s_value_of_the_user(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, memories={"learn_scope": "user"})
    model.otherwise = LEARNT
    await turn(api, 1, NAMED)
    await learn_all(dispatcher, clock)
    await begin(api, status=200, memories={"learn_scope": "chat"})
    model.otherwise = DECLINES
    await turn(api, 2, "Call me Rosa.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"name": "Mirabel Voss"}


@pytest.mark.parametrize(("former", "present"), [("user", "user"), ("user", "chat"), ("global", "user")])
async def test_the_scope_is_locked_before_anything_is_deleted(
    former: str,
    present: str,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database_url: str,
    tenant: str,
) -> None:
    await begin(api, memories={"learn_scope": former})
    await learn_by_rule(api, dispatcher, clock, model, SAID.format(2011))
    await begin(api, status=200, memories={"learn_scope": present})
    ok(await api.post(PATH), 202)
    owner = f"owner_key = '{user_key(tenant, 'mira') if former == 'user' else tenant_key(tenant)}'"
    async with holding(database_url, f"SELECT 1 FROM scopes WHERE {owner} FOR UPDATE") as other_chat:
        learning = asyncio.create_task(settle(dispatcher, clock))
        await until_waited_for(other_chat)
        taught = await other_chat.fetch(f"SELECT 1 FROM statements WHERE {owner} FOR KEY SHARE NOWAIT")
        assert len(taught) == 1, "so the other chat need not wait in turn"
    await learning
    assert await sentences(api) == {FERRY}
