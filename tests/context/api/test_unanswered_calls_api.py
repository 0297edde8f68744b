"""A message that only makes tool calls without results is not sent, so it is not counted among the messages sent."""

import httpx
import pytest
from fastapi import FastAPI

from app.context.in_use import in_use
from app.context.queries import find_context, read_material
from app.kit.db import Database
from app.kit.ids import chat_key
from app.registry import LAYERS
from tests.statements import watched
from tests.talk import (
    CALL,
    WAITING_FOR_NOTHING,
    Json,
    append,
    context,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    read_cut,
    reimport,
    said,
    talk,
)

SILENT = said(2, content="", tool_calls=[CALL])
RESULT = said(3, role="tool", content="A lamp.", tool_call_id="call-1")


@pytest.fixture
def counted(api: httpx.AsyncClient, database: Database, tenant: str) -> "Counted":
    return Counted(api, database, tenant)


class Counted:
    """Reads how many messages the chat `c` sends: as its row counts them, and as its context does."""

    def __init__(self, api: httpx.AsyncClient, database: Database, tenant: str) -> None:
        self._api, self._database, self._key = api, database, chat_key(tenant, "c")

    async def __call__(self) -> int:
        shown = await context(self._api)
        async with self._database.raw() as connection:
            stored: int = await connection.fetchval(
                "SELECT history_messages FROM chats WHERE chat_key = $1 AND line_status = 'current'", self._key
            )
        assert shown["history"]["messages"] == stored
        return stored


async def report(api: httpx.AsyncClient) -> dict[str, str]:
    return {one["message_id"]: one["status"] for one in (await get(api, "/inclusion"))["items"]}


async def test_an_unanswered_call_counts_once_it_is_answered(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT])
    assert (await counted(), (await report(api))["m2"]) == (1, "none")
    await append(api, [said(9)])
    assert await counted() == 2
    await append(api, [RESULT])
    assert (await counted(), (await report(api))["m2"]) == (4, "verbatim")


async def test_a_call_and_its_result_can_come_together(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT, RESULT])
    assert await counted() == 3


async def test_a_result_of_another_call_answers_nothing(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT, RESULT | {"tool_call_id": "call-2"}])
    assert await counted() == 2


async def test_a_blank_result_answers_nothing(api: httpx.AsyncClient, counted: Counted) -> None:
    blank = RESULT | {"content": " "}
    await append(api, [said(1), SILENT, blank])
    assert await counted() == 1
    await append(api, [RESULT | {"id": "late"}])
    assert await counted() == 3


async def test_a_call_with_a_text_always_counts(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT | {"content": "I look."}])
    assert await counted() == 2
    await edit(api, "m2", content="")
    assert await counted() == 1
    await edit(api, "m2", content="I look.")
    assert await counted() == 2


async def test_a_deleted_or_hidden_result_leaves_its_call_open(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT, RESULT, said(4)])
    await hide(api, (3, 3))
    assert await counted() == 2
    await hide(api, (3, 3), hidden=False)
    assert await counted() == 4
    ok(await api.delete("/v1/chats/c/messages/m3"), 204)
    assert await counted() == 2


async def test_a_cut_off_result_leaves_its_call_open(api: httpx.AsyncClient, counted: Counted) -> None:
    await append(api, [said(1), SILENT, RESULT])
    await cut_off(api, 3)
    assert await counted() == 1


async def test_a_fork_before_the_result_does_not_count_the_call(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, [said(1), SILENT, RESULT])
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "fork", "at_seq": 2}), 201)
    async with database.raw() as connection:
        stored = await connection.fetchval(
            "SELECT history_messages FROM chats WHERE chat_key = $1", chat_key(tenant, "fork")
        )
    assert stored == 1


async def test_a_cut_leaves_enough_messages_that_are_sent(api: httpx.AsyncClient, counted: Counted) -> None:
    history: Json = {"keep_messages": 4, "grow_messages": 4, "edges": "every_message"}
    await put(api, settings=WAITING_FOR_NOTHING | {"history": history})
    calls = [said(n, role="assistant", content="", tool_calls=[CALL | {"id": f"call-{n}"}]) for n in range(6, 10)]
    await append(api, [*talk(1, 5), *calls, *talk(10, 12)])
    assert await counted() == 8, "not more than keep and grow together"
    await append(api, [said(13)])
    assert await counted() == 4
    assert (await context(api))["history"]["anchor_seq"] == 10


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ({}, {"tool_call_id": "call-2"}),
        ({}, {"role": "user"}),
        ({"tool_calls": [CALL | {"id": "call-2"}]}, {}),
    ],
    ids=["other tool_call_id", "other role", "other call id"],
)
async def test_a_reimport_that_parts_call_and_result_counts(
    api: httpx.AsyncClient, counted: Counted, call: Json, result: Json
) -> None:
    history: Json = {"keep_messages": 4, "grow_messages": 4, "edges": "every_message"}
    await put(api, settings=WAITING_FOR_NOTHING | {"history": history})
    pair = [SILENT | {"id": "m6"}, RESULT | {"id": "m7"}]
    whole = [*talk(1, 5), *pair, *talk(8, 9)]
    await append(api, whole)
    assert (await counted(), await read_cut(api)) == (4, (6, "full"))
    await reimport(api, [*talk(1, 5), pair[0] | call, pair[1] | result, *talk(8, 9)])
    assert (await counted(), await read_cut(api)) == (4, (5, "rewind"))
    await reimport(api, whole)
    assert (await counted(), await read_cut(api)) == (5, (5, "rewind"))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"tool_calls": [CALL], "content": ""}, {"content": " "}),
        ({"content": " "}, {"content": " ", "tool_calls": [CALL]}),
    ],
    ids=["text becomes blank", "calls are added"],
)
async def test_a_reimported_call_with_a_blank_text_does_not_count(
    api: httpx.AsyncClient, counted: Counted, first: Json, then: Json
) -> None:
    await append(api, [said(1), said(2) | first])
    await reimport(api, [said(1), said(2) | then])
    assert await counted() == 1
    await append(api, [RESULT])
    assert await counted() == 3


async def test_an_unanswered_call_beyond_the_limit_does_not_count(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings={"context_tokens": 1_024})
    await append(api, [said(1), SILENT, said(3), said(4, content="lamp " * 2_000), said(5)])
    assert (await report(api))["m2"] == "none"
    assert {"name": "message:m2", "why": "unanswered_call", "tokens": 0} in (await context(api))["omitted"]
    async with database.raw() as connection:
        row = await find_context(connection, tenant, chat_key(tenant, "c"), None, in_use().queries or {})
    assert row is not None
    assert read_material(row, LAYERS, None).history_messages == 4


async def test_a_blank_result_leaves_the_call_unanswered(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), SILENT, RESULT | {"content": " "}, said(4)])
    omitted = {one["name"]: one["why"] for one in (await context(api))["omitted"]}
    assert omitted == {"message:m2": "unanswered_call", f"message:{RESULT['id']}": "blank"}
    await edit(api, RESULT["id"], content="Nothing there.")
    assert (await context(api))["omitted"] == []


async def test_an_append_without_results_needs_no_more_statements(api: httpx.AsyncClient, app: FastAPI) -> None:
    await append(api, [said(1), said(2)])
    counts = []
    for fresh in ([said(3)], [said(4, content="", tool_calls=[CALL])], [said(5)]):
        async with watched(app.state.database) as statements:
            await append(api, fresh)
        counts.append(len(statements.asked))
    assert counts == [3, 3, 3]
