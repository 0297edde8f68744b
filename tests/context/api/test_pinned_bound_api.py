"""A context reads the texts of only those pinned messages that can fit, and no tool calls of pinned messages."""

import httpx
import pytest

from app.context.in_use import in_use
from app.context.queries import EXACT_PINNED_TOKENS, Row, find_context
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from tests.talk import CALL, WAITING_FOR_NOTHING, append, context, edit, put, said

WORDS = "The lamp swings in the old tower, and the keeper has lit it. "
LONG = WORDS * 1_600
"""About 96,000 characters, more than 20,000 tokens."""

COUNT = 40


async def _read(database: Database, tenant: str, max_tokens: int | None = None) -> Row:
    """The row of the statement."""
    async with database.raw() as connection:
        key, queries = chat_key(tenant, "c"), in_use().queries or {}
        row = await find_context(connection, tenant, key, None, queries, max_tokens=max_tokens)
    assert row is not None
    return row


async def _pin_all(api: httpx.AsyncClient, text: str, count: int = COUNT, **settings: object) -> None:
    """The first `count` messages are long, pinned, and out of the history."""
    await put(api, settings={**WAITING_FOR_NOTHING, "history": {"keep_messages": 1, "grow_messages": 0}, **settings})
    await append(api, [said(n, content=f"{n}: {text}") for n in range(1, count + 1)])
    await append(api, [said(n) for n in range(count + 1, count + 17)])
    assert (await context(api))["history"]["anchor_seq"] > count
    for n in range(1, count + 1):
        await edit(api, f"m{n}", pinned=True)


async def test_pinned_messages_that_cannot_fit_are_not_read(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await _pin_all(api, LONG)
    most = EXACT_PINNED_TOKENS // 20_000 + 1
    assert len((await _read(database, tenant))["pinned"]) < (most + 1) * len(LONG)
    assert len((await _read(database, tenant, 2_000_000))["pinned"]) > COUNT * len(LONG)
    problem = await context(api, 422)
    assert problem["code"] == "budget_too_small"
    exact = await context(api, max_tokens=2_000_000)
    assert abs(problem["needed_tokens"] - exact["tokens"]) < 0.02 * exact["tokens"]


@pytest.mark.parametrize("budget", [500, 40_000, 300_000])
async def test_a_bounded_read_does_not_change_what_a_budget_chooses(api: httpx.AsyncClient, budget: int) -> None:
    await _pin_all(api, LONG, pinned={"budget": {"type": "absolute", "value": budget}})
    answer = await context(api, max_tokens=400_000)
    pinned = [one for one in answer["segments"] if one["name"] == "pinned"]
    sources = [source for one in pinned for source in one["sources"]]
    assert sources == [f"message:m{n}" for n in range(COUNT - len(sources) + 1, COUNT + 1)]
    assert len(sources) == budget // count_tokens(LONG)
    over = [one["name"] for one in answer["omitted"] if one["name"].startswith("message:")]
    assert over == [f"message:m{n}" for n in range(1, COUNT - len(sources) + 1)]
    assert "\u2026" not in "".join(one["text"] for one in pinned)


async def test_tool_calls_of_pinned_messages_are_not_read(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await _pin_all(api, "Good night.", count=2)
    call = CALL | {"function": {"name": "look", "arguments": LONG}}
    await append(api, [said(100, role="assistant", content="I look.", tool_calls=[call])])
    await append(api, [said(101, role="tool", content="Fog.", tool_call_id=CALL["id"])])
    await edit(api, "m100", pinned=True)
    await append(api, [said(n) for n in range(102, 122)])
    assert "I look." in (await _read(database, tenant))["pinned"]
    assert len((await _read(database, tenant))["pinned"]) < 2_000


async def test_a_pinned_message_without_text_is_never_listed(api: httpx.AsyncClient) -> None:
    await put(api, settings={**WAITING_FOR_NOTHING, "history": {"keep_messages": 1, "grow_messages": 0}})
    await append(api, [said(2, content="", tool_calls=[CALL])])
    await append(api, [said(n, content=f"{n}: {LONG}") for n in range(3, 9)])
    await append(api, [said(n) for n in range(9, 26)])
    for n in range(2, 9):
        await edit(api, f"m{n}", pinned=True)
    await put(api, status=200, settings={"pinned": {"budget": {"type": "absolute", "value": 30_000}}})
    over = [one["name"] for one in (await context(api))["omitted"]]
    assert over == [f"message:m{n}" for n in range(3, 8)]
