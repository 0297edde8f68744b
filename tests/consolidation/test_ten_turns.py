"""A name, a tool of the trade and a task, said in ten turns of the preset `decay`."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import fact, facts, learn_all, learns, memory, turn
from tests.scripted_model import ScriptedModel
from tests.talk import context, put

API = "Jun is building the login service of a library with Litestar."
SAID = [
    "My name is Jun, and I write Python for a living.",
    "I chose Litestar as the framework for this service.",
    "The task is a login service for a library.",
    "Should a session end after a day?",
    "Then I keep refresh tokens for a week.",
    "What do you cook on Sundays?",
    "I have never made dumplings.",
    "It rains here all week.",
    "My train was late again.",
]
QUESTION = "Do you remember the service that we built for the library?"
ANSWERS = {
    "My name is Jun": lambda n: fact("name", "Jun", n),
    "Litestar as": lambda n: fact("framework", "Litestar", n),
    "The task is": lambda n: "\n".join([fact("task", "a login service for a library", n), memory(API, n)]),
}


async def play(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> str:
    """Play the turns, ask the question, and return what the prompt of the tenth turn says besides the history."""
    settings = {"preset": "decay", "history": {"keep_messages": 4, "grow_messages": 2}}
    await put(api, user_id="jun", user_name="Jun", characters=[{"name": "Kai"}], settings=settings)
    for number, said in enumerate(SAID, start=1):
        await turn(api, number, said)
        await learn_all(dispatcher, clock)
    answer = await context(api, draft=QUESTION)
    history = {"history", "newest"}
    return "\n".join(segment["text"] for segment in answer["segments"] if segment["name"] not in history)


async def test_a_model_makes_facts_of_ten_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    prompt = await play(api, dispatcher, clock)
    assert await facts(api) == {"name": "Jun", "framework": "Litestar", "task": "a login service for a library"}
    for known in ("name: Jun", "framework: Litestar", "task: a login service for a library", API):
        assert known in prompt


async def test_without_a_model_the_turns_are_quoted_in_the_prompt(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    prompt = await play(api, quoting_dispatcher, clock)
    assert "name: Jun" in prompt
    assert "login service for a library" in prompt
