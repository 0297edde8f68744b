"""Messages that the caller rated as important are quoted, unless something else was learnt from them."""

import httpx
import pytest

from app.consolidation.extractive import promote
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from app.knowledge.service import MAX_KEYS
from app.summarising.extractive import Frequencies
from app.summarising.transcript import Utterance
from tests.consolidation.learning import FILL, begin, fact, facts, learn_all, learns, memories, memory, sentences
from tests.facts.asking import note, set_fact
from tests.memories.asking import delete
from tests.scripted_model import ScriptedModel
from tests.talk import append, edit, put, said

GREEN = "My favourite colour is green."
QUOTED = "Mira: “My favourite colour is green.”"
FERRY = "Mira's brother Tomas works as a ferryman at the harbour."


async def begin_without_model(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", user_name="Mira", characters=[{"name": "Kai"}], settings={"preset": "agent"})


async def important_turn(api: httpx.AsyncClient, number: int, user: str) -> None:
    """Append the turn `number`, from 1; its message of the user is important."""
    await append(api, [said(2 * number - 1, content=user, importance=0.9), said(2 * number, content="Hm.")])


async def test_a_message_is_quoted_if_a_persons_fact_stays(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_without_model(api)
    await set_fact(api, "favourite_colour", "red")
    clock.step(60)
    await important_turn(api, 1, GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert await facts(api) == {"favourite_colour": "red"}
    (quotation,) = await memories(api)
    assert (quotation["content"], quotation["importance"], quotation["origin"]) == (QUOTED, 0.9, "extractive")


async def test_a_message_is_quoted_if_a_tools_name_stays(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_without_model(api)
    await append(api, [said(1, content="Hello."), said(2, content="Hm.")])
    await note(api, "name", "Mira Lund")
    clock.step(60)
    await important_turn(api, 2, "Call me Rosa.")
    await learn_all(quoting_dispatcher, clock)
    assert (await facts(api), await sentences(api)) == ({"name": "Mira Lund"}, {"Mira: “Call me Rosa.”"})


@pytest.mark.parametrize("known", [True, False])
async def test_a_message_whose_fact_is_known_is_not_quoted(
    *, known: bool, api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_without_model(api)
    if known:
        await set_fact(api, "favourite_colour", "green")
        clock.step(60)
    await important_turn(api, 1, GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert (await facts(api), await sentences(api)) == ({"favourite_colour": "green"}, set())


@pytest.mark.parametrize("enabled", [True, False])
async def test_without_facts_an_important_message_is_quoted(
    *, enabled: bool, api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns({"green": lambda number: fact("favourite_colour", "green", number)})
    await begin(api, facts={"enabled": enabled})
    await important_turn(api, 1, GREEN)
    await learn_all(dispatcher, clock)
    assert await sentences(api) == (set() if enabled else {QUOTED})


async def test_with_too_many_facts_a_message_is_quoted(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    model.otherwise = learns({"green": lambda number: fact("favourite_colour", "green", number)})
    await begin(api)
    await set_fact(api, "name", "Mira")
    async with database.raw() as connection:
        await connection.execute(FILL, MAX_KEYS - 1, chat_key(tenant, "c"))
    await important_turn(api, 1, GREEN)
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {QUOTED}


async def test_what_a_person_forgot_is_not_quoted(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns({"ferryman": lambda number: memory(FERRY, number)})
    await begin(api)
    await important_turn(api, 1, "My brother Tomas is a ferryman at the harbour.")
    await learn_all(dispatcher, clock)
    (learnt,) = await memories(api)
    assert learnt["content"] == FERRY
    await delete(api, learnt["id"])
    await edit(api, "m2", content="I see.")
    await learn_all(dispatcher, clock)
    assert (len(model.requests), await sentences(api)) == (2, set())


def test_another_sentence_is_quoted_rather_than_a_fact() -> None:
    promise = "I promise that I will bring the lens to Sandoy on 9 August."
    rated = [Utterance(1, "user", "Mia", f"{GREEN}\n\n{promise}"), Utterance(2, "user", "Mia", GREEN)]
    promoted = promote(rated, Frequencies.of(rated), given={1: 0.9, 2: 0.9}, count_tokens=count_tokens)
    assert [one.content for one in promoted] == [f"Mia: “{promise}”", f"Mia: “{GREEN}”"]
