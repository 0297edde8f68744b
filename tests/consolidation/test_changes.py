"""What is learnt stays true to the conversation, however it changes."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import while_the_model_is_asked
from tests.book import due_rows
from tests.consolidation.learning import begin, fact, facts, learn_all, learns, memory, quoted, sentences, turn
from tests.facts.asking import checkpoint, fork, restore, switch_to
from tests.scripted_model import ScriptedModel
from tests.talk import Json, add_swipe, append, cut_off, edit, get, hide, ok, said, select_swipe, soft_delete, talk

FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
DOG = "Mira has a dog whose name is Brisk."
ANSWERS = {
    "ferryman": lambda n: memory(FERRY, n),
    "dog": lambda n: memory(DOG, n),
    "Captain": lambda n: fact("nickname", "Captain", n),
    "Skipper": lambda n: fact("nickname", "Skipper", n),
}


@pytest.fixture(autouse=True)
def learning_model(model: ScriptedModel) -> None:
    model.otherwise = learns(ANSWERS)


async def test_a_changed_message_is_read_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.", "Aha.")
    await learn_all(dispatcher, clock)
    await edit(api, "m1", content="I have a dog.")
    assert await sentences(api) == set()
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {DOG}
    await edit(api, "m1", content="My brother is a ferryman.")
    assert await sentences(api) == {FERRY}
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}
    assert len(model.requests) == 3


async def test_an_edit_that_is_undone_costs_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await learn_all(dispatcher, clock)
    await edit(api, "m1", content="I have a dog.")
    await edit(api, "m1", content="My brother is a ferryman.")
    assert await learn_all(dispatcher, clock) == 0
    assert (len(model.requests), await sentences(api)) == (1, {FERRY})


async def test_an_edit_far_back_does_not_outrank_later_words(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api)
    for n, text in enumerate(["Hello.", "Call me Skipper.", "It rains."], start=1):
        clock.step(60)
        await turn(api, n, text)
        await learn_all(dispatcher, clock)
    clock.step(60)
    await edit(api, "m1", content="Call me Captain.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"nickname": "Skipper"}
    await edit(api, "m3", content="Call me whatever you like.")
    assert await facts(api) == {"nickname": "Captain"}


async def test_an_edit_outranks_earlier_words_of_its_range(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.script("\n".join((fact("drink", "tea", 1), fact("city", "Paris", 1))), fact("city", "Rome", 3))
    await begin(api, turns=2)
    await turn(api, 1, "I live in Paris, and I like tea.")
    await turn(api, 2, "It rains.")
    await learn_all(dispatcher, clock)
    await edit(api, "m3", content="By now I live in Rome.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"drink": "tea", "city": "Rome"}


async def test_a_swipe_takes_back_and_returns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api)
    await turn(api, 1, "What have you got there?", "A dog.")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {DOG}
    await add_swipe(api, "m2", "Nothing.")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == set()
    await select_swipe(api, "m2", 0)
    assert await sentences(api) == {DOG}


async def test_a_range_that_is_not_read_waits_for_edits(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    clock.step(1.5)
    await edit(api, "m1", content="I have a dog.")
    clock.step(1.5)
    assert await dispatcher.drain() == 0
    await learn_all(dispatcher, clock)
    assert (len(model.requests), await sentences(api)) == (1, {DOG})


async def test_an_edit_during_the_call_replaces_what_is_learnt(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        await edit(api, "m1", content="I have a dog.")
    clock.step(60)
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {DOG}


async def test_deleted_and_hidden_messages_teach_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await turn(api, 2, "I have a dog.")
    await learn_all(dispatcher, clock)
    await hide(api, (3, 3))
    await soft_delete(api, "m1")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == set()
    await hide(api, (3, 3), hidden=False)
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {DOG}


async def test_a_cut_off_opens_its_range_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, turns=2)
    await turn(api, 1, "My brother is a ferryman.")
    await turn(api, 2, "I have a dog.")
    await learn_all(dispatcher, clock)
    await cut_off(api, 3)
    assert await sentences(api) == {FERRY}
    assert await learn_all(dispatcher, clock) == 0
    await append(api, talk(5, 6))
    await learn_all(dispatcher, clock)
    assert [len(quoted(request)) for request in model.requests] == [4, 4]
    assert await sentences(api) == {FERRY}


async def test_a_cut_off_drops_what_is_due(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await turn(api, 2, "I have a dog.")
    await cut_off(api, 3)
    assert [row["key"] for row in await due_rows(database, tenant)] == ["range:1"]
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}


async def test_memories_of_later_turns_stay_on_their_line(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await learn_all(dispatcher, clock)
    await checkpoint(api, "before")
    line = (await get(api, ""))["line"]
    await turn(api, 2, "I have a dog.")
    await learn_all(dispatcher, clock)
    await restore(api, "before")
    assert await sentences(api) == {FERRY}
    await turn(api, 2, "Call me Captain.")
    await learn_all(dispatcher, clock)
    assert (await sentences(api), await facts(api)) == ({FERRY}, {"nickname": "Captain"})
    await switch_to(api, line)
    assert (await sentences(api), await facts(api)) == ({FERRY, DOG}, {})
    assert await learn_all(dispatcher, clock) == 0
    assert len(model.requests) == 3


async def test_a_fork_goes_on_learning(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, turns=2)
    await turn(api, 1, "My brother is a ferryman.")
    await turn(api, 2, "It rains.")
    await learn_all(dispatcher, clock)
    await turn(api, 3, "I have a dog.")
    await fork(api, "d", at_seq=6)
    for chat in ("c", "d"):
        await append(api, talk(7, 8), chat)
    await learn_all(dispatcher, clock)
    for chat in ("c", "d"):
        learnt = (await api.get(f"/v1/chats/{chat}/memories")).json()["items"]
        assert {one["content"] for one in learnt} == {FERRY, DOG}
    assert [len(quoted(request)) for request in model.requests] == [4, 4, 4]


async def test_changes_while_it_is_off_are_read_when_it_is_on(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await learn_all(dispatcher, clock)
    await begin(api, status=200, consolidation={"enabled": False})
    await edit(api, "m1", content="I have a dog.")
    await turn(api, 2, "Call me Captain.")
    assert await learn_all(dispatcher, clock) == 0
    await begin(api, status=200)
    await turn(api, 3, "Call me Skipper.")
    await learn_all(dispatcher, clock)
    assert (await sentences(api), await facts(api)) == ({DOG}, {"nickname": "Skipper"})


async def test_disabling_consolidation_drops_its_due_ranges(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "My brother is a ferryman.")
    await begin(api, status=200, consolidation={"enabled": False})
    await turn(api, 2, "Call me Captain.")
    await learn_all(dispatcher, clock)
    await begin(api, status=200)
    await edit(api, "m1", content="My brother Tomas is a ferryman.")
    await turn(api, 3, "I have a dog.")
    await learn_all(dispatcher, clock)
    assert (await sentences(api), await facts(api), len(model.requests)) == ({DOG}, {}, 1)


async def test_switching_off_and_on_without_messages_loses_no_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, turns=2)
    await turn(api, 1, "My brother is a ferryman.")
    await turn(api, 2, "It rains.")
    await turn(api, 3, "I have a dog.")
    await begin(api, turns=2, status=200, consolidation={"enabled": False})
    await begin(api, turns=2, status=200)
    await turn(api, 4, "It snows.")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY, DOG}


async def test_a_deleted_reply_and_its_new_one_are_read(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api)
    await turn(api, 1, "What have you got there?", "A dog.")
    await soft_delete(api, "m2")
    await append(api, [said(3, role="assistant", content="My brother, the ferryman.")])
    await learn_all(dispatcher, clock)
    assert await sentences(api) == set()
    await append(api, [said(5), said(6)])
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}


@pytest.mark.parametrize("change", [{"kind": "thought"}, {"role": "narrator"}])
async def test_a_message_that_stops_being_a_reply_ends_no_turn(
    api: httpx.AsyncClient, database: Database, tenant: str, change: Json
) -> None:
    await begin(api, turns=3)
    await append(api, talk(1, 4))
    ok(await api.put("/v1/chats/c/messages", json={"messages": [*talk(1, 3), said(4) | change]}), 200)
    await append(api, talk(5, 6))
    assert await due_rows(database, tenant, "consolidation") == []
    await append(api, talk(7, 8))
    (row,) = await due_rows(database, tenant, "consolidation")
    assert (row["at_seq"], row["payload"]["last_seq"]) == (1, 8)


@pytest.mark.parametrize("change", [soft_delete, cut_off], ids=["a deletion", "a cut-off"])
async def test_a_turn_across_a_pause_still_counts_after_a_recount(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    change: Callable[..., Awaitable[Any]],
) -> None:
    """The range after the pause begins with the reply to a message of the range before it."""
    await _pause_before_reply(api, dispatcher, clock)
    await append(api, [said(3, role="narrator")])
    await change(api, "m3" if change is soft_delete else 3)
    await append(api, [said(5), said(6)])
    await learn_all(dispatcher, clock)
    assert [[one["message"] for one in quoted(request)] for request in model.requests] == [
        ["My brother is a ferryman."],
        [said(n)["content"] for n in (2, 5, 6)],
    ]


async def test_a_turn_across_a_pause_ends_with_its_question(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """Once the message of the user is deleted, the reply to it is no turn."""
    await _pause_before_reply(api, dispatcher, clock)
    await soft_delete(api, "m1")
    await append(api, [said(5), said(6)])
    await learn_all(dispatcher, clock)
    assert len(model.requests) == 1
    await append(api, [said(7), said(8)])
    await learn_all(dispatcher, clock)
    assert len(model.requests) == 2


async def test_a_deleted_message_does_not_hide_the_one_before(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """The reply after the pause then completes the turn of the user's first message."""
    await begin(api, turns=2)
    await append(api, [said(1), said(3)])
    clock.step(3_700)
    await append(api, [said(2)])
    await soft_delete(api, "m3")
    await append(api, [said(5), said(6)])
    await learn_all(dispatcher, clock)
    assert sorted(len(quoted(request)) for request in model.requests) == [1, 3]  # in no certain order


async def _pause_before_reply(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await begin(api, turns=2)
    await append(api, [said(1) | {"content": "My brother is a ferryman."}])
    clock.step(3_700)
    await append(api, [said(2)])
    await learn_all(dispatcher, clock)
