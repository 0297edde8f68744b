"""Pinned messages over HTTP: which of them are in the context, when, and their cost."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from tests.conftest import NOON
from tests.context.api.chats import CHAT
from tests.statements import watched
from tests.talk import FORMATS, WAITING_FOR_NOTHING, Json, append, context, get, ok, put, said, talk, talk_with_memos

HEADING = "## Pinned Messages"


async def pin(api: httpx.AsyncClient, *numbers: int, pinned: bool = True) -> None:
    """Pin the nth messages of the conversation, in this order, or unpin them."""
    for n in numbers:
        ok(await api.patch(f"/v1/chats/c/messages/m{n}", json={"pinned": pinned}), 200)


async def mark(database: Database, tenant: str, n: int, **values: Any) -> None:
    """Mark the nth message behind the service's back."""
    names = ", ".join(f"{name} = ${at}" for at, name in enumerate(values, 3))
    async with database.raw() as connection:
        await connection.execute(
            f"UPDATE messages SET {names} WHERE chat_key = $1 AND seq = $2",
            chat_key(tenant, "c"),
            n,
            *values.values(),
        )


async def cut_at_17(api: httpx.AsyncClient, **settings: Any) -> None:
    """33 messages without memos, of which the history begins at the 17th."""
    await put(api, settings=WAITING_FOR_NOTHING | settings)
    await append(api, talk(1, 33))
    assert (await context(api))["history"]["anchor_seq"] == 17


def segment(shown: Json) -> Json | None:
    """The segment `pinned` of a context, if there is one."""
    return next((part for part in shown["segments"] if part["name"] == "pinned"), None)


def sources(shown: Json) -> list[str]:
    """What the segment was made of."""
    found = segment(shown)
    return found["sources"] if found else []


def layout(*numbers: int) -> str:
    """The segment's text for the nth messages."""
    who = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join([HEADING, *(f"{who[one['role']]}: {one['content']}" for one in map(said, numbers))])


async def test_a_pinned_message_moves_before_the_history_at_a_cut(api: httpx.AsyncClient) -> None:
    await put(api, settings=WAITING_FOR_NOTHING)
    await append(api, talk(1, 32))
    await pin(api, 3, 17)
    before = await context(api)
    assert (segment(before), before["history"]["anchor_seq"]) == (None, 1)
    await append(api, [said(33)])
    after = await context(api)
    assert after["history"]["anchor_seq"] == 17
    assert segment(after) == {
        "name": "pinned",
        "role": "system",
        "text": layout(3),
        "tokens": count_tokens(layout(3)),
        "cacheable": True,
        "sources": ["message:m3"],
    }
    await pin(api, 3, pinned=False)
    assert segment(await context(api)) is None


async def test_pinned_messages_ignore_the_order_of_pinning(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, **CHAT, settings={"time": True})
    await talk_with_memos(api, dispatcher, clock, 33)
    await pin(api, 12, 4, 9)
    shown = await context(api)
    names = [part["name"] for part in shown["segments"]]
    assert names == ["system", "character", "user", "instruction", "pinned", "memos", "history", "time", "newest"]
    assert sources(shown) == ["message:m4", "message:m9", "message:m12"]
    assert (segment(shown) or {})["text"] == layout(4, 9, 12).replace("Assistant: ", "Kai: ")


async def test_a_pinned_message_appears_once_and_keeps_its_memo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 33)
    without = await context(api, format="text")
    await pin(api, 3, 20)
    shown = await context(api, format="text")
    assert [shown["text"].count(said(n)["content"]) for n in (3, 20)] == [1, 1]
    assert shown["memo_window"] == without["memo_window"]


async def test_pinned_messages_have_times_if_the_history_has(api: httpx.AsyncClient) -> None:
    await put(api, time_zone="Asia/Tokyo", settings={**WAITING_FOR_NOTHING, "timestamps": "inline"})
    first = said(1, name="Sakura", content="Hi.", sent_at="2026-04-01T13:15:00Z")
    await append(api, [first, *talk(2, 33)])
    await pin(api, 1)
    assert (segment(await context(api)) or {})["text"] == f"{HEADING}\n\n[04/01 22:15] Sakura: Hi."


async def test_the_instruction_covers_pinned_messages_and_memos(
    api: httpx.AsyncClient,
) -> None:
    await cut_at_17(api)
    told = []
    for step in ("nothing", "pins", "both", "memos"):
        if step == "both":
            ok(await api.post("/v1/chats/c/memos", json={"text": "They met at sea.", "after_seq": 1}), 201)
        elif step != "nothing":
            await pin(api, 3, pinned=step == "pins")
        texts = [part["text"] for part in (await context(api))["segments"] if part["name"] == "instruction"]
        told.append([name for name in ("Memo Book", "Pinned Messages") if f'"{name}" ' in "".join(texts)])
    assert told == [[], ["Pinned Messages"], ["Memo Book", "Pinned Messages"], ["Memo Book"]]


@pytest.mark.parametrize("name", FORMATS)
async def test_every_format_has_pinned_messages_before_the_history(api: httpx.AsyncClient, name: str) -> None:
    await cut_at_17(api, instruction="")
    await pin(api, 3, 5)
    shown = await context(api, format=name)
    assert sources(shown) == ["message:m3", "message:m5"]
    if name == "openai":
        assert shown["messages"][0] == {"role": "system", "content": layout(3, 5)}
    elif name == "anthropic":
        assert [block["text"] for block in shown["system"]] == [layout(3, 5)]
        assert "cache_control" in shown["system"][0], "without memos the mark behind them is on what precedes them"
    elif name == "text":
        assert shown["text"].startswith(layout(3, 5) + "\n\nUser: ")
    else:
        assert shown["segments"][0]["text"] == layout(3, 5)
    whole = shown["tokens"]
    await pin(api, 3, 5, pinned=False)
    assert whole - (await context(api, format=name))["tokens"] == count_tokens(layout(3, 5)) + 4


def _kinds() -> Iterator[dict[str, Any]]:
    """Every way in which a message can be marked."""
    for hidden_by, deleted, kind, blank, excluded in product(
        (None, "user", "scenes"), (None, NOON), (None, "thought"), (False, True), (False, True)
    ):
        yield {
            "hidden_by": hidden_by,
            "deleted_at": deleted,
            "kind": kind,
            "blank": blank,
            "excluded": excluded,
        }


async def test_scenes_but_not_users_can_hide_pinned_messages(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    kinds = list(_kinds())
    edges: Json = {"keep_messages": len(kinds) + 1, "grow_messages": 0, "edges": "every_message"}
    await put(api, settings={**WAITING_FOR_NOTHING, "history": edges})
    await append(api, talk(1, 2 * len(kinds) + 1))
    expected = []
    for n, kind in enumerate([*kinds, *kinds], 1):
        await mark(database, tenant, n, pinned=True, **kind)
        said_out_loud = not kind["deleted_at"] and not kind["kind"] and not kind["blank"]
        out_of_history = n <= len(kinds) or kind["hidden_by"] == "scenes"
        if said_out_loud and out_of_history and kind["hidden_by"] != "user":
            expected.append(f"message:m{n}")
    anchor_seq = (await get(api, ""))["anchor_seq"]
    assert anchor_seq == len(kinds) + 1
    assert len(expected) == 4 + 2, "one side of the anchor shows two that are not hidden and both show two that are"
    shown = await context(api)
    assert sources(shown) == expected
    report = (await get(api, "/inclusion", limit=500))["items"]
    assert [f"message:{one['message_id']}" for one in report if one["status"] == "pinned"] == expected


async def test_a_pinned_message_that_is_hidden_or_deleted_is_omitted(api: httpx.AsyncClient) -> None:
    await cut_at_17(api)
    await pin(api, 3, 5, 7)
    ok(await api.patch("/v1/chats/c/messages/m3", json={"hidden": True}), 200)
    ok(await api.delete("/v1/chats/c/messages/m5"), 204)
    assert sources(await context(api)) == ["message:m7"]
    ok(await api.patch("/v1/chats/c/messages/m3", json={"hidden": False}), 200)
    assert sources(await context(api)) == ["message:m3", "message:m7"]


async def test_another_chats_pinned_messages_are_not_seen(api: httpx.AsyncClient) -> None:
    await cut_at_17(api)
    await put(api, "d", settings=WAITING_FOR_NOTHING)
    await append(api, talk(1, 33), "d")
    ok(await api.patch("/v1/chats/d/messages/m3", json={"pinned": True}), 200)
    assert segment(await context(api)) is None
    assert sources(ok(await api.get("/v1/chats/d/context"), 200)) == ["message:m3"]


async def test_the_pinned_budget_fills_from_the_newest(api: httpx.AsyncClient) -> None:
    await cut_at_17(api)
    await pin(api, 3, 5, 7)
    one = count_tokens(f"User: {said(3)['content']}")
    for value, kept in ((3 * one, (3, 5, 7)), (3 * one - 1, (5, 7)), (2 * one, (5, 7)), (one - 1, ()), (0, ())):
        await put(api, status=200, settings={"pinned": {"budget": {"type": "absolute", "value": value}}})
        shown = await context(api)
        assert sources(shown) == [f"message:m{n}" for n in kept]
        left_out = [n for n in (3, 5, 7) if n not in kept]
        assert shown["omitted"] == [{"name": f"message:m{n}", "why": "budget", "tokens": one} for n in left_out]
    share = {"context_tokens": 100 * one, "pinned": {"budget": {"type": "percent", "value": 1}}}
    await put(api, status=200, settings=share)
    assert sources(await context(api)) == ["message:m7"]


async def test_pinned_messages_are_never_trimmed_for_a_limit(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, **CHAT, settings={"token_factor": 1.35})
    await talk_with_memos(api, dispatcher, clock, 41)
    floor = {name: (await context(api, 422, format=name, max_tokens=1))["needed_tokens"] for name in FORMATS}
    await pin(api, *range(1, 17))
    for name in FORMATS:
        problem = await context(api, 422, format=name, max_tokens=floor[name])
        assert (problem["code"], problem["needed_tokens"] > floor[name] + 100) == ("budget_too_small", True)
        needed = problem["needed_tokens"]
        await context(api, 422, format=name, max_tokens=needed - 1)
        shown = await context(api, format=name, max_tokens=needed)
        assert shown["tokens"] == needed
        assert {part["name"] for part in shown["segments"]} == {
            "system",
            "character",
            "user",
            "instruction",
            "pinned",
            "newest",
        }
        assert sources(shown) == [f"message:m{n}" for n in range(1, 17)]


async def test_a_pinned_message_trimmed_by_a_limit_is_not_added_again(
    api: httpx.AsyncClient,
) -> None:
    await cut_at_17(api)
    await pin(api, 3, 18)
    needed = (await context(api, 422, max_tokens=1))["needed_tokens"]
    shown = await context(api, max_tokens=needed)
    assert shown["history"]["anchor_seq"] == 33
    assert sources(shown) == ["message:m3"]


async def test_a_pin_after_the_cut_changes_the_prefix(api: httpx.AsyncClient) -> None:
    await cut_at_17(api)
    bare = (await context(api))["prefix_hash"]
    await pin(api, 17)
    assert (await context(api))["prefix_hash"] == bare, "it still stands in the history"
    await pin(api, 3)
    one = (await context(api))["prefix_hash"]
    await pin(api, 5)
    two = (await context(api))["prefix_hash"]
    assert len({bare, one, two}) == 3
    await append(api, talk(34, 35))
    assert (await context(api))["prefix_hash"] == two
    await pin(api, 3, 5, pinned=False)
    assert (await context(api))["prefix_hash"] == bare


async def test_a_context_with_pinned_messages_is_one_statement_too(app: FastAPI, api: httpx.AsyncClient) -> None:
    await cut_at_17(api)
    await pin(api, 3, 5)
    await context(api)
    async with watched(app.state.database) as statements:
        shown = await context(api, format="anthropic", draft="Hm?")
    assert sources(shown) == ["message:m3", "message:m5"]
    assert (len(statements.asked), statements.frame) == (1, []), statements.asked


async def test_the_report_says_which_pinned_messages_are_included(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await put(api, settings={"memos": {"window": 1}})
    await talk_with_memos(api, dispatcher, clock, 33)
    await pin(api, 1, 2, 9, 10, 18)
    await mark(database, tenant, 11, hidden_by="scenes")
    one = count_tokens(f"User: {said(9)['content']}")
    for value, statuses in (
        (9 * one, ["pinned", "pinned", "pinned", "pinned"]),
        (2 * one, ["out_of_budget", "out_of_budget", "pinned", "pinned"]),
        (0, ["out_of_budget", "out_of_budget", "memo", "memo"]),
    ):
        await put(api, status=200, settings={"pinned": {"budget": {"type": "absolute", "value": value}}})
        report = await _report(api)
        assert [report[n][0] for n in (1, 2, 9, 10)] == statuses
        assert [report[n][1] is None for n in (1, 2)] == [True, True], "an expired memo stands for nothing"
        assert (report[3][0], report[11][0], report[18][0]) == ("expired", "memo", "verbatim")
    assert {report[n][1] for n in (9, 10, 11, 12)} == {f"memo:{(await get(api, '/memos'))['items'][1]['id']}"}


async def test_a_page_reports_pins_by_the_whole_chat(api: httpx.AsyncClient) -> None:
    one = count_tokens(f"User: {said(3)['content']}")
    await cut_at_17(api, pinned={"budget": {"type": "absolute", "value": 2 * one}})
    await pin(api, 3, 5, 7, 9)
    whole = (await get(api, "/inclusion", limit=500))["items"]
    assert [(item["seq"], item["by"]) for item in whole if item["status"] == "pinned"] == [(7, None), (9, None)]
    assert [item["seq"] for item in whole if item["status"] == "out_of_budget"] == [3, 5]
    pages = [(await get(api, "/inclusion", after_seq=seq, limit=4))["items"] for seq in (0, 4, 8)]
    assert [item for page in pages for item in page] == whole[:12]


async def _report(api: httpx.AsyncClient) -> dict[int, tuple[str, str | None]]:
    items = (await get(api, "/inclusion", limit=500))["items"]
    return {one["seq"]: (one["status"], one["by"]) for one in items}
