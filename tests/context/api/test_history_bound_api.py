"""A context reads the texts of only those messages that can fit its budget."""

from datetime import UTC, datetime

import httpx
import pytest

from app.chats.chat_lock import ChatRef
from app.context.errors import BudgetTooSmall
from app.context.in_use import in_use
from app.context.queries import Row, find_context
from app.context.schemas import MAX_TOKENS, ContextOptions
from app.context.segments import Format
from app.context.service import assemble_row
from app.kit.db import Database
from app.kit.ids import chat_key
from app.registry import LAYERS
from tests.talk import CALL, Json, append, context, put, said

NOW = datetime(2026, 4, 1, tzinfo=UTC)
WORDS = "The lamp swings in the old tower, and nobody has lit it. "
LONG = WORDS * 1_700  # about 97,000 characters


async def _read(database: Database, tenant: str, max_tokens: int | None) -> Row:
    """The row of the statement."""
    queries = in_use().queries or {}
    async with database.raw() as connection:
        row = await find_context(connection, tenant, chat_key(tenant, "c"), None, queries, max_tokens=max_tokens)
    assert row is not None
    return row


def _assemble(tenant: str, row: Row, options: ContextOptions) -> tuple[Json, int]:
    """The context, or why it does not fit, and the tokens of the history that it omits."""
    ref = ChatRef(tenant, "c", chat_key(tenant, "c"))
    try:
        answer = assemble_row(ref, row, options, LAYERS, own=(), now=NOW)
    except BudgetTooSmall as error:
        return error.extra, 0
    omitted = {one.name: one.tokens for one in answer["omitted"]}
    return answer | {"omitted": list(omitted)}, omitted.get("history", 0)


async def test_messages_that_cannot_fit_are_not_read(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await put(api, settings={"history": {"max_messages": 10_000, "keep_messages": 40}, "memos": {"enabled": False}})
    await append(api, [said(n, content=LONG) for n in range(1, 41)])
    answer = await context(api)
    assert answer["history"]["messages"] == 1
    assert len((await _read(database, tenant, None))["history"]) < 4 * len(LONG)
    assert len((await _read(database, tenant, 1_000))["history"]) < 2 * len(LONG)
    assert len((await _read(database, tenant, MAX_TOKENS))["history"]) > 40 * len(LONG)


async def test_a_message_is_read_if_a_newer_one_is_shortened(api: httpx.AsyncClient) -> None:
    await put(api, settings={"history": {"keep_messages": 40}})
    old = said(1, content=" ".join(["lamp"] * 3_000))
    await append(api, [old, said(2, content="Good night." + " \n" * 8_000), said(3, content="And then?")])
    answer = await context(api, format="anthropic", max_tokens=3_500)
    texts = [block["text"] for message in answer["messages"] for block in message["content"]]
    assert texts == [old["content"], "Good night.", "And then?"]


@pytest.mark.parametrize("timestamps", ["off", "inline"])
@pytest.mark.parametrize("wire_format", ["segments", "openai", "anthropic", "text"])
async def test_contexts_are_as_if_all_was_read(
    api: httpx.AsyncClient, database: Database, tenant: str, timestamps: str, wire_format: Format
) -> None:
    settings = {"history": {"keep_messages": 40, "edges": "every_8"}, "token_factor": 1.35, "timestamps": timestamps}
    await put(api, settings=settings, system_prompt="Be kind.")
    talk = [said(n, name="Mira" if n % 3 else None, content=WORDS * (n % 5 + 1)) for n in range(1, 31)]
    talk[5] = said(6, role="assistant", content="", tool_calls=[CALL | {"id": "unanswered"}])
    talk[9] = said(10, role="assistant", content="", tool_calls=[CALL])
    talk[10] = said(11, role="tool", content=WORDS * 9, tool_call_id=CALL["id"])
    talk[14] = said(15, content="   ")
    await append(api, talk)
    whole = await _read(database, tenant, MAX_TOKENS)
    unread = 0
    for max_tokens in range(20, 1_800, 45):
        row = await _read(database, tenant, max_tokens)
        unread += len(row["history"]) < len(whole["history"])
        for draft in (None, "And now?"):
            options = ContextOptions(format=wire_format, max_tokens=max_tokens, draft=draft)
            expected, expected_tokens = _assemble(tenant, whole, options)
            found, found_tokens = _assemble(tenant, row, options)
            assert found == expected
            assert abs(found_tokens - expected_tokens) <= 30, "at most one token for each message"
    assert unread > 20
