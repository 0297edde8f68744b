"""What the service learns from the conversation: when, from what, and where it is stored."""

import logging
from datetime import datetime

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import RETRY_DELAYS_S
from app.knowledge.service import MAX_KEYS
from tests.book import due_rows
from tests.consolidation.learning import (
    FILL,
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
from tests.facts.asking import call, delete_fact, set_fact
from tests.memories.asking import write
from tests.scripted_model import Request, ScriptedModel, says
from tests.statements import watched
from tests.talk import append, get, ok, put, said, talk

FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
ANSWERS = {
    "ferryman": lambda n: memory(FERRY, n, tags=["family"]),
    "call me Captain": lambda n: fact("nickname", "Captain", n, tags=["names"]),
    "call me Skipper": lambda n: fact("nickname", "Skipper", n),
}


async def test_a_turn_is_read_when_it_is_complete(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await append(api, [said(1, content="My brother Tomas is a ferryman.")])
    assert await due_rows(database, tenant) == []
    await append(api, [said(2, content="I know him, Mira. You may call me Captain.")])
    (row,) = await due_rows(database, tenant)
    assert (row["layer"], row["key"], row["at_seq"]) == ("consolidation", "range:1", 1)
    assert await learn_all(dispatcher, clock) == 1
    (learnt,) = await memories(api)
    assert (learnt["content"], learnt["category"], learnt["importance"]) == (FERRY, "personal", 0.7)
    assert (learnt["tags"], learnt["origin"], learnt["sources"]) == (["family"], "model", ["message:m1"])
    (held,) = (await get(api, "/facts"))["items"]
    assert (held["key"], held["value"], held["scope"], held["origin"]) == ("nickname", "Captain", "chat", "model")
    assert held["sources"] == ["message:m2"]
    assert (held["category"], held["importance"], held["tags"]) == ("personal", 0.9, ["names"])
    assert await get(api, "/facts/nickname") == held
    (exported,) = (await get(api, "/state"))["layers"]["facts"]
    assert {name: exported[name] for name in exported if name in held} == {
        name: held[name] for name in held if name in exported
    }
    assert (exported["category"], exported["importance"], exported["tags"]) == ("personal", 0.9, ["names"])
    assert await due_rows(database, tenant) == []


async def test_the_model_reads_what_is_known(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await turn(api, 1, "My brother Tomas is a ferryman.", "You may call me Captain.")
    await learn_all(dispatcher, clock)
    await turn(api, 2, "It rains.", "It always does, here.")
    await learn_all(dispatcher, clock)
    last = model.requests[-1]
    assert [one["message"] for one in quoted(last)] == ["It rains.", "It always does, here."]
    assert quoted(last, "known") == [{"fact": "nickname", "value": "Captain"}, {"memory": FERRY}]
    text = str(last["messages"][-1]["content"])
    assert 'They talk with the user, whose name is "Mira".' in text
    assert 'Characters: "Kai".' in text


async def test_the_model_reads_a_text_of_several_scopes_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api)
    await write(api, FERRY)
    await write(api, FERRY.upper(), under="/v1/users/mira")
    await turn(api, 1, "It rains.", "It always does, here.")
    await learn_all(dispatcher, clock)
    (known,) = quoted(model.requests[-1], "known")
    assert str(known["memory"]).lower() == FERRY.lower()


async def test_learning_starts_after_the_configured_turns(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api, turns=3)
    for n in range(1, 8):
        await turn(api, n, f"The lamp number {n}.")
        await learn_all(dispatcher, clock)
    assert [len(quoted(request)) for request in model.requests] == [6, 6]


async def test_an_import_is_read_in_long_ranges(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api)
    await append(api, talk(1, 100))
    await learn_all(dispatcher, clock)
    assert sorted(len(quoted(request)) for request in model.requests) == [20, 40, 40]


async def test_replies_without_user_messages_are_read_too(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api)
    for n in range(1, 51):
        await append(api, [said(n, role="assistant", name="Kai")])
    await learn_all(dispatcher, clock)
    assert [len(quoted(request)) for request in model.requests] == [40]


async def test_a_pause_ends_the_open_range(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api, turns=5)
    await turn(api, 1, "The lamp is out.")
    await learn_all(dispatcher, clock)
    assert model.requests == []
    clock.step(3_700)
    await append(api, [said(3)])
    await learn_all(dispatcher, clock)
    assert [len(quoted(request)) for request in model.requests] == [2]


async def test_a_session_ends_the_open_range(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api, turns=5)
    await turn(api, 1, "The lamp is out.")
    ok(await api.post("/v1/chats/c/sessions/break"), 201)
    await turn(api, 2, "Good morning.")
    await learn_all(dispatcher, clock)
    assert [[one["message"] for one in quoted(request)] for request in model.requests] == [["The lamp is out.", "Hm."]]


async def test_a_full_cut_waits_until_it_is_read(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await begin(api, history={"keep_messages": 4, "grow_messages": 2, "edges": "every_message"})
    await append(api, talk(1, 8))
    history = (await get(api, "/context"))["history"]
    assert (history["anchor_seq"], history["messages"]) == (1, 8)
    await learn_all(dispatcher, clock)
    history = (await get(api, "/context"))["history"]
    assert (history["last_cut"]["reason"], history["messages"]) == ("full", 4)


async def test_a_forced_cut_is_prepared(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    history = {"keep_messages": 4, "grow_messages": 2, "max_messages": 20, "edges": "every_message"}
    await begin(api, turns=15, history=history)
    await append(api, talk(1, 11))
    await learn_all(dispatcher, clock)
    assert model.requests == []
    await append(api, talk(12, 14))
    await learn_all(dispatcher, clock)
    assert [len(quoted(request)) for request in model.requests] == [14]
    assert (await get(api, "/context"))["history"]["messages"] == 4


async def test_a_small_history_is_read_before_it_is_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    history = {"keep_messages": 8, "grow_messages": 0, "max_messages": 10, "edges": "every_message"}
    await begin(api, turns=15, history=history)
    for first in range(1, 30, 2):
        await append(api, talk(first, first + 1))
        await learn_all(dispatcher, clock)
        history = (await get(api, "/context"))["history"]
        read = sum(len(quoted(request)) for request in model.requests)
        assert history["anchor_seq"] - 1 <= read


async def test_two_chats_learn_into_all_scopes_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    for chat in ("c", "d"):
        settings = {"consolidation": {"enabled": True, "every_turns": 1}, "memories": {"learn_scope": "global"}}
        await put(api, chat, user_id="mira", settings=settings)
        await append(api, [said(1, content="My brother is a ferryman. Call me Captain."), said(2)], chat)
    await set_fact(api, "nickname", "Commodore", under="/v1/users/mira")
    clock.step(2)
    await append(api, [said(3, content="Call me Skipper."), said(4)], "d")
    assert await learn_all(dispatcher, clock) >= 2
    known = [one["content"] for one in ok(await api.get("/v1/memories"), 200)["items"]]
    assert known == [FERRY]


async def test_a_newer_value_supersedes_an_older_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await turn(api, 1, "Please call me Captain.")
    await learn_all(dispatcher, clock)
    await turn(api, 2, "No, call me Skipper.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"nickname": "Skipper"}
    await set_fact(api, "nickname", "Commodore", status=200)
    assert await facts(api) == {"nickname": "Commodore"}
    clock.step(5)
    await turn(api, 3, "Now call me Captain again.")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"nickname": "Captain"}
    values = [one["value"] for one in (await get(api, "/facts/nickname/history"))["items"]]
    assert values == ["Captain", "Commodore", "Skipper", "Captain"]


async def test_a_full_scope_takes_new_values_of_its_keys(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model.otherwise = learns({"Paris": lambda n: fact("city", "Paris", n)})
    await begin(api)
    await turn(api, 1, "I live in Paris.")
    await learn_all(dispatcher, clock)
    async with database.raw() as connection:
        await connection.execute(FILL, MAX_KEYS - 1, chat_key(tenant, "c"))
    model.otherwise = "\n".join((fact("drink", "tea", 1), fact("city", "Rome", 1), fact("pet", "a cat", 1)))
    await turn(api, 2, "I live in Rome, with a cat and tea.")
    with caplog.at_level(logging.WARNING, "app.consolidation.store"):
        await learn_all(dispatcher, clock)
    known = await facts(api)
    assert known["city"] == "Rome"
    assert "drink" not in known
    (record,) = [one for one in caplog.records if one.name == "app.consolidation.store"]
    assert record.getMessage() == "learnt facts were dropped, because their scope is full"
    assert record.__dict__["fields"] == {"dropped": 2}


async def test_a_deleted_fact_makes_room(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api)
    await set_fact(api, "city", "Paris")
    async with database.raw() as connection:
        await connection.execute(FILL, MAX_KEYS - 1, chat_key(tenant, "c"))
    await set_fact(api, "pet", "a cat", status=409)
    await delete_fact(api, "key_7")
    await set_fact(api, "pet", "a cat")
    await set_fact(api, "drink", "tea", status=409)
    await set_fact(api, "key_7", "y", status=409)


async def test_taken_back_facts_make_room(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await call(api, "set_fact", {"key": "city", "value": "Paris"})
    async with database.raw() as connection:
        await connection.execute(FILL, MAX_KEYS - 1, chat_key(tenant, "c"))
    await set_fact(api, "pet", "a cat", status=409)
    ok(await api.delete("/v1/chats/c/messages/m2"), 204)
    await set_fact(api, "pet", "a cat")


async def test_a_deleted_fact_is_not_learnt_from_old_words(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await turn(api, 1, "Please call me Captain.")
    await learn_all(dispatcher, clock)
    await delete_fact(api, "nickname")
    clock.step(5)
    await append(api, [said(3)])
    ok(await api.patch("/v1/chats/c/messages/m2", json={"content": "As you wish."}), 200)
    assert await learn_all(dispatcher, clock) == 1
    assert await facts(api) == {}


async def test_it_is_stored_in_the_scope_to_learn_in(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api, memories={"learn_scope": "user"})
    await put(api, "d", user_id="mira")
    await put(api, "e", user_id="another")
    await turn(api, 1, "My brother is a ferryman. And call me Captain.")
    await learn_all(dispatcher, clock)
    known = ok(await api.get("/v1/chats/d/state"), 200)["layers"]
    assert [one["content"] for one in known["memories"]] == [FERRY]
    assert [one["value"] for one in ok(await api.get("/v1/users/mira/facts"), 200)["items"]] == ["Captain"]
    assert ok(await api.get("/v1/chats/e/state"), 200)["layers"]["memories"] == []


async def test_switched_off_nothing_is_stored(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api, facts={"enabled": False})
    await turn(api, 1, "My brother is a ferryman. And call me Captain.")
    await learn_all(dispatcher, clock)
    assert (await facts(api), await sentences(api)) == ({}, {FERRY})
    await begin(api, facts={"enabled": True}, memories={"enabled": False}, status=200)
    await turn(api, 2, "My brother is a ferryman! And call me Skipper.")
    await learn_all(dispatcher, clock)
    assert (await facts(api), await sentences(api)) == ({"nickname": "Skipper"}, {FERRY})


async def test_a_message_marked_as_important_is_quoted(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await append(
        api,
        [
            said(1, content="My brother Tomas is a ferryman.", importance=0.9),
            said(2, content="The cellar key hangs behind the third stair.", importance=0.8),
        ],
    )
    await learn_all(dispatcher, clock)
    found = {one["content"]: one for one in await memories(api)}
    quote = "Kai: “The cellar key hangs behind the third stair.”"
    assert set(found) == {FERRY, quote}
    assert (found[quote]["origin"], found[quote]["importance"]) == ("extractive", 0.8)


async def test_an_unusable_model_is_replaced_by_rules(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "I'm sorry, but I can't help with that."
    await begin(api)
    await turn(api, 1, "I promise that I will bring the lens to Sandoy on 9 August.", "My name is Kai.")
    for wait_s in (0.0, *RETRY_DELAYS_S):
        clock.step(wait_s)
        await learn_all(dispatcher, clock)
    (learnt,) = await memories(api)
    assert learnt["origin"] == "extractive"
    assert "I promise that I will bring the lens to Sandoy on 9 August." in learnt["content"]


async def test_a_range_that_does_not_fit_is_divided(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    await append(api, [said(n, content=f"The lamp number {n}. " * 400) for n in range(1, 40)])
    await append(api, [said(40, content="My brother Tomas is a ferryman.")])
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}


def answers_with_ten(request: Request) -> str:
    """A memory of each message that is not known yet, but at most ten, as the prompt asks for."""
    known = {one["memory"] for one in quoted(request, "known")}
    said = [(number, str(one["message"])) for number, one in enumerate(quoted(request), start=1)]
    return "\n".join([memory(text, number) for number, text in said if text not in known][:10]) or "NONE"


async def test_a_full_answer_divides_its_range_and_asks_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = answers_with_ten
    await begin(api, memories={"dedupe_threshold": 1})
    await append(api, talk(1, 40))
    assert await learn_all(dispatcher, clock) == 1
    assert await sentences(api) == {str(one["content"]) for one in talk(1, 40)}
    assert [len(quoted(request)) for request in model.requests] == [40, 20, 10, 10, 20, 10, 10]


async def test_a_full_answer_about_few_messages_asks_only_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "\n".join(memory(f"Mira owns {n} boats.", 1) for n in range(15))
    await begin(api, memories={"dedupe_threshold": 1})
    await append(api, talk(1, 4))
    await learn_all(dispatcher, clock)
    assert (len(await memories(api)), len(model.requests)) == (12, 1)


async def test_a_full_answer_stays_if_the_rest_is_refused(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.script(answers_with_ten)
    model.otherwise = "I'm sorry, but I can't help with that."
    await begin(api, memories={"dedupe_threshold": 1})
    await append(api, talk(1, 40))
    for wait_s in (0.0, *RETRY_DELAYS_S):
        clock.step(wait_s)
        await learn_all(dispatcher, clock)
    assert await sentences(api) == {str(one["content"]) for one in talk(1, 10)}
    assert {one["origin"] for one in await memories(api)} == {"model"}


async def test_an_answer_that_is_cut_off_gives_its_whole_items(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = lambda _: says(f"{memory(FERRY, 1)}\n" + '{"memory": "Kai ', finish_reason="length")
    await begin(api)
    await turn(api, 1, "My brother Tomas is a ferryman.")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == {FERRY}


async def test_a_learnt_fact_has_the_time_of_its_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns(ANSWERS)
    await begin(api)
    said_at = clock()
    await turn(api, 1, "Please call me Captain.")
    clock.step(60)
    await set_fact(api, "nickname", "Commodore")
    await learn_all(dispatcher, clock)
    assert await facts(api) == {"nickname": "Commodore"}
    early = (await get(api, "/facts/nickname/history"))["items"][-1]
    assert early["value"] == "Captain"
    assert datetime.fromisoformat(early["created_at"]) == said_at


@pytest.mark.parametrize("step_s", [0, -7_200])
async def test_a_later_statement_wins_across_ranges(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, step_s: float
) -> None:
    """One append completes the range 1 to 20, and its sessions end a second one, 21 to 24."""
    model.otherwise = learns(
        {"nurse": lambda n: fact("job", "nurse", n), "teacher": lambda n: fact("job", "teacher", n)}
    )
    await begin(api, turns=5, sessions={"enabled": True, "max_turns": 3})
    messages = talk(1, 26)
    messages[19]["content"], messages[23]["content"] = "You are a nurse.", "You are a teacher now."
    await append(api, messages)
    clock.step(step_s)
    await learn_all(dispatcher, clock)
    assert sorted(len(quoted(request)) for request in model.requests) == [4, 20]
    assert await facts(api) == {"job": "teacher"}


async def test_an_append_that_schedules_takes_one_more_statement(app: FastAPI, api: httpx.AsyncClient) -> None:
    await begin(api, turns=2)
    await append(api, talk(1, 2))
    counts = []
    for first in (3, 5):
        async with watched(app.state.database) as statements:
            await append(api, talk(first, first + 1))
        counts.append(len(statements.asked))
    assert counts == [4, 3]


async def test_memories_of_two_characters_stay_apart_in_any_script(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    of_both = [f"{name}对花生、榛子和核桃过敏，住在上海的医院附近，每天早上都去公园跑步。" for name in ("小明", "小红")]
    model.otherwise = learns({"小明病": lambda n: memory(of_both[0], n), "小红病": lambda n: memory(of_both[1], n)})
    await begin(api)
    await put(api, characters=[{"name": "小明"}, {"name": "小红"}], status=200)
    await turn(api, 1, "小明病了，今天不能来。")
    await learn_all(dispatcher, clock)
    await turn(api, 2, "小红病了，今天不能来。")
    await learn_all(dispatcher, clock)
    assert await sentences(api) == set(of_both)
