"""Where the history begins, over HTTP: it grows, is cut at once, and the memos enter with the cut."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import orjson
import pytest

from app.chats.chat_lock import ChatRef, lock_head
from app.dispatcher import Dispatcher
from app.kit.auth import Caller
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.memos.handlers import read_window
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import CALL, Json, append, context, get, ok, put, said, talk

Settle = Callable[[], Awaitable[None]]


@pytest.fixture
def settle(dispatcher: Dispatcher, clock: SteppedClock) -> Settle:
    """Wait until what was appended has settled, and make what is due."""

    async def settled() -> None:
        clock.step(2)
        await dispatcher.drain()

    return settled


async def test_the_prefix_changes_with_a_cut_and_never_else(api: httpx.AsyncClient, settle: Settle) -> None:
    await put(api, system_prompt="You are Kai.")
    changed, anchors, former = [], [], ""
    for n in range(1, 82):
        shown = (await append(api, [said(n)], context={"format": "anthropic"}))["context"]
        assert shown == await context(api, format="anthropic"), "two reads are equal"
        if shown["prefix_hash"] != former:
            changed.append(n)
            anchors.append(shown["history"]["anchor_seq"])
        former = shown["prefix_hash"]
        await settle()
    # 16 stay and 16 more may gather; then it goes back to the newest end of a batch that leaves 16.
    assert (changed, anchors) == ([1, 33, 49, 65, 81], [1, 17, 33, 49, 65])
    shown = await context(api)
    assert shown["history"]["last_cut"] == {"at_seq": 65, "reason": "full", "at": "2026-04-01T12:02:40+00:00"}
    assert shown["memo_window"] == {"memos": 8, "first_seq": 1, "last_seq": 64, "gaps": []}


async def test_memos_and_history_change_together(api: httpx.AsyncClient, settle: Settle) -> None:
    await append(api, talk(1, 32))
    await settle()
    assert {memo["status"] for memo in (await get(api, "/memos"))["items"]} == {"ready"}
    assert (await context(api))["memo_window"]["memos"] == 0, "all of their messages are still in the history"
    await append(api, [said(33)])
    shown = await context(api)
    assert (shown["history"]["anchor_seq"], shown["history"]["messages"]) == (17, 17)
    assert shown["memo_window"] == {"memos": 2, "first_seq": 1, "last_seq": 16, "gaps": []}


async def test_a_full_cut_waits_for_the_memos_of_the_old_messages(
    api: httpx.AsyncClient, settle: Settle, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = refuses(500)
    await append(api, talk(1, 33))
    await settle()
    await append(api, [said(34)])
    waiting = await context(api)
    assert (waiting["history"]["anchor_seq"], waiting["history"]["last_cut"]) == (1, None)

    model.otherwise = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."
    await settle()
    shown = await context(api)
    assert shown["history"]["last_cut"] == {"at_seq": 17, "reason": "full", "at": clock().isoformat()}
    assert (shown["history"]["messages"], shown["memo_window"]["memos"]) == (18, 2)


async def test_empty_deleted_or_failed_memos_do_not_delay_a_cut(
    api: httpx.AsyncClient, settle: Settle, model: ScriptedModel, clock: SteppedClock
) -> None:
    def answer(request: Json) -> Any:
        asked = str(request["messages"][-1])
        return "NONE" if "number 1." in asked else refuses(400)

    model.otherwise = answer
    await append(api, talk(1, 33))
    memos = (await get(api, "/memos"))["items"]
    ok(await api.delete(f"/v1/chats/c/memos/{memos[2]['id']}"), 204)
    for _ in range(6):  # the last of the growing waits is an hour
        assert (await context(api))["history"]["anchor_seq"] == 1
        clock.step(3_600)
        await settle()
    memos = (await get(api, "/memos"))["items"]
    assert [memo["status"] for memo in memos] == ["empty", "failed", "failed"]
    shown = await context(api)
    assert (shown["history"]["anchor_seq"], shown["history"]["last_cut"]["reason"]) == (17, "full")
    assert shown["memo_window"] == {"memos": 0, "first_seq": None, "last_seq": None, "gaps": [[9, 16]]}


@pytest.mark.parametrize(("silence_s", "anchor_seq", "reason"), [(300, 1, None), (301, 9, "cold")])
async def test_a_cold_history_is_cut_before_the_first_new_message(
    api: httpx.AsyncClient, settle: Settle, clock: SteppedClock, silence_s: int, anchor_seq: int, reason: str | None
) -> None:
    await append(api, talk(1, 24))
    await settle()
    clock.step(silence_s - 2)
    # Judged with 24 messages, of which an edge at 9 leaves 16; with the new ones it would have been 17.
    shown = (await append(api, talk(25, 32), context={}))["context"]["history"]
    assert (shown["anchor_seq"], shown["messages"]) == (anchor_seq, 33 - anchor_seq)
    assert (shown["last_cut"] or {}).get("reason") == reason


async def test_a_cold_cut_that_would_have_to_wait_is_dropped(
    api: httpx.AsyncClient, settle: Settle, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    clock.step(301)
    await append(api, [said(25)])
    await settle()
    shown = await context(api)
    assert (shown["history"]["anchor_seq"], shown["history"]["last_cut"]) == (1, None)


async def test_a_history_at_its_maximum_is_cut_and_shows_the_gap(api: httpx.AsyncClient, settle: Settle) -> None:
    await append(api, talk(1, 63))
    assert (await context(api))["history"]["messages"] == 63
    await append(api, [said(64)])
    shown = await context(api)
    assert shown["history"]["last_cut"]["reason"] == "forced"
    assert (shown["history"]["anchor_seq"], shown["history"]["messages"]) == (49, 16)
    assert shown["memo_window"] == {"memos": 0, "first_seq": None, "last_seq": None, "gaps": [[1, 48]]}

    await settle()
    filled = await context(api)
    assert filled["history"] == shown["history"]
    assert filled["memo_window"] == {"memos": 6, "first_seq": 1, "last_seq": 48, "gaps": []}
    assert filled["prefix_hash"] != shown["prefix_hash"], "what settles after its cut enters at once"


async def test_a_forced_cut_without_an_edge_is_before_a_user_message(api: httpx.AsyncClient) -> None:
    history = {"keep_messages": 4, "grow_messages": 4, "max_messages": 10}
    await put(api, settings={"history": history, "memos": {"every_messages": 64}})
    await append(api, talk(1, 11))
    shown = (await context(api))["history"]
    assert (shown["anchor_seq"], shown["messages"], shown["last_cut"]["reason"]) == (7, 5, "forced")


@pytest.mark.parametrize(
    ("settings", "last", "anchor_seq"),
    [
        ({"history": {"grow_messages": 0, "edges": "every_message"}, "memos": {"enabled": False}}, 30, 15),
        ({"preset": "decay"}, 30, 1),
        ({"preset": "decay"}, 31, 12),
        ({"preset": "agent"}, 33, 17),
        ({"preset": "agent"}, 32, 1),
        ({"history": {"keep_messages": 4, "grow_messages": 2}, "memos": {"every_messages": 3}}, 7, 4),
    ],
)
async def test_a_cut_falls_where_the_settings_have_an_edge(
    api: httpx.AsyncClient, settle: Settle, settings: Json, last: int, anchor_seq: int
) -> None:
    await put(api, settings=settings)
    for n in range(1, last + 1):
        await append(api, [said(n)])
        await settle()
    assert (await context(api))["history"]["anchor_seq"] == anchor_seq


@pytest.mark.parametrize(
    ("preset", "layer", "anchors"),
    [
        ("memo", "memos", [1, 17, 33, 49]),
        ("diary", "summary", [1, *range(9, 57, 8)]),
        ("scenes", "scenes", [1, *range(9, 57, 8)]),
    ],
)
async def test_without_the_layer_of_its_edges_every_8th_is_one(
    api: httpx.AsyncClient, settle: Settle, preset: str, layer: str, anchors: list[int]
) -> None:
    await put(api, settings={"preset": preset, layer: {"enabled": False}})
    found = []
    for n in range(1, 71):
        history = (await append(api, [said(n)], context={}))["context"]["history"]
        found.append(history["anchor_seq"])
        assert history["last_cut"] is None or history["last_cut"]["reason"] == "full"
        await settle()
    assert list(dict.fromkeys(found)) == anchors


async def test_no_cut_parts_a_tool_call_from_its_result(api: httpx.AsyncClient, settle: Settle) -> None:
    call = {"id": "m16", "role": "assistant", "content": "Let me look.", "tool_calls": [CALL]}
    result = {"role": "tool", "content": "Waves.", "tool_call_id": "call-1"}
    await append(api, [*talk(1, 15), call, result, *talk(17, 33)])
    await settle()
    await append(api, talk(34, 36))
    shown = await context(api, format="openai")
    assert shown["history"]["anchor_seq"] == 9, "17, between call and result, is no edge"
    assert [one["role"] for one in shown["messages"]].count("tool") == 1


async def test_messages_that_are_not_sent_do_not_count(api: httpx.AsyncClient, settle: Settle) -> None:
    unsaid = [{"role": "assistant", "content": "Hm.", "kind": "thought"}, {"role": "user", "content": " "}]
    await append(api, [*talk(1, 30), *unsaid * 10, *talk(31, 32)])
    await settle()
    shown = (await context(api))["history"]
    assert (shown["anchor_seq"], shown["messages"]) == (1, 32)
    await append(api, [said(33)])
    assert (await context(api))["history"]["anchor_seq"] == 17


async def test_the_window_is_the_last_fifteen_memos_before_the_anchor(api: httpx.AsyncClient, settle: Settle) -> None:
    await append(api, talk(1, 160))
    await settle()
    await append(api, talk(161, 177))
    shown = await context(api)
    assert shown["history"]["anchor_seq"] == 161
    assert shown["memo_window"] == {"memos": 15, "first_seq": 41, "last_seq": 160, "gaps": []}
    in_prompt = [memo["number"] for memo in (await get(api, "/memos"))["items"] if memo["in_prompt"]]
    assert in_prompt == list(range(6, 21))

    deleted = (await get(api, "/memos"))["items"][9]
    ok(await api.delete(f"/v1/chats/c/memos/{deleted['id']}"), 204)
    assert (await context(api))["memo_window"]["first_seq"] == 33, "an older one takes the place"


async def test_the_cached_window_equals_the_book_after_each_change(
    api: httpx.AsyncClient, database: Database, tenant: str, settle: Settle, model: ScriptedModel, clock: SteppedClock
) -> None:
    async def check(answer: Json | None = None) -> Json:
        await _check_window(database, tenant)
        return answer or {}

    await check(await put(api, settings={"memos": {"window": 3}}))
    for first in range(1, 65, 7):
        await check(await append(api, talk(first, first + 6)))
        model.script(*(refuses(500) for _ in range(first % 2)))
        await settle()
        await check()
    memos = (await get(api, "/memos"))["items"]
    path = "/v1/chats/c/memos"
    own = await check(ok(await api.post(path, json={"text": "They once met at sea.", "after_seq": 3}), 201))
    await check(ok(await api.post(path, json={"text": "She kept the key."}), 201))
    await check(ok(await api.patch(f"{path}/{memos[1]['id']}", json={"text": "He lied.", "pinned": True}), 200))
    await check(ok(await api.patch(f"{path}/{memos[1]['id']}", json={"pinned": False}), 200))
    await check(ok(await api.patch(f"{path}/{own['id']}", json={"pinned": True}), 200))
    await check(ok(await api.delete(f"{path}/{memos[4]['id']}"), 204))
    await check(ok(await api.post(f"{path}/{memos[3]['id']}/regenerate"), 202))
    await settle()
    await check(ok(await api.post(f"{path}/{memos[4]['id']}/regenerate"), 202))
    await settle()
    await check()
    for settings in ({"memos": {"window": 1}}, {"memos": {"enabled": False}}, {"memos": None}, {"preset": "decay"}):
        await check(await put(api, status=200, settings=settings))
    clock.step(301)
    await check(await append(api, talk(71, 90)))


async def _check_window(database: Database, tenant: str) -> None:
    """The column on the chat's row is what the layer reads in its tables, and reading it is all a context does."""
    ref = ChatRef.of(Caller(tenant, frozenset({"read"})), "c")
    async with database.unit_of_work() as db_session:
        head = await lock_head(db_session, ref)
        book = await read_window(db_session, head)
        row = await db_session.raw.fetchrow(
            "SELECT (context_cache -> 'memos')::text AS memo_window FROM chats WHERE chat_key = $1", ref.key
        )
    assert row is not None
    assert {"memos": [], "pinned": [], "gaps": []} | orjson.loads(row["memo_window"] or "{}") == book


async def test_a_waiting_cut_is_judged_again_without_memos(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 33))
    assert (await context(api))["history"]["anchor_seq"] == 1
    await put(api, status=200, settings={"memos": {"enabled": False}, "history": {"edges": "every_8"}})
    await append(api, talk(34, 34))
    assert (await context(api))["history"]["anchor_seq"] == 17
