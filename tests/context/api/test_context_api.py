"""Contexts over HTTP: what is in them, in which order, and what a caller may ask for."""

import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.context.schemas import ContextOut
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.book import key_column
from tests.context.api.chats import CHAT, LORE
from tests.statements import watched
from tests.talk import CALL, FORMATS, Json, append, context, edit, get, ok, put, said, talk, talk_with_memos


async def test_segments_that_rarely_change_come_first(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, **CHAT, settings={"time": True})
    await talk_with_memos(api, dispatcher, clock, 33)
    shown = await context(api)
    assert [part["name"] for part in shown["segments"]] == [
        "system",
        "character",
        "user",
        "instruction",
        "memos",
        "history",
        "time",
        "newest",
    ]
    assert [part["name"] for part in shown["segments"] if not part["cacheable"]] == ["time", "newest"]
    by_name = {part["name"]: part for part in shown["segments"]}
    assert by_name["history"]["sources"] == [f"message:m{n}" for n in range(17, 33)]
    assert by_name["newest"]["sources"] == ["message:m33"]
    assert by_name["newest"]["text"] == said(33)["content"]
    memos = [f"memo:{memo['id']}" for memo in (await get(api, "/memos"))["items"]]
    assert by_name["memos"]["sources"] == memos[:2]
    assert by_name["time"]["text"] == "It is Wednesday, 01 April 2026, 12:00."


@pytest.mark.parametrize(
    ("disabled", "spoken"),
    [
        ([], ["Welcome.", "Kai: Hm.", "Ren: Ahoy."]),
        (["Ren"], ["Welcome.", "Hm.", "Ren: Ahoy."]),
        (["Kai"], ["Welcome.", "Kai: Hm.", "Ahoy."]),
        (["Kai", "Ren"], ["Welcome.", "Kai: Hm.", "Ren: Ahoy."]),
    ],
)
async def test_only_the_name_of_the_sole_active_character_is_left_out(
    api: httpx.AsyncClient, disabled: list[str], spoken: list[str]
) -> None:
    await put(api, characters=[{"name": name, "disabled": name in disabled} for name in ("Kai", "Ren")])
    replies = [said(2, content="Welcome."), said(4, content="Hm.", name="Kai"), said(6, content="Ahoy.", name="Ren")]
    await append(api, [said(1), replies[0], said(3), replies[1], said(5), replies[2]])
    sent = (await context(api, format="anthropic"))["messages"]
    assert [one["content"][0]["text"] for one in sent if one["role"] == "assistant"] == spoken


async def test_a_message_without_a_name_is_the_sole_active_characters(api: httpx.AsyncClient) -> None:
    await put(api, characters=[{"name": "Kai"}, {"name": "Ren", "disabled": True}])
    await append(api, talk(1, 2))
    assert f"Kai: {said(2)['content']}" in (await context(api, format="text"))["text"]


async def test_the_history_is_verbatim_and_in_order_in_each_format(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 20))
    for name in FORMATS:
        shown = await context(api, format=name)
        text = str(shown.get("messages") or shown.get("text") or shown["segments"])
        places = [text.index(one["content"]) for one in talk(1, 20)]
        assert places == sorted(places)
        assert shown["history"] == {"anchor_seq": 1, "last_seq": 20, "messages": 20, "last_cut": None}


async def test_each_format_returns_only_its_own_fields(api: httpx.AsyncClient) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 5))
    own = {"segments": set(), "openai": {"messages"}, "anthropic": {"system", "messages"}, "text": {"text"}}
    everywhere = set(ContextOut.model_fields) - {"messages", "system", "text"}
    for name in FORMATS:
        shown = await context(api, format=name)
        assert set(shown) == everywhere | own[name]
        assert (shown["format"], shown["chat_id"], shown["max_tokens"]) == (name, "c", 32_000)
        assert shown["line"] == (await get(api, ""))["line"]
        assert 1 <= len(shown["breakpoints"]) <= 4
    openai = await context(api, format="openai")
    assert [one["role"] for one in openai["messages"]] == ["system", "user", "assistant", "user", "assistant", "user"]
    anthropic = await context(api, format="anthropic")
    assert anthropic["system"][0]["text"] == "You are Kai."
    assert [one["role"] for one in anthropic["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    marks = str(anthropic["system"]).count("cache_control") + str(anthropic["messages"]).count("cache_control")
    assert marks == len(anthropic["breakpoints"])


async def test_the_newest_message_is_apart_only_if_it_is_the_users(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    assert [part["name"] for part in (await context(api))["segments"]] == ["history", "newest"]
    await append(api, [said(4)])
    assert [part["name"] for part in (await context(api))["segments"]] == ["history"]
    await append(api, [said(5), {"role": "assistant", "kind": "thought", "content": "Hm."}])
    shown = (await context(api))["segments"]
    assert [part["name"] for part in shown] == ["history", "newest"], "a thought is not sent"
    assert "Hm." not in str(shown)


async def test_white_space_is_left_out_and_listed(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), said(2), said(3, content=" \n\u3000"), said(4, content="\t")])
    shown = await context(api)
    assert shown["history"]["messages"] == 2
    assert [(one["name"], one["why"]) for one in shown["omitted"]] == [("message:m3", "blank"), ("message:m4", "blank")]
    await append(api, [said(5), said(7, content=" ")])
    assert (await context(api))["segments"][-1]["sources"] == ["message:m5"]


async def test_a_draft_has_the_users_name_from_the_history(api: httpx.AsyncClient) -> None:
    await put(api, settings={"timestamps": "inline"})
    await append(api, [said(1, name="Mira"), said(2)])
    newest = (await context(api, draft="Come to the sea."))["segments"][-1]
    assert newest["text"].endswith("] Mira: Come to the sea.")


async def test_a_blank_draft_changes_nothing(api: httpx.AsyncClient) -> None:
    await put(api, settings={"time": True})
    await append(api, talk(1, 5))
    drafted, shown = await context(api, draft=" "), await context(api)
    assert [one["name"] for one in drafted["omitted"]] == ["message:draft"]
    assert drafted["segments"] == shown["segments"]
    assert shown["segments"][-1]["name"] == "newest"


async def test_a_draft_is_assembled_like_a_message_but_not_stored(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    draft: Json = {"draft": "Do you still have the key?"}
    before = await get(api, "")
    for shown in (await context(api, **draft), ok(await api.post("/v1/chats/c/context", json=draft), 200)):
        assert shown["segments"][-1]["text"] == draft["draft"]
        assert shown["history"]["messages"] == 5
    assert await get(api, "") == before
    await append(api, [said(5, content=draft["draft"])])
    stored = await context(api, format="openai")
    assert stored["messages"][-1] == {"role": "user", "content": draft["draft"]}
    assert stored["prefix_hash"] == (await context(api, format="openai", **draft))["prefix_hash"]


async def test_prefill_lets_an_anthropic_chat_end_with_the_assistant(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    closed = await context(api, format="anthropic")
    opened = await context(api, format="anthropic", prefill=True)
    assert [one["role"] for one in closed["messages"]] == ["user", "assistant", "user"]
    assert [one["role"] for one in opened["messages"]] == ["user", "assistant"]
    assert opened["tokens"] < closed["tokens"]


async def test_the_callers_segments_are_at_the_given_positions(api: httpx.AsyncClient) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 5))
    given = [
        LORE | {"after": "user"},
        {"name": "rules", "text": "Be brief.", "after": "history"},
        {"name": "note", "text": "It rains.", "after": "in_chat", "depth": 2, "role": "user"},
        {"name": "empty", "text": "  "},
    ]
    shown = ok(await api.post("/v1/chats/c/context", json={"segments": given, "format": "openai"}), 200)
    contents = [one["content"] for one in shown["messages"]]
    assert contents[0].endswith("## User\n\nMira, a cartographer.\n\nThe lighthouse has 112 steps.")
    assert contents[4] == "It rains."
    assert contents[6:] == ["Be brief.", said(5)["content"]]
    assert {"name": "empty", "why": "blank", "tokens": 1} in shown["omitted"]
    assert [part["name"] for part in shown["segments"] if part["cacheable"]][:4] == [
        "system",
        "character",
        "user",
        "lore",
    ]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"format": "xml"}, ["format"]),
        ({"max_tokens": 0}, ["max_tokens"]),
        ({"max_tokens": -1}, ["max_tokens"]),
        ({"max_tokens": 10_000_001}, ["max_tokens"]),
        ({"draft": ""}, ["draft"]),
        ({"draft": "a\0b"}, ["draft"]),
        ({"draft": "x" * 100_001}, ["draft"]),
        ({"recall": "tool"}, ["recall"]),
        ({"line": "main"}, ["line"]),
        ({"now": "2026-04-01T12:00:00"}, ["now"]),
        ({"now": "9999-12-31T23:59:59Z"}, ["now"]),
        ({"nope": 1}, ["nope"]),
        ({"segments": [LORE | {"name": "memos"}]}, ["segments", 0, "name"]),
        ({"segments": [LORE | {"after": "lore"}]}, ["segments", 0, "after"]),
        ({"segments": [LORE | {"depth": -1}]}, ["segments", 0, "depth"]),
        ({"segments": [LORE | {"role": "tool"}]}, ["segments", 0, "role"]),
        ({"segments": [LORE, LORE]}, ["segments"]),
        ({"segments": [LORE] * 51}, ["segments"]),
    ],
)
async def test_invalid_options_name_the_field(api: httpx.AsyncClient, options: Json, place: list[str | int]) -> None:
    await append(api, talk(1, 2))
    asked = ok(await api.post("/v1/chats/c/context", json=options), 422)
    assert asked["errors"][0]["loc"] == ["body", *place]
    appended = await append(api, [said(3)], status=422, context=options)
    assert appended["errors"][0]["loc"] == ["body", "context", *place]
    if "segments" not in options and len(str(options)) < 50_000:  # a longer one is no query any more
        problem = await context(api, 422, **options)
        assert problem["errors"][0]["loc"] == ["query", *place]


async def test_an_empty_chat_has_an_empty_context_an_unknown_one_404(api: httpx.AsyncClient) -> None:
    await context(api, 404)
    await put(api)
    for name in FORMATS:
        shown = await context(api, format=name, max_tokens=1)
        assert (shown["tokens"], shown["segments"], shown["breakpoints"], shown["omitted"]) == (0, [], [], [])
        assert (shown.get("messages", []), shown.get("system", []), shown.get("text", "")) == ([], [], "")
        assert shown["history"] == {"anchor_seq": 1, "last_seq": 0, "messages": 0, "last_cut": None}
        assert shown["memo_window"] == {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []}


async def test_an_append_can_return_the_following_context(api: httpx.AsyncClient) -> None:
    answer = await append(api, talk(1, 3), context={"format": "openai", "max_tokens": 4_000})
    assert answer["context"] == await context(api, format="openai", max_tokens=4_000)
    assert "context_problem" not in answer
    assert "context" not in await append(api, talk(1, 3), status=200)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"max_tokens": 1}, 422, "budget_too_small"),
        ({"line": "00000000-0000-0000-0000-000000000000"}, 404, "line_not_found"),
    ],
)
async def test_an_append_succeeds_even_if_its_context_fails(
    api: httpx.AsyncClient, options: Json, status: int, code: str
) -> None:
    answer = await append(api, talk(1, 3), context=options)
    assert (answer["created"], answer["context"]) == (3, None)
    assert (answer["context_problem"]["status"], answer["context_problem"]["code"]) == (status, code)
    assert len((await get(api, "/messages"))["items"]) == 3


async def test_timestamps_are_in_the_chats_time_zone(api: httpx.AsyncClient) -> None:
    await put(api, time_zone="Asia/Tokyo", settings={"timestamps": "inline", "time": True, "instruction": ""})
    await append(api, [said(1, name="Sakura", content="Hi.", sent_at="2026-04-01T13:15:00Z")])
    shown = await context(api, format="openai", now="2026-04-01T15:30:00Z")
    assert [one["content"] for one in shown["messages"]] == [
        "It is Thursday, 02 April 2026, 00:30.",
        "[04/01 22:15] Sakura: Hi.",
    ]


async def test_reading_a_context_changes_nothing(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await append(api, talk(1, 33))
    before = await _versions(database, tenant)
    for name in FORMATS:
        await context(api, format=name, draft="Hm?", max_tokens=500)
    assert await _versions(database, tenant) == before


async def test_a_context_is_one_statement_and_no_transaction(
    app: FastAPI, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 41)
    await context(api)
    async with watched(app.state.database) as statements:
        await context(api, format="anthropic", draft="Hm?", max_tokens=500)
    assert (len(statements.asked), statements.frame) == (1, []), statements.asked
    async with watched(app.state.database) as statements:
        await append(api, [said(42)], context={"format": "openai"})
    assert (len(statements.asked), statements.frame) == (4, ["BEGIN", "COMMIT"]), statements.asked


async def test_a_language_model_is_never_asked_on_the_way(app: FastAPI, api: httpx.AsyncClient) -> None:
    assert app.state.settings.llm_base_url is None
    await append(api, talk(1, 40), context={})
    assert (await get(api, ""))["work"]["due"] == 5


async def _versions(database: Database, tenant: str) -> list[Any]:
    """Which versions of its rows a chat has: any update would make another."""
    key = chat_key(tenant, "c")
    async with database.raw() as connection:
        return [
            await connection.fetch(f"SELECT xmin, ctid FROM {table} WHERE {key_column(table)} = $1 ORDER BY 2", key)
            for table in ("chats", "messages", "memos", "work")
        ]


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_call_without_a_result_is_not_sent(api: httpx.AsyncClient, format_: str) -> None:
    silent = said(2, content="", tool_calls=[CALL])
    spoken = said(4, content="One moment.", tool_calls=[{**CALL, "id": "other"}])
    await append(api, [said(1), silent, said(3), spoken])
    shown = await context(api, format=format_)
    assert CALL["function"]["name"] not in json.dumps(shown)
    assert "One moment." in json.dumps(shown)
    assert shown["omitted"] == [{"name": "message:m2", "why": "unanswered_call", "tokens": 0}]
    await append(api, [said(5, role="tool", content="Nothing there.", tool_call_id="other")])
    assert CALL["function"]["name"] in json.dumps(await context(api, format=format_))


async def test_a_turn_that_waits_for_a_tool_ends_with_the_user(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), said(2), said(3), said(4, content="", tool_calls=[CALL])])
    shown = await context(api, format="openai")
    assert shown["messages"][-1] == {"role": "user", "content": said(3)["content"]}
    assert shown["segments"][-1]["name"] == "newest"


async def test_a_pinned_message_is_sent_without_its_calls(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), said(2, content="One moment.", tool_calls=[CALL]), *talk(3, 20)])
    await edit(api, "m2", pinned=True)
    await append(api, talk(21, 80))
    pinned = next(part for part in (await context(api))["segments"] if part["name"] == "pinned")
    assert "One moment." in pinned["text"]
    assert CALL["function"]["name"] not in pinned["text"]
