"""Every call of a tool is recorded with its arguments and what came of it."""

import asyncio
from collections.abc import Sequence

import httpx
import pytest
from fastapi import FastAPI

from app.bindings.records import KEPT_CALLS, MAX_ARGUMENTS_CHARS
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key, uuid7
from tests.conftest import client_of
from tests.facts.asking import USER, call, checkpoint, fork, note, restore, set_fact
from tests.talk import CHAT, Json, append, cut_off, get, ok, put, said, soft_delete, walk

pytestmark = pytest.mark.usefixtures("replied")

FACT: Json = {"key": "pet", "value": "a gull"}
DROPPED = "It was dropped: its generation was discarded, or its reply was cut off."

RECORDS = "SELECT count(*) FROM tool_calls WHERE owner_key = $1"
FILL = """
    INSERT INTO tool_calls (owner_key, line_id, call_id, made_on, tool, character, outcome, answer, at_seq, only_chat,
        created_at)
    SELECT owner_key, line_id, old.id, made_on, tool, character, outcome, answer, at_seq, only_chat, created_at
    FROM tool_calls, unnest($2::uuid[]) AS old (id) WHERE owner_key = $1"""


async def calls(api: httpx.AsyncClient, chat_id: str = "c", **query: str) -> list[Json]:
    return [one for page in await walk(api, f"/v1/chats/{chat_id}/tools/calls", **query) for one in page]


def brief(found: Sequence[Json]) -> list[tuple[str, str, str | None]]:
    return [(one["tool"], one["outcome"], one["status"]) for one in found]


async def count(database: Database, tenant: str) -> int:
    async with database.raw() as connection:
        found: int = await connection.fetchval(RECORDS, chat_key(tenant, "c"))
    return found


async def test_a_call_that_wrote_has_its_arguments(api: httpx.AsyncClient) -> None:
    await call(api, "set_fact", FACT)
    (found,) = await calls(api)
    assert found["arguments"] == FACT
    assert brief([found]) == [("set_fact", "wrote", "shown")]
    assert found["effect"].startswith("Set the fact “pet” to “a gull”")
    assert (found["message_id"], found["at_seq"], found["character"]) == ("m2", 2, "Kai")


async def test_a_call_that_only_read_is_listed(api: httpx.AsyncClient) -> None:
    await set_fact(api, "pet", "a gull")
    await call(api, "get_facts", {})
    await call(api, "memory_log", {})
    await call(api, "memory_search", {"query": "lamp"})
    found = await calls(api)
    assert brief(found) == [(name, "read", None) for name in ("get_facts", "memory_log", "memory_search")]
    assert found[0]["effect"] == "It only read. The answer was “- pet: a gull”."
    assert [one["arguments"] for one in found] == [{}, {}, {"query": "lamp"}]
    assert {(one["message_id"], one["at_seq"], one["character"]) for one in found} == {(None, 2, "Kai")}


async def test_a_refused_call_says_why(api: httpx.AsyncClient) -> None:
    await call(api, "forget_fact", {"key": "pet"})
    await call(api, "set_fact", {"key": "pet"}, status=422)
    await call(api, "set_fact", FACT, status=422, character="Nobody")
    await call(api, "set_fact", FACT, status=422, message_id="m1")
    ok(await api.post(f"{CHAT}/tools/remember%00all", json={"content": "nul \0"}), 404)
    found = await calls(api)
    assert [one["tool"] for one in found] == ["forget_fact", "set_fact", "set_fact", "set_fact", "rememberall"]
    assert {(one["outcome"], one["status"], one["message_id"]) for one in found} == {("refused", None, None)}
    assert found[0]["effect"].startswith(
        "It was refused, so nothing has changed. The answer was “There is no fact 'pet'"
    )
    assert "value is missing" in found[1]["effect"]
    assert [one["arguments"] for one in found] == [{"key": "pet"}, {"key": "pet"}, FACT, FACT, {"content": "nul \0"}]


@pytest.mark.parametrize("body", ['{"key": "pet', "", "{" + '"x": "' + "x" * MAX_ARGUMENTS_CHARS + '"}', '"\\ud800"'])
async def test_arguments_that_are_no_json_or_long_are_null(api: httpx.AsyncClient, body: str) -> None:
    answer = await api.post(f"{CHAT}/tools/set_fact", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    (found,) = await calls(api)
    assert (found["arguments"], found["outcome"]) == (None, "refused")


async def test_a_discarded_generation_leaves_its_calls(api: httpx.AsyncClient) -> None:
    await append(api, [said(3)])
    await call(api, "set_fact", FACT)
    assert brief(await calls(api)) == [("set_fact", "wrote", "open")]
    ok(await api.post(f"{CHAT}/tools/discard"), 200)
    (found,) = await calls(api)
    assert brief([found]) == [("set_fact", "wrote", "dropped")]
    assert found["effect"].startswith(f"{DROPPED} The answer was “It is noted: pet is “a gull”.")
    assert (found["arguments"], found["message_id"], found["at_seq"]) == (FACT, None, 3)


async def test_a_reply_that_is_cut_off_leaves_its_calls(api: httpx.AsyncClient) -> None:
    await call(api, "set_fact", FACT)
    await soft_delete(api, "m2")
    assert brief(await calls(api)) == [("set_fact", "wrote", "hidden")]
    await cut_off(api, 2)
    assert brief(await calls(api)) == [("set_fact", "wrote", "dropped")]


async def test_a_call_sent_again_is_one_call(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await asyncio.gather(*(call(api, "set_fact", FACT) for _ in range(3)))
    assert len(await calls(api)) == 1
    clock.step(601)
    await call(api, "set_fact", FACT)
    assert len(await calls(api)) == 2


async def test_pages_are_in_the_order_of_the_calls(api: httpx.AsyncClient) -> None:
    for n in range(3):
        await note(api, f"key {n}", "value")
        await call(api, "get_facts", {})
    pages = await walk(api, f"{CHAT}/tools/calls", limit=2)
    assert [len(page) for page in pages] == [2, 2, 2]
    assert [one["tool"] for page in pages for one in page] == ["set_fact", "get_facts"] * 3


async def test_calls_stay_on_the_line_that_made_them(api: httpx.AsyncClient) -> None:
    await call(api, "set_fact", FACT)
    await call(api, "get_facts", {})
    await checkpoint(api, "then")
    former = (await get(api, "/context"))["line"]
    await restore(api, "then")
    await call(api, "memory_log", {})
    found = await calls(api)
    assert brief(found) == [("set_fact", "wrote", "shown"), ("memory_log", "read", None)]
    assert found[0]["arguments"] is None
    before = await calls(api, line=former)
    assert brief(before) == [("set_fact", "wrote", "shown"), ("get_facts", "read", None)]
    await fork(api, "copy")
    assert brief(await calls(api, "copy")) == [("set_fact", "wrote", "shown")]


async def test_a_renamed_character_keeps_its_calls(api: httpx.AsyncClient) -> None:
    await call(api, "get_facts", {})
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Ilse"}), 200)
    assert [one["character"] for one in await calls(api)] == ["Ilse"]


async def test_without_a_sole_character_the_caller_is_unknown(api: httpx.AsyncClient) -> None:
    await put(api, status=200, characters=[{"name": "Kai"}, {"name": "Ilse"}])
    queries: list[Json] = [{}, {"character": "Ilse"}]
    for query in queries:
        await call(api, "get_facts", {}, **query)
    assert [one["character"] for one in await calls(api)] == [None, "Ilse"]


async def test_the_state_has_no_calls_and_an_erase_takes_them(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    before = await get(api, "/state")
    await call(api, "get_facts", {})
    await call(api, "forget_fact", {"key": "pet"})
    assert await get(api, "/state") == before
    assert await count(database, tenant) == 2
    assert (await api.delete(CHAT)).status_code == 204
    assert await count(database, tenant) == 0


async def test_a_refusal_for_an_unknown_chat_is_not_recorded(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    assert (await api.delete(CHAT)).status_code == 204
    await call(api, "set_fact", {}, status=422)
    await call(api, "get_facts", {}, status=404)
    assert await count(database, tenant) == 0


async def test_the_newest_calls_are_kept(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    older = [uuid7() for _ in range(KEPT_CALLS + 5)]
    await call(api, "memory_log", {})
    async with database.raw() as connection:
        await connection.execute(FILL, chat_key(tenant, "c"), older)
    await note(api, "pet", "a gull")
    await call(api, "get_facts", {})
    assert await count(database, tenant) == KEPT_CALLS
    assert brief(await calls(api))[-3:] == [
        ("memory_log", "read", None),
        ("set_fact", "wrote", "shown"),
        ("get_facts", "read", None),
    ]


async def test_writes_without_a_recorded_call_stay_listed(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await call(api, "set_fact", FACT)
    async with database.raw() as connection:
        await connection.execute("DELETE FROM tool_calls WHERE owner_key = $1", chat_key(tenant, "c"))
    (found,) = await calls(api)
    assert (brief([found]), found["arguments"]) == ([("set_fact", "wrote", "shown")], None)


async def test_a_token_of_another_user_records_nothing(
    api: httpx.AsyncClient, app: FastAPI, database: Database, tenant: str
) -> None:
    made = ok(await api.post("/v1/tokens", json={"user_id": "nell", "scopes": ["read", "write"], "ttl_s": 60}), 201)
    async with client_of(app, made["token"]) as other:
        await call(other, "set_fact", {}, status=422)
        await call(other, "get_facts", {}, status=404)
    assert await count(database, tenant) == 0


async def test_a_token_of_the_chat_sees_no_wider_answers(api: httpx.AsyncClient, app: FastAPI) -> None:
    await set_fact(api, "home", "Lisbon", under=USER)
    await call(api, "get_facts", {})
    made = ok(await api.post("/v1/tokens", json={"chat_id": "c", "scopes": ["read", "write"], "ttl_s": 60}), 201)
    async with client_of(app, made["token"]) as page:
        await call(page, "get_facts", {})
        seen = await calls(page)
    assert [one["effect"] for one in seen] == [
        "It only read.",
        "It only read. The answer was “There are no facts yet.”.",
    ]
    assert [one["arguments"] for one in seen] == [None, {}]
    assert "Lisbon" in (await calls(api))[0]["effect"]
