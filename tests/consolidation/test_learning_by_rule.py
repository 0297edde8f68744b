"""What a chat without a model knows at the end of a conversation, over HTTP."""

from collections.abc import Sequence

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import facts, learn_all, turn
from tests.facts.asking import delete_fact, held, history, note, set_fact
from tests.talk import CHAT, edit, put


async def begin(api: httpx.AsyncClient, preset: str, characters: Sequence[str] = ("Kai",), **settings: object) -> None:
    named = [{"name": name} for name in characters]
    await put(api, user_id="ann", user_name="Ann", characters=named, settings={"preset": preset, **settings})


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


COLOUR = "Favourite Colour"
GREEN = "My favourite colour is green."
OF_ANN = "/v1/users/ann"
SCOPES = {"chat": CHAT, "character": f"{OF_ANN}/characters/Kai", "user": OF_ANN, "global": "/v1"}


@pytest.mark.parametrize("learn_scope", SCOPES)
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_message_keeps_what_a_person_set(
    scope: str, learn_scope: str, api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent", memories={"learn_scope": learn_scope})
    await set_fact(api, COLOUR, "red", under=SCOPES[scope])
    clock.step(60)
    await turn(api, 1, GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {COLOUR: "red"}
    assert [one["value"] for one in await history(api, COLOUR)] == ["red"]


async def test_a_message_keeps_what_a_person_set_later(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await turn(api, 1, GREEN)
    await learn_all(quoting_dispatcher, clock)
    clock.step(60)
    await set_fact(api, "favourite_colour", "red", status=200)
    await edit(api, "m1", content="My favourite colour is blue.")
    await learn_all(quoting_dispatcher, clock)
    assert [one["value"] for one in await history(api, "favourite_colour")] == ["red", "blue"]


async def test_a_person_has_the_word_between_two_messages(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await set_fact(api, COLOUR, "red")
    clock.step(60)
    await turn(api, 1, "Hello, how are you?")
    await learn_all(quoting_dispatcher, clock)
    clock.step(60)
    await turn(api, 2, "What is my favourite colour?")
    await note(api, COLOUR, "pink")
    await edit(api, "m1", content=GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {COLOUR: "pink"}
    await edit(api, "m4", content="I do not know.")
    assert await held(api) == {COLOUR: "red"}


async def test_a_message_of_a_group_keeps_all_of_a_person(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent", characters=("Kai", "Ines"))
    await set_fact(api, "favourite_colour", "red", under=f"{OF_ANN}/characters/Ines")
    clock.step(60)
    await turn(api, 1, f"{GREEN} My favourite food is soup.")
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {"favourite_food": "soup"}
    assert await held(api, character="Ines") == {"favourite_food": "soup", "favourite_colour": "red"}


async def test_a_message_changes_what_a_person_deleted(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await set_fact(api, COLOUR, "red")
    await delete_fact(api, COLOUR)
    clock.step(60)
    await turn(api, 1, GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {"favourite_colour": "green"}


async def test_a_message_replaces_what_a_tool_set(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await set_fact(api, COLOUR, "red")
    await turn(api, 1, "Hello, how are you?")
    clock.step(60)
    await note(api, COLOUR, "pink")
    clock.step(60)
    await turn(api, 2, GREEN)
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {COLOUR: "green"}


async def test_call_me_keeps_the_name_that_a_tool_set(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, "agent")
    await turn(api, 1, "Hello, how are you?")
    await note(api, "name", "Anna Weber")
    clock.step(60)
    await turn(api, 2, "Call me Rosa.")
    await learn_all(quoting_dispatcher, clock)
    assert await held(api) == {"name": "Anna Weber"}
