"""What a chat learns if its user or its characters change while the model is asked."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import while_the_model_is_asked
from tests.consolidation.learning import (
    CHARACTERS,
    begin,
    fact,
    learn_all,
    learns,
    memories,
    memory,
    quoted,
    sentences,
    turn,
)
from tests.facts.asking import set_fact
from tests.scripted_model import ScriptedModel
from tests.talk import Json, ok, put

FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
ANSWERS = {
    "ferryman": lambda n: memory(FERRY, n),
    "call me Captain": lambda n: fact("nickname", "Captain", n),
}


async def learn_meanwhile(api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, **chat: Any) -> None:
    """Change the chat while the model is asked."""
    async with while_the_model_is_asked(dispatcher, model):
        await put(api, status=200, **chat)


async def known_of(api: httpx.AsyncClient, user: str) -> list[str]:
    """What is known of a user: the memories, then the values of the facts."""
    found = [ok(await api.get(f"/v1/users/{user}/{kind}"), 200)["items"] for kind in ("memories", "facts")]
    return [*(one["content"] for one in found[0]), *(one["value"] for one in found[1])]


@pytest.mark.parametrize("scope", ["user", "global"])
async def test_a_moved_chat_teaches_only_its_new_user(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, scope: str
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api, memories={"learn_scope": scope})
    await turn(api, 1, "My brother Tomas is a ferryman. You may call me Captain.")
    clock.step(2)
    moved: Json = {"user_id": "ren", "settings": {"memories": {"learn_scope": "user"}}}
    await learn_meanwhile(api, dispatcher, model, **moved)
    assert await known_of(api, "mira") == []
    await learn_all(dispatcher, clock)
    assert await known_of(api, "ren") == [FERRY, "Captain"]
    assert await known_of(api, "mira") == []
    await put(api, "other", user_id="mira", characters=CHARACTERS)
    assert ok(await api.get("/v1/chats/other/memories"), 200)["items"] == []


async def test_a_chat_that_loses_its_user_learns_for_itself(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api, memories={"learn_scope": "user"})
    await turn(api, 1, "My brother Tomas is a ferryman.")
    clock.step(2)
    await learn_meanwhile(api, dispatcher, model, user_id=None)
    await learn_all(dispatcher, clock)
    assert await known_of(api, "mira") == []
    assert [one["scope"] for one in await memories(api)] == ["chat"]


async def test_an_answer_made_from_anothers_memories_is_dropped(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    """The model was shown what is known of the former user, so its answer can contain that."""
    await begin(api)
    await set_fact(api, "home", "a lighthouse", under="/v1/users/mira")
    model.script(memory("Mira lives in a lighthouse.", 1))
    model.otherwise = "NONE"
    await turn(api, 1, "It rains.")
    clock.step(2)
    await learn_meanwhile(api, dispatcher, model, user_id="ren")
    await learn_all(dispatcher, clock)
    assert [quoted(one, "known") for one in model.requests] == [[{"fact": "home", "value": "a lighthouse"}], []]
    assert await sentences(api) == set()


async def test_an_answer_made_from_anothers_character_is_dropped(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    """The model was shown what the user has with the former character."""
    await begin(api, memories={"learn_scope": "character"})
    await set_fact(api, "home", "a lighthouse", under="/v1/users/mira/characters/Kai")
    model.script(memory("Mira lives in a lighthouse.", 1))
    model.otherwise = "NONE"
    await turn(api, 1, "It rains.")
    clock.step(2)
    await learn_meanwhile(api, dispatcher, model, characters=[{"name": "Ida"}])
    await learn_all(dispatcher, clock)
    assert [quoted(one, "known") for one in model.requests] == [[{"fact": "home", "value": "a lighthouse"}], []]
    assert await sentences(api) == set()


@pytest.mark.parametrize(
    ("characters", "expected"),
    [([{"name": "Kai"}, {"name": "Ida"}], ("chat", None)), ([{"name": "Ida"}], ("character", "Ida"))],
)
async def test_the_characters_of_the_end_decide_the_scope(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    characters: list[Json],
    expected: tuple[str, str | None],
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api, memories={"learn_scope": "character"})
    await turn(api, 1, "My brother Tomas is a ferryman.")
    clock.step(2)
    await learn_meanwhile(api, dispatcher, model, characters=characters)
    await learn_all(dispatcher, clock)
    (learnt,) = await memories(api)
    assert (learnt["scope"], learnt["character"]) == expected
    under_kai = ok(await api.get("/v1/users/mira/characters/Kai/memories"), 200)["items"]
    assert under_kai == []


async def test_a_moved_chat_learns_again_for_its_new_user(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    """Rules have taught the former user; the model, which a person asked for, is asked during the move."""
    model.otherwise = "I'm sorry, but I can't help with that."
    await begin(api, memories={"learn_scope": "user"})
    await turn(api, 1, "My name is Mira.")
    await learn_all(dispatcher, clock)
    assert await known_of(api, "mira") != []
    model.otherwise = lambda _: fact("name", "Mira of the north", 1)
    ok(await api.post("/v1/chats/c/consolidation/regenerate"), 202)
    clock.step(2)
    await learn_meanwhile(api, dispatcher, model, user_id="ren")
    await learn_all(dispatcher, clock)
    assert await known_of(api, "ren") == ["Mira of the north"]
    assert await known_of(api, "mira") == []
