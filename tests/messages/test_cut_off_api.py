"""Truncation: messages are removed, the open batch is recounted, and the anchor may go back."""

import asyncio
from typing import Any

import httpx
import pytest

from app.context.in_use import in_use
from app.context.queries import write_statement
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key, tenant_key
from tests.background import settle
from tests.book import book, due_rows, shown
from tests.chats.rich import rows, rows_of, without_revisions
from tests.plans import fetch_plan, list_scans
from tests.scripted_model import ScriptedModel
from tests.summarising.quoted import quoted_in
from tests.talk import (
    CALL,
    Json,
    append,
    context,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    said,
    soft_delete,
    talk,
    talk_with_memos,
)

COUNTED = ("message_count", "turn_count", "token_count", "history_messages", "awaits_reply")


async def batches(api: httpx.AsyncClient) -> list[tuple[int, int]]:
    """The ranges of the memos that have one."""
    return [(memo["first_seq"], memo["last_seq"]) for memo in await book(api) if memo["first_seq"] is not None]


async def history(api: httpx.AsyncClient) -> tuple[int, int, str | None]:
    """Where the history begins, how many messages it sends, and why it was cut there."""
    found = (await context(api))["history"]
    return found["anchor_seq"], found["messages"], (found["last_cut"] or {}).get("reason")


def asked_about(model: ScriptedModel) -> list[int]:
    """Which messages of the conversation the model was shown last."""
    told = str(quoted_in(model.requests[-1]["messages"][-1]["content"], "messages"))
    return [n for n in range(1, 100) if f"number {n}." in told]


# --- the history goes back ---


async def test_the_anchor_stays_while_enough_messages_are_left(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await talk_with_memos(api, dispatcher, clock, 33)
    before = (await context(api))["history"]
    assert (before["anchor_seq"], before["messages"]) == (17, 17)
    await soft_delete(api, "m20")
    after = (await context(api))["history"]
    assert (after["anchor_seq"], after["messages"], after["last_cut"]) == (17, 16, before["last_cut"])
    await hide(api, (1, 16))
    await soft_delete(api, "m1", "m16")
    assert (await context(api))["history"] == after, "what is before the anchor is not in the history"
    assert [chat["history_messages"] for chat in (await rows(database, tenant))["chats"]] == [16]
    await edit(api, "m21", content="Otherwise.", excluded=True, pinned=True)
    await hide(api, (1, 16), hidden=False)
    assert (await context(api))["history"] == after


TAKEN: dict[str, Any] = {
    "deleted": lambda api: soft_delete(api, "m32", "m33"),
    "hidden": lambda api: hide(api, (32, 33)),
    "hidden one by one": lambda api: _each(api, hidden=True),
    "made blank": lambda api: _each(api, content=" "),
    "cut off": lambda api: cut_off(api, 32),
}


async def _each(api: httpx.AsyncClient, **change: Any) -> None:
    for name in ("m32", "m33"):
        await edit(api, name, **change)


@pytest.mark.parametrize("way", TAKEN)
@pytest.mark.parametrize("preset", ["memo", "agent"])
async def test_with_too_few_messages_the_anchor_goes_back_to_an_edge(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, preset: str, way: str
) -> None:
    await put(api, settings={"preset": preset})
    await talk_with_memos(api, dispatcher, clock, 33)
    assert await history(api) == (17, 17, "full")
    await TAKEN[way](api)
    # Of 1…31 the sixteenth from the end is 16, and the newest edge that is not after it is 9.
    assert await history(api) == (9, 23, "rewind")
    assert (await context(api))["history"]["last_cut"] == {
        "at_seq": 9,
        "reason": "rewind",
        "at": clock().isoformat(),
    }
    if preset == "memo":
        assert (await context(api))["memo_window"] == {"memos": 1, "first_seq": 1, "last_seq": 8, "gaps": []}
    shown_texts = str((await context(api))["segments"])
    assert [n for n in range(9, 34) if f"number {n}." in shown_texts] == list(range(9, 32))


async def test_with_an_edge_at_each_message_only_missing_ones_return(api: httpx.AsyncClient) -> None:
    await put(api, settings={"preset": "decay", "consolidation": {"enabled": False}, "history": {"grow_messages": 0}})
    await append(api, talk(1, 30))
    assert (await history(api))[:2] == (11, 20)
    await soft_delete(api, "m20")
    assert await history(api) == (10, 20, "rewind")
    await hide(api, (8, 9), (25, 26))
    assert await history(api) == (6, 20, "rewind"), "what is hidden before the anchor is passed over"
    await hide(api, (8, 9), (25, 26), hidden=False)
    assert await history(api) == (6, 24, "rewind"), "it goes forward with an append alone"
    await append(api, [said(31)])
    assert (await history(api))[:2] == (11, 20)


async def test_the_anchor_never_goes_back_before_the_first_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 33)
    await cut_off(api, 10)
    assert await history(api) == (1, 9, "rewind")
    cut = (await context(api))["history"]["last_cut"]
    clock.step(60)
    await soft_delete(api, "m1")
    await hide(api, (2, 8))
    assert await history(api) == (9, 1, "rewind"), "9 is the first that can be sent"
    assert (await get(api, ""))["anchor_seq"] == 1
    assert (await context(api))["history"]["last_cut"] == cut, "from the first message there is no way back"


async def test_the_anchor_goes_back_to_the_next_edge_however_far(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    # So many more messages than are kept lie between two edges that they are not all read at once.
    history_settings = {"keep_messages": 1, "grow_messages": 0}
    await put(api, settings={"history": history_settings, "memos": {"every_messages": 64}})
    await append(api, talk(1, 128))
    await settle(dispatcher, clock)
    await append(api, talk(129, 130))
    assert (await history(api))[:2] == (129, 2)
    await soft_delete(api, "m129", "m130")
    assert await history(api) == (65, 64, "rewind")
    await cut_off(api, 70)
    assert (await history(api))[:2] == (65, 5)
    await hide(api, (65, 69))
    assert await history(api) == (1, 64, "rewind")


@pytest.mark.parametrize("gap", [0, 1])
async def test_the_anchor_never_separates_a_call_from_its_result(api: httpx.AsyncClient, gap: int) -> None:
    history_settings = {"keep_messages": 4, "grow_messages": 0, "edges": "every_message"}
    await put(api, settings={"history": history_settings, "memos": {"enabled": False}})
    call = {"id": "call", "role": "assistant", "content": "Let me look.", "tool_calls": [CALL]}
    result = {"id": "result", "role": "tool", "content": "Waves.", "tool_call_id": "call-1"}
    between = [said(50, id=f"between{n}") for n in range(gap)]
    await append(api, [said(1), call, *between, result, *talk(4, 6), said(7)])
    result_seq = 3 + gap
    assert await history(api) == (result_seq + 1, 4, "full")
    await soft_delete(api, "m7")
    assert await history(api) == (2, 5 + gap, "rewind"), "the call is the next place that leaves four"
    sources = [source for part in (await context(api))["segments"] for source in part["sources"]]
    between_sources = [f"message:{message['id']}" for message in between]
    assert sources == ["message:call", *between_sources, "message:result", "message:m4", "message:m5", "message:m6"]


async def test_a_memo_leaves_the_prompt_until_the_next_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 33)
    assert await shown(api) == [1, 2]
    await soft_delete(api, "m32", "m33")
    assert await shown(api) == [1]
    await append(api, talk(34, 42))
    assert await history(api) == (9, 32, "rewind")
    await append(api, [said(43)])
    assert await history(api) == (25, 17, "full")
    assert await shown(api) == [1, 2, 3]


# --- cut off ---


async def test_truncated_batches_lose_their_work_and_one_refills(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 40))
    wish = {"instruction": "Name the lamp."}
    ok(await api.post(f"/v1/chats/c/memos/{(await book(api))[3]['id']}/regenerate", json=wish), 202)
    assert len(await due_rows(database, tenant)) == 5
    await cut_off(api, 21)
    assert await batches(api) == [(1, 8), (9, 16)]
    assert [row["at_seq"] for row in await due_rows(database, tenant)] == [1, 9]
    assert await settle(dispatcher, clock) == 2
    assert [one["seq"] for one in (await get(api, "/messages"))["items"]] == list(range(1, 21))
    assert (await get(api, "/messages/m20"))["memo_id"] is None

    added = await append(api, talk(41, 43))
    assert [one["seq"] for one in added["messages"]] == [41, 42, 43], "no seq is used again"
    assert await batches(api) == [(1, 8), (9, 16)]
    await append(api, [said(44)])
    assert await batches(api) == [(1, 8), (9, 16), (17, 44)]
    assert (await book(api))[2]["first_message_id"] == "m17"
    assert await settle(dispatcher, clock) == 1
    assert asked_about(model) == [17, 18, 19, 20, 41, 42, 43, 44]
    assert (await get(api, "/messages/m17"))["memo_id"] == (await book(api))[2]["id"]


async def test_a_batch_that_fills_again_counts_what_is_eligible_of_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 40))
    await settle(dispatcher, clock)
    await soft_delete(api, "m17")
    await edit(api, "m18", hidden=True)
    await edit(api, "m19", excluded=True)
    await cut_off(api, 22)
    await append(api, talk(41, 45))  # with 20 and 21 these are seven
    assert await batches(api) == [(1, 8), (9, 16)]
    await append(api, [said(46)])
    assert await batches(api) == [(1, 8), (9, 16), (17, 46)]
    assert (await book(api))[2]["first_message_id"] == "m20"
    await settle(dispatcher, clock)
    assert asked_about(model) == [20, 21, *range(41, 47)]


async def test_a_reopened_batch_keeps_its_first_settings(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 16))
    await put(api, status=200, settings={"memos": {"every_messages": 4}})
    await append(api, talk(17, 24))
    assert await batches(api) == [(1, 8), (9, 16), (17, 20), (21, 24)]
    await cut_off(api, 11)
    await append(api, talk(25, 29))
    assert await batches(api) == [(1, 8)]
    await append(api, talk(30, 34))
    assert await batches(api) == [(1, 8), (9, 30), (31, 34)]


@pytest.mark.parametrize(("from_seq", "left"), [(17, [(1, 8), (9, 16)]), (15, [(1, 8)]), (18, [(1, 8), (9, 16)])])
async def test_only_a_cut_through_a_batch_reopens_it(
    api: httpx.AsyncClient, from_seq: int, left: list[tuple[int, int]]
) -> None:
    await append(api, talk(1, 22))
    await cut_off(api, from_seq)
    assert await batches(api) == left
    missing = 8 * (len(left) + 1) - (from_seq - 1)
    await append(api, talk(23, 22 + missing - 1))
    assert await batches(api) == left
    await append(api, [said(22 + missing)])
    assert await batches(api) == [*left, (8 * len(left) + 1, 22 + missing)]


async def test_personal_texts_move_to_the_new_head_and_stay_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    made = await book(api)
    path = "/v1/chats/c/memos"
    early = ok(await api.post(path, json={"text": "They met at sea.", "after_seq": 5}), 201)
    late = ok(await api.post(path, json={"text": "She kept the key.", "after_seq": 30}), 201)
    pinned = ok(await api.post(path, json={"text": "He lied.", "after_seq": 40}), 201)
    pinned = ok(await api.patch(f"{path}/{pinned['id']}", json={"pinned": True}), 200)
    kept = ok(await api.patch(f"{path}/{made[1]['id']}", json={"text": "Batch two."}), 200)
    through = ok(await api.patch(f"{path}/{made[2]['id']}", json={"text": "Batch three."}), 200)
    behind = ok(await api.patch(f"{path}/{made[3]['id']}", json={"text": "Batch four.", "pinned": True}), 200)
    ok(await api.patch(f"{path}/{made[4]['id']}", json={"pinned": True}), 200)  # it still covers truncated messages

    await cut_off(api, 21)
    of_nothing = {"first_seq": None, "last_seq": None, "first_message_id": None, "origin": "person", "stale": False}
    found = {memo["id"]: memo for memo in await book(api)}
    assert found[early["id"]] == early
    assert found[kept["id"]]["first_seq"] == 9
    for memo in (late, pinned):
        assert found[memo["id"]] == memo | {"after_seq": 20, "in_prompt": True}
    for memo in (through, behind):
        assert found[memo["id"]] == memo | of_nothing | {"after_seq": 20, "in_prompt": True}
    assert set(found) == {memo["id"] for memo in (made[0], early, kept, through, behind, late, pinned)}
    order = [memo["number"] for memo in await book(api)]
    assert order == [1, early["number"], 2, 3, 4, late["number"], pinned["number"]]
    told = str((await context(api))["segments"])
    for text in ("They met at sea.", "She kept the key.", "He lied.", "Batch three.", "Batch four."):
        assert text in told
    refused = ok(await api.post(f"{path}/{through['id']}/regenerate", json={"replace_edited": True}), 409)
    assert refused["code"] == "memo_without_messages"


async def test_deleted_memos_do_not_return_after_a_truncation(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await talk_with_memos(api, dispatcher, clock, 24)
    path = "/v1/chats/c/memos"
    own = ok(await api.post(path, json={"text": "She kept the key."}), 201)
    ok(await api.delete(f"{path}/{own['id']}"), 204)
    edited = (await book(api))[2]
    ok(await api.patch(f"{path}/{edited['id']}", json={"text": "Batch three."}), 200)
    ok(await api.delete(f"{path}/{edited['id']}"), 204)
    await cut_off(api, 13)
    assert await batches(api) == [(1, 8)]
    assert len(await book(api)) == 1
    kept = [(row["first_seq"], row["text"]) for row in (await rows(database, tenant))["memos"] if row["deleted_at"]]
    assert kept == [(None, "She kept the key.")], "of a batch that is gone not even a tombstone is left"


async def test_a_memo_of_a_truncated_batch_is_not_written(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 24))
    clock.step(2)
    gate = model.hold(3)
    making = asyncio.create_task(dispatcher.drain())
    await gate.reached(3)
    await cut_off(api, 13)
    gate.release()
    await making
    (memo,) = await book(api)
    assert (memo["first_seq"], memo["last_seq"], memo["status"]) == (1, 8, "ready")
    assert len((await rows(database, tenant))["memos"]) == 1
    assert await due_rows(database, tenant) == []


async def test_cutting_off_again_changes_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    await cut_off(api, 21)
    before = without_revisions(await rows(database, tenant))
    clock.step(60)
    for from_seq in (21, 22, 40):
        await cut_off(api, from_seq)
        assert without_revisions(await rows(database, tenant)) == before


@pytest.mark.parametrize("from_seq", [41, 1_000, 2**31 - 1])
async def test_a_truncation_after_the_head_changes_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str, from_seq: int
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    before = await rows(database, tenant)
    await cut_off(api, from_seq)
    assert await rows(database, tenant) == before


async def test_a_chat_truncated_from_seq_1_continues_like_a_new_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    await cut_off(api, 1)
    assert ((await get(api, "/messages"))["items"], await book(api), await due_rows(database, tenant)) == ([], [], [])
    counters = (await get(api, ""))["counters"]
    assert (counters["messages"], counters["turns"], counters["tokens"]) == (0, 0, 0)
    emptied = await context(api)
    assert (emptied["segments"], emptied["tokens"], emptied["history"]["messages"]) == ([], 0, 0)
    assert emptied["memo_window"] == {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []}

    assert (await append(api, [said(1)], status=200))["created"] == 0, "its ids are not free"
    added = await append(api, talk(41, 48))
    assert [one["seq"] for one in added["messages"]] == list(range(41, 49))
    assert [last for _, last in await batches(api)] == [48]
    assert await settle(dispatcher, clock) == 1
    assert (await history(api))[1] == 8
    counters = (await get(api, ""))["counters"]
    assert (counters["messages"], counters["turns"]) == (8, 4)


STORY: list[Json] = [
    {"role": "assistant", "content": "You are late."},
    {"role": "user", "content": "The tide was early."},
    {"role": "assistant", "content": "She must not know.", "kind": "thought"},
    {"role": "narrator", "content": "It rains."},
    {"role": "assistant", "content": "Then wait with me."},
    {"role": "user", "content": "And the lamp?"},
    {"role": "system", "content": "A note."},
    {"role": "user", "content": "Light it."},
    {"role": "assistant", "content": "In a moment."},
]


@pytest.mark.parametrize("from_seq", range(2, 10))
async def test_truncated_messages_are_not_counted(
    api: httpx.AsyncClient, database: Database, tenant: str, from_seq: int
) -> None:
    await append(api, STORY)
    await cut_off(api, from_seq)
    await append(api, STORY[: from_seq - 1], "d")
    for more in ([], [said(100)], [said(101), said(102)]):
        counted = []
        for name in ("c", "d"):
            if more:
                await append(api, more, name)
            (chat,) = (await rows_of(database, chat_key(tenant, name)))["chats"]
            counted.append([chat[column] for column in COUNTED])
        assert counted[0] == counted[1], more


@pytest.mark.parametrize("query", [{}, {"from_seq": 0}, {"from_seq": -1}, {"from_seq": 2**31}, {"from_seq": "x"}])
async def test_an_invalid_truncation_is_refused_and_changes_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str, query: Json
) -> None:
    await append(api, talk(1, 8))
    before = await rows(database, tenant)
    problem = ok(await api.delete("/v1/chats/c/messages", params=query), 422)
    assert problem["errors"][0]["loc"] == ["query", "from_seq"]
    assert await rows(database, tenant) == before
    unknown = ok(await api.delete("/v1/chats/d/messages", params={"from_seq": 1}), 404)
    assert unknown["code"] == "chat_not_found"


# --- the batch that fills ---


@pytest.mark.parametrize("way", [{"hidden": True}, {"excluded": True}, {"content": " "}], ids=str)
async def test_a_batch_forms_at_its_eighth_currently_eligible_message(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, way: Json
) -> None:
    await append(api, talk(1, 6))
    await edit(api, "m2", **way)
    await edit(api, "m3", **way)
    await append(api, talk(7, 9))
    assert await batches(api) == []
    await append(api, talk(10, 11))
    assert await batches(api) == [(1, 10)]
    await settle(dispatcher, clock)
    assert asked_about(model) == [1, *range(4, 11)]


async def test_deleted_messages_fill_no_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 7))
    await soft_delete(api, "m1", "m7")
    await append(api, talk(8, 9))
    assert await batches(api) == []
    await append(api, [said(10)])
    assert await batches(api) == [(1, 10)]
    assert (await book(api))[0]["first_message_id"] == "m2"
    await settle(dispatcher, clock)
    assert asked_about(model) == [2, 3, 4, 5, 6, 8, 9, 10]


async def test_the_next_append_forms_batches_of_exactly_eight(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 7))
    await hide(api, (1, 7))
    await append(api, talk(8, 14))
    await hide(api, (8, 14))
    await append(api, talk(15, 19))
    assert await batches(api) == []
    await hide(api, (1, 14), hidden=False)
    assert await batches(api) == [], "a batch is formed in an append"
    assert await due_rows(database, tenant) == []
    await append(api, [said(20)])
    assert await batches(api) == [(1, 8), (9, 16)]
    await append(api, talk(21, 24))
    assert await batches(api) == [(1, 8), (9, 16), (17, 24)]
    await settle(dispatcher, clock)
    asked = [str(quoted_in(request["messages"][-1]["content"], "messages")) for request in model.requests]
    told = sorted([n for n in range(1, 25) if f"number {n}." in one] for one in asked)
    assert told == [list(range(1, 9)), list(range(9, 17)), list(range(17, 25))]


async def test_the_cut_end_of_an_open_batch_is_not_counted(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 15))
    await hide(api, (10, 10))
    await cut_off(api, 13)  # 9, 11 and 12 are left
    await append(api, talk(16, 19))
    assert await batches(api) == [(1, 8)]
    await append(api, [said(20)])
    assert await batches(api) == [(1, 8), (9, 20)]


async def test_an_edit_that_removes_nothing_keeps_the_anchor(api: httpx.AsyncClient) -> None:
    await put(api, settings={"preset": "agent"})
    await append(api, talk(1, 64))
    before = (await context(api))["history"]
    assert before["anchor_seq"] > 17
    await put(api, status=200, settings={"history": {"keep_messages": 48}})
    await edit(api, "m64", content="With a comma, now.")
    assert (await context(api))["history"] == before
    await hide(api, (63, 63))
    assert (await context(api))["history"]["last_cut"]["reason"] == "rewind"


async def test_a_context_does_not_scan_truncated_or_hidden_messages(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings={"memos": {"enabled": False}})
    for first in (1, 1_001, 2_001):
        await append(api, talk(first, first + 999))
    await cut_off(api, 2_001)
    await hide(api, (31, 2_000))
    assert (await context(api))["history"]["messages"] == 22
    async with database.raw() as connection:
        statement = write_statement(tuple((in_use().queries or {}).items()), of_current=True)
        plan = await fetch_plan(connection, statement, chat_key(tenant, "c"), tenant_key(tenant), None)
    scans = list_scans(plan, "messages")
    assert "ix_messages_sent" in {node.get("Index Name") for node in scans}
    assert max(node.get("Rows Removed by Filter", 0) for node in scans) <= 30
