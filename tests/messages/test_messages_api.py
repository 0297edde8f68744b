"""Messages over HTTP: append, retry, refuse, page."""

from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from app.kit.db import Database
from app.kit.tokens import count_tokens
from app.messages.reads import NOT_DELETED
from tests.book import due_rows
from tests.statements import watched
from tests.talk import Json, append, get, put, said, talk, walk

CALL = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": '{"at":"sea"}'}}
TAKEN = "was appended before with another role or text"


async def test_messages_are_appended_and_returned_in_request_order(api: httpx.AsyncClient) -> None:
    answer = await append(api, [said(1, name="Mira"), said(2, name="Kai"), {"role": "narrator", "content": "Rain."}])
    assert answer["created"] == 3
    first, second, third = answer["messages"]
    assert first == said(1, name="Mira") | {
        "seq": 1,
        "sent_at": "2026-04-01T12:00:00Z",
        "tokens": count_tokens(said(1)["content"]),
    }
    assert (second["id"], second["seq"], second["name"]) == ("m2", 2, "Kai")
    assert (third["seq"], third["name"], UUID(third["id"]).version) == (3, None, 7)
    assert set(answer) == {"messages", "created"}


async def test_much_text_at_once_is_counted_like_little(api: httpx.AsyncClient) -> None:
    given = [said(n, content=f"{n} " + "The lamp was lit tonight. " * 3_000) for n in range(1, 5)]
    answer = await append(api, given)
    assert [(one["id"], one["content"]) for one in answer["messages"]] == [(m["id"], m["content"]) for m in given]
    assert [one["tokens"] for one in answer["messages"]] == [count_tokens(m["content"]) for m in given]
    assert (await append(api, given, status=200))["created"] == 0


async def test_a_message_keeps_all_of_its_given_fields(api: httpx.AsyncClient) -> None:
    full = {
        "id": "full",
        "role": "assistant",
        "name": "Kai",
        "content": "Let me look.",
        "kind": "thought",
        "sent_at": "2026-03-31T23:30:00.123456+02:00",
        "importance": 0.75,
        "tool_calls": [CALL],
        "metadata": {"mood": "calm", "scores": [1, 2.5, 1e20, -3], "nested": {"日": None}},
    }
    result = {"id": "result", "role": "tool", "content": "Waves.", "tool_call_id": "call-1", "name": "look"}
    call = {"id": "call", "role": "assistant", "tool_calls": [CALL]}
    await append(api, [full, call, result])
    bare = {
        "name": None,
        "kind": None,
        "importance": None,
        "tool_calls": None,
        "tool_call_id": None,
        "metadata": None,
        "sent_at": "2026-04-01T12:00:00Z",
        "swipes": [""],
        "selected_swipe": 0,
        "excluded": False,
        "pinned": False,
        "hidden_by": None,
        "edited": False,
        "memo_id": None,
        "content": "",
        "tokens": 0,
    }
    read = (await get(api, "/messages"))["items"]
    told = {"sent_at": "2026-03-31T21:30:00.123456Z", "swipes": ["Let me look."], "tokens": read[0]["tokens"]}
    assert read[0] == bare | full | told | {"seq": 1}
    assert read[1] == bare | call | {"seq": 2}
    assert read[2] == bare | result | {"seq": 3, "swipes": ["Waves."], "tokens": read[2]["tokens"]}
    assert [await get(api, f"/messages/{name}") for name in ("full", "call", "result")] == read


async def test_a_messages_time_is_given_but_does_not_order_it(api: httpx.AsyncClient) -> None:
    times = [
        "2026-04-02T08:00:00+09:00",
        "1999-12-31T23:59:59Z",
        "2999-01-01T00:00:00-11:30",
        "0001-01-02T14:00:00+14:00",
        "9999-12-30T11:59:59-12:00",
    ]
    messages = [said(n, sent_at=at) for n, at in enumerate(times, start=1)]
    first = (await append(api, messages))["messages"]
    assert [_moment(one["sent_at"]) for one in first] == [_moment(at) for at in times]
    assert (await append(api, messages, status=200))["messages"] == first
    read = (await get(api, "/messages"))["items"]
    assert [(one["seq"], one["sent_at"]) for one in read] == [(one["seq"], one["sent_at"]) for one in first]
    for zone in ("Pacific/Kiritimati", "America/New_York"):
        await put(api, status=200, time_zone=zone, settings={"timestamps": "inline", "time": True})
        context = await get(api, "/context", now="9999-12-30T23:59:59Z")
        assert context["history"]["messages"] == 5


@pytest.mark.parametrize(
    "sent_at",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-12:00",
        "2026-04-01T12:00:00",
        "2026-02-30T12:00:00Z",
        "10000-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "yesterday",
        1e300,
        True,
    ],
)
async def test_an_invalid_or_extreme_time_is_refused(api: httpx.AsyncClient, sent_at: Any) -> None:
    problem = await append(api, [said(1), said(2, sent_at=sent_at)], status=422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 1, "sent_at"]
    await get(api, "", 404)


async def test_a_retry_adds_nothing_and_answers_the_same(api: httpx.AsyncClient) -> None:
    first = await append(api, talk(1, 5))
    again = await append(api, talk(1, 5), status=200)
    assert again == first | {"created": 0}
    assert (await get(api, ""))["counters"]["messages"] == 5


async def test_known_messages_stay_and_new_ones_are_appended_in_order(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    answer = await append(api, [said(6), said(2), said(5), said(4), {"role": "user", "content": "No id."}])
    assert answer["created"] == 3
    assert [one["seq"] for one in answer["messages"]] == [5, 2, 6, 4, 7]
    assert [one["id"] for one in (await get(api, "/messages"))["items"]][:6] == ["m1", "m2", "m3", "m4", "m6", "m5"]


async def test_a_retry_may_differ_in_all_but_role_and_text(api: httpx.AsyncClient) -> None:
    await append(api, [said(1, name="Mira", metadata={"a": 1})])
    answer = await append(api, [said(1, name="Ren", importance=1, sent_at="2020-01-01T00:00:00Z")], status=200)
    assert (answer["messages"][0]["name"], answer["messages"][0]["sent_at"]) == ("Mira", "2026-04-01T12:00:00Z")


async def test_a_known_id_with_another_text_rejects_the_whole_request(api: httpx.AsyncClient) -> None:
    before = await append(api, talk(1, 3))
    changed = [said(4), said(1, content="Something else."), said(2), said(3, role="system")]
    problem = await append(api, changed, status=409)
    assert problem["code"] == "message_id_taken"
    assert problem["errors"] == [
        {"loc": ["body", "messages", 1, "id"], "msg": TAKEN, "id": "m1"},
        {"loc": ["body", "messages", 3, "id"], "msg": TAKEN, "id": "m3"},
    ]
    read = (await get(api, "/messages"))["items"]
    assert [(one["id"], one["content"]) for one in read] == [(one["id"], one["content"]) for one in before["messages"]]
    assert (await append(api, [said(4)]))["messages"][0]["seq"] == 4, "what was refused left no hole"


async def test_the_same_id_twice_in_one_request_is_refused_by_place(api: httpx.AsyncClient) -> None:
    problem = await append(api, [said(1), said(2), said(1)], status=422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 2, "id"]


async def test_an_import_of_1000_messages_creates_one_job_a_batch(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    answer = await append(api, talk(1, 1_000))
    assert answer["created"] == 1_000
    assert [one["seq"] for one in answer["messages"]] == list(range(1, 1_001))
    counters = (await get(api, ""))["counters"]
    assert (counters["messages"], counters["memos"]) == (1_000, 125)
    assert len(await due_rows(database, tenant, "memos")) == 125
    assert (await append(api, talk(1, 1_000), status=200))["created"] == 0
    pages = await walk(api, "/v1/chats/c/messages", limit=400)
    assert [len(page) for page in pages] == [400, 400, 200]
    assert [one["id"] for page in pages for one in page] == [f"m{n}" for n in range(1, 1_001)]


@pytest.mark.parametrize("messages", [[], talk(1, 1_001)], ids=["none", "1,001"])
async def test_an_append_is_of_one_to_a_thousand_messages(api: httpx.AsyncClient, messages: list[Json]) -> None:
    problem = await append(api, messages, status=422)
    assert problem["errors"][0]["loc"] == ["body", "messages"]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "user", "content": ""}, "content"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": "x" * 100_001}, "content"),
        ({"role": "user", "content": "a\0b"}, "content"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": ["x"]}, "content"),
        ({"role": "bot", "content": "x"}, "role"),
        ({"content": "x"}, "role"),
        ({"role": "user", "content": "x", "id": ""}, "id"),
        ({"role": "user", "content": "x", "id": "i" * 129}, "id"),
        ({"role": "user", "content": "x", "id": "\0"}, "id"),
        ({"role": "user", "content": "x", "name": ""}, "name"),
        ({"role": "user", "content": "x", "kind": "memory"}, "kind"),
        ({"role": "user", "content": "x", "importance": 1.01}, "importance"),
        ({"role": "user", "content": "x", "metadata": {"a": "x" * 16_384}}, "metadata"),
        ({"role": "user", "content": "x", "metadata": [1]}, "metadata"),
        ({"role": "user", "content": "x", "tool_calls": []}, "tool_calls"),
        ({"role": "user", "content": "x", "swipes": ["y"]}, "content"),
    ],
)
async def test_an_invalid_message_names_its_index_and_field(api: httpx.AsyncClient, message: Json, field: str) -> None:
    problem = await append(api, [said(1), message], status=422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 1, field]
    await get(api, "", 404)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "🏮" * 100_000,
        "語" * 100_000,
        "👩‍👩‍👧‍👦 e\u0301 \ufeff \u200b",
        "שלום \u202e hidden \u2066 مرحبا",
        "".join(map(chr, range(1, 160))),
        "\uffff\U0010ffff\ufdd0",
        " \t\r\n\u3000",
        "\\u0000 'quoted' \"; DROP TABLE chats; -- {} %s $1",
        "x",
    ],
    ids=["100,000", "emoji", "CJK", "joined", "right-to-left", "control", "nonchar", "blank", "escaped", "one"],
)
async def test_any_text_comes_back_as_it_was_sent(api: httpx.AsyncClient, text: str) -> None:
    answer = await append(api, [said(1, content=text, metadata={"text": text[:1_000]})])
    assert answer["messages"][0]["content"] == text
    read = await get(api, "/messages/m1")
    assert (read["content"], read["metadata"]["text"]) == (text, text[:1_000])
    assert read["tokens"] == count_tokens(text)
    assert (await append(api, [said(1, content=text)], status=200))["created"] == 0
    shown = (await get(api, "/context", max_tokens=10_000_000))["segments"]
    assert [part["text"] for part in shown] == ([text] if text.strip() else [])


@pytest.mark.parametrize("message_id", ["i" * 128, "🏮" * 128, "a b%2Fc?", "...", "\u202e"])
async def test_an_id_may_be_any_text_of_128_characters(api: httpx.AsyncClient, message_id: str) -> None:
    await append(api, [said(1, id=message_id)])
    assert (await append(api, [said(1, id=message_id)], status=200))["messages"][0]["id"] == message_id
    assert (await get(api, "/messages"))["items"][0]["id"] == message_id


async def test_an_append_is_three_statements_in_one_transaction(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, [said(1)])  # asyncpg asks for types it does not know, once a connection
    async with watched(app.state.database) as statements:
        await append(api, talk(2, 3))
    assert (len(statements.asked), statements.frame) == (3, ["BEGIN", "COMMIT"]), statements.asked
    async with watched(app.state.database) as statements:
        await append(api, talk(1, 3), status=200)
    assert len(statements.asked) == 2, "a retry locks and looks"
    async with watched(app.state.database) as statements:
        await append(api, [said(1, content="Another text.")], status=409)
    assert statements.frame == ["BEGIN", "ROLLBACK"]


async def test_new_messages_are_not_read_again_for_their_batches(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 12))
    for last, reads in ((16, True), (32, False)):
        async with watched(app.state.database) as statements:
            await append(api, talk(last - 3 if reads else last - 15, last))
        assert any(NOT_DELETED.strip() in asked for asked in statements.asked) == reads, statements.asked
        assert len((await get(api, "/memos"))["items"]) == last // 8


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
