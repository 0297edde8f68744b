"""What a chat without a model knows at the end of a conversation, over HTTP."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import facts, learn_all, turn
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
