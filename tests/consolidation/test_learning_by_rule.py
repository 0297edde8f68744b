"""What a chat without a model knows at the end of a conversation, over HTTP."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import facts, learn_all, turn
from tests.facts.asking import note, set_fact
from tests.talk import put


async def begin(api: httpx.AsyncClient, preset: str) -> None:
    await put(api, user_id="ann", user_name="Ann", characters=[{"name": "Kai"}], settings={"preset": preset})


async def test_each_allergy_stays_a_fact(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    for number, said in enumerate(("I'm allergic to peanuts, sadly.", "I'm allergic to bees though."), start=1):
        await turn(api, number, said)
        await learn_all(quoting_dispatcher, clock)
    assert await facts(api) == {"allergic_to_peanuts": "peanuts", "allergic_to_bees": "bees"}


async def test_a_tool_and_a_message_name_a_fact_alike(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await turn(api, 1, "Hello, how are you?")
    await note(api, "user_birthday", "March 3")
    clock.step(60)
    await turn(api, 2, "My birthday is April 4.")
    await learn_all(quoting_dispatcher, clock)
    assert await facts(api) == {"birthday": "April 4"}


async def test_a_message_changes_what_a_person_set(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await set_fact(api, "Favourite Colour", "red")
    clock.step(60)
    await turn(api, 1, "My favourite colour is green.")
    await learn_all(quoting_dispatcher, clock)
    assert await facts(api) == {"Favourite Colour": "green"}
