"""Memos of messages that change: what is made again and how often, and what is shown meanwhile."""

import asyncio
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import RETRY_DELAYS_S
from app.memos.change_queries import UPDATE_HASHES
from tests.background import settle
from tests.book import book, change, due_rows, shown, statuses
from tests.memos.texts import KEY, WHISTLE
from tests.scripted_model import ScriptedModel, Step, refuses
from tests.talk import (
    FORMATS,
    Json,
    add_swipe,
    append,
    context,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    said,
    select_swipe,
    soft_delete,
    talk,
)


async def remembered(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, *, batches: int = 5, **memos: Any
) -> list[Json]:
    """The memos of so many batches, all of them before the anchor; the old text is message 18."""
    await put(api, settings={"history": {"keep_messages": 1, "grow_messages": 0}, "memos": memos})
    told = [said(n, content=KEY) if n == 18 else said(n) for n in range(1, 8 * batches + 2)]
    await append(api, told[:-1])
    await settle(dispatcher, clock)
    await append(api, told[-1:])
    found = await book(api)
    assert (await context(api))["history"]["anchor_seq"] == 8 * batches + 1
    assert [memo["status"] for memo in found] == ["ready"] * batches
    return found


async def contexts(api: httpx.AsyncClient) -> list[str]:
    """The context in every format, as text."""
    return [str(await context(api, format=name)) for name in FORMATS]


async def count_formats_with(api: httpx.AsyncClient, text: str) -> int:
    """In how many formats the context says something."""
    return sum(text in one for one in await contexts(api))


async def of_memos(api: httpx.AsyncClient, method: str, memo: Json, path: str, status: int, body: Any = None) -> Json:
    return ok(await api.request(method, f"/v1/chats/c/memos/{memo['id']}{path}", json=body), status)


# --- what is made again ---


async def test_an_edit_costs_one_call_however_many_memos_there_are(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    before = await remembered(api, dispatcher, clock)
    assert len(model.calls) == 5
    await edit(api, "m18", content=WHISTLE)
    assert [row["key"] for row in await due_rows(database, tenant)] == [before[2]["id"]]
    assert await settle(dispatcher, clock, 1.9) == 0, "it may not be the last edit"
    assert await settle(dispatcher, clock, 0.1) == 1
    assert len(model.calls) == 6
    assert WHISTLE in str(model.requests[-1])
    assert KEY not in str(model.requests[-1])
    after = await book(api)
    assert [after[n] for n in (0, 1, 3, 4)] == [before[n] for n in (0, 1, 3, 4)]
    assert (after[2]["id"], after[2]["number"], after[2]["first_seq"], after[2]["last_seq"]) == (
        before[2]["id"],
        3,
        17,
        24,
    )
    assert await due_rows(database, tenant) == []


async def test_several_quick_edits_of_a_batch_cost_one_call_together(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock)
    for name in ("m17", "m18", "m18", "m24"):
        await edit(api, name, content=f"Told anew at {clock()}.")
        assert await settle(dispatcher, clock, 1) == 0
    assert await settle(dispatcher, clock, 1) == 1
    assert len(model.calls) == 6


async def test_a_repeatedly_edited_message_waits_30_seconds_at_most(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock)
    made = []
    for second in range(30):
        await edit(api, "m18", content=f"Told anew in second {second}.")
        made.append(await settle(dispatcher, clock, 1))
    assert made == [0] * 29 + [1]
    assert len(model.calls) == 6
    assert "in second 29." in str(model.requests[-1])


async def test_hiding_a_range_costs_one_call_per_touched_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock)
    assert await hide(api, (8, 9), (24, 24)) == 3
    assert await settle(dispatcher, clock) == 3
    assert len(model.calls) == 8
    asked = "".join(map(str, model.requests[5:]))
    assert [n for n in range(1, 33) if f"number {n}." not in asked] == [8, 9, 18, *range(24, 33)]
    assert KEY in asked


UNDONE = {
    "edit": (("PATCH", "/m18", {"content": WHISTLE}), ("PATCH", "/m18", {"content": KEY})),
    "swipe": (("POST", "/m18/swipes", {"content": WHISTLE}), ("PUT", "/m18/swipes/selected", {"index": 0})),
    "hide": (("PATCH", "/m18", {"hidden": True}), ("PATCH", "/m18", {"hidden": False})),
    "hide a range": (
        ("POST", "/visibility", {"ranges": [{"first_seq": 18, "last_seq": 20, "hidden": True}]}),
        ("POST", "/visibility", {"ranges": [{"first_seq": 17, "last_seq": 24, "hidden": False}]}),
    ),
    "exclude": (("PATCH", "/m18", {"excluded": True}), ("PATCH", "/m18", {"excluded": False})),
}


@pytest.mark.parametrize("way", UNDONE)
async def test_a_change_undone_before_its_memo_is_made_costs_nothing(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    way: str,
) -> None:
    before, told = await remembered(api, dispatcher, clock), await contexts(api)
    (method, path, body), (method_back, path_back, body_back) = UNDONE[way]
    assert (await api.request(method, f"/v1/chats/c/messages{path}", json=body)).is_success
    assert [row["key"] for row in await due_rows(database, tenant)] == [before[2]["id"]]
    assert await contexts(api) != told
    clock.step(1)
    assert (await api.request(method_back, f"/v1/chats/c/messages{path_back}", json=body_back)).is_success
    assert await due_rows(database, tenant) == []
    assert await settle(dispatcher, clock, 60) == 0
    assert len(model.calls) == 5
    assert (await book(api), await contexts(api)) == (before, told)


@pytest.mark.parametrize("way", UNDONE)
async def test_a_change_undone_after_its_memo_was_made_costs_a_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, way: str
) -> None:
    (*_, before, _, _), told = await remembered(api, dispatcher, clock), await contexts(api)
    for method, path, body in UNDONE[way]:
        assert (await api.request(method, f"/v1/chats/c/messages{path}", json=body)).is_success
        assert await settle(dispatcher, clock) == 1
    assert len(model.calls) == 7
    assert [memo["text"] for memo in await book(api)][2] == before["text"]
    assert await contexts(api) == told


async def test_a_change_undone_during_the_call_leaves_the_memo(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    before = await remembered(api, dispatcher, clock)
    await edit(api, "m18", content=WHISTLE)
    clock.step(2)
    gate = model.hold(1)
    making = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await edit(api, "m18", content=KEY)
    gate.release()
    await making
    assert await book(api) == before
    assert await due_rows(database, tenant) == []


async def test_a_requested_memo_is_made_even_if_the_edit_is_undone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    memo = (await remembered(api, dispatcher, clock))[2]
    await of_memos(api, "POST", memo, "/regenerate", 202, {"instruction": "Name the stone."})
    await edit(api, "m18", content=WHISTLE)
    await edit(api, "m18", content=KEY)
    assert await settle(dispatcher, clock) == 1
    assert "Name the stone." in str(model.requests[-1])


async def test_changes_of_excluded_messages_make_no_memo_due(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    unheard = [
        {"id": "thought", "role": "assistant", "content": "Hm.", "kind": "thought"},
        {"id": "note", "role": "system", "content": "A note."},
        {"id": "result", "role": "tool", "content": "Waves.", "tool_call_id": "x"},
    ]
    await append(api, [*talk(1, 4), *unheard, *talk(5, 8)])
    await settle(dispatcher, clock)
    before = await book(api)
    for message in unheard:
        name = str(message["id"])
        await edit(api, name, content="Otherwise.")
        await edit(api, name, excluded=True, hidden=True)
        await edit(api, "m3", pinned=True, metadata={"mood": name})
        assert await due_rows(database, tenant) == []
        await soft_delete(api, name)
    assert await settle(dispatcher, clock, 60) == 0
    assert await book(api) == before


async def test_a_change_in_the_open_batch_makes_nothing_due(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 15))
    await settle(dispatcher, clock)
    (before,) = await book(api)
    await edit(api, "m10", content=WHISTLE)
    await add_swipe(api, "m12", KEY)
    await select_swipe(api, "m12", 0)
    await edit(api, "m11", excluded=True)
    await edit(api, "m11", excluded=False)
    assert await due_rows(database, tenant) == []
    assert await settle(dispatcher, clock, 60) == 0
    assert await book(api) == [before]
    await append(api, [said(16)])
    assert [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)] == [(1, 8), (9, 16)]
    await settle(dispatcher, clock)
    assert len(model.calls) == 2
    assert WHISTLE in str(model.requests[-1])
    assert KEY not in str(model.requests[-1])


# --- what is shown meanwhile ---


async def test_a_stale_memo_is_in_no_context_until_it_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    memo = (await remembered(api, dispatcher, clock, window=3))[2]
    assert await shown(api) == [3, 4, 5]
    assert "brass key" in memo["text"]
    assert await count_formats_with(api, "brass key") == len(FORMATS)

    await edit(api, "m18", content=WHISTLE)
    assert await shown(api) == [2, 4, 5], "an older memo takes the place"
    assert (await context(api))["memo_window"] == {"memos": 3, "first_seq": 9, "last_seq": 40, "gaps": [[17, 24]]}
    assert await count_formats_with(api, "brass key") == 0
    stale = (await book(api))[2]
    assert stale == memo | {"stale": True, "in_prompt": False, "attempts": 0}
    report = (await get(api, "/inclusion", after_seq=16, limit=8))["items"]
    assert {(one["status"], one["by"]) for one in report} == {("pending", f"memo:{memo['id']}")}

    await settle(dispatcher, clock)
    assert await shown(api) == [3, 4, 5]
    assert (await context(api))["memo_window"] == {"memos": 3, "first_seq": 17, "last_seq": 40, "gaps": []}
    again = (await book(api))[2]
    assert (again["status"], again["stale"], again["attempts"], again["error"]) == ("ready", False, 1, None)
    assert "silver whistle" in again["text"]
    assert await count_formats_with(api, "silver whistle") == len(FORMATS)
    assert "brass key" not in str(await book(api))
    assert await count_formats_with(api, "brass key") == 0


async def test_an_expired_stale_memo_is_no_gap_and_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock, window=2)
    before = await contexts(api)
    await edit(api, "m18", content=WHISTLE)
    assert await contexts(api) == before
    assert (await get(api, "/inclusion", after_seq=17))["items"][0]["status"] == "pending"
    assert await settle(dispatcher, clock) == 1
    assert await contexts(api) == before
    assert "silver whistle" in (await book(api))[2]["text"]
    assert (await get(api, "/inclusion", after_seq=17))["items"][0]["status"] == "expired"


async def test_a_stale_memo_that_fails_is_a_gap_until_the_undo(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    before, told = await remembered(api, dispatcher, clock), await contexts(api)
    await edit(api, "m18", content=WHISTLE)
    model.otherwise = refuses(400)
    for wait_s in (2, *RETRY_DELAYS_S):
        assert await settle(dispatcher, clock, wait_s) == 1
    assert await settle(dispatcher, clock, 86_400) == 0
    stale = (await book(api))[2]
    assert (stale["stale"], stale["in_prompt"], stale["attempts"]) == (True, False, 6)
    assert stale["error"] is not None
    assert (await context(api))["memo_window"]["gaps"] == [[17, 24]]
    assert (await get(api, "/inclusion", after_seq=17))["items"][0]["status"] == "failed"
    await edit(api, "m18", content=KEY)
    assert await due_rows(database, tenant) == []
    assert (await book(api), await contexts(api)) == (before, told)


async def test_a_pinned_stale_memo_is_omitted_until_it_is_fresh(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    memo = (await remembered(api, dispatcher, clock, window=1))[2]
    await of_memos(api, "PATCH", memo, "", 200, {"pinned": True})
    assert await shown(api) == [3, 5]
    await edit(api, "m18", content=WHISTLE)
    assert await shown(api) == [5]
    assert await count_formats_with(api, "brass key") == 0
    await settle(dispatcher, clock)
    assert await shown(api) == [3, 5]
    assert (await book(api))[2]["pinned"]


async def test_an_edited_memo_stays_shown_and_is_marked_as_stale(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    memo = (await remembered(api, dispatcher, clock))[2]
    edited = await of_memos(api, "PATCH", memo, "", 200, {"text": "Kai hid something."})
    await edit(api, "m18", content=WHISTLE)
    assert (await book(api))[2] == edited | {"stale": True}
    assert (await context(api))["memo_window"] == {"memos": 5, "first_seq": 1, "last_seq": 40, "gaps": []}
    assert await count_formats_with(api, "Kai hid something.") == len(FORMATS)
    assert await due_rows(database, tenant) == []
    assert await settle(dispatcher, clock, 60) == 0
    assert len(model.calls) == 5

    assert (await of_memos(api, "POST", memo, "/regenerate", 409))["code"] == "memo_edited"
    await of_memos(api, "POST", memo, "/regenerate", 202, {"replace_edited": True})
    assert await dispatcher.drain() == 1
    again = (await book(api))[2]
    assert (again["edited"], again["stale"]) == (False, False)
    assert "silver whistle" in again["text"]


async def test_an_edited_memo_is_fresh_again_after_an_undo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    memo = (await remembered(api, dispatcher, clock))[2]
    edited = await of_memos(api, "PATCH", memo, "", 200, {"text": "Kai hid something."})
    await edit(api, "m18", content=WHISTLE)
    await edit(api, "m18", content=KEY)
    assert (await book(api))[2] == edited


async def test_a_written_memory_does_not_depend_on_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock)
    own = ok(await api.post("/v1/chats/c/memos", json={"text": "They met at sea.", "after_seq": 18}), 201)
    await edit(api, "m18", content=WHISTLE)
    await settle(dispatcher, clock)
    assert own in await book(api)
    assert (own["stale"], own["in_prompt"]) == (False, True)


async def test_a_deleted_memo_stays_deleted_when_messages_change(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    memo = (await remembered(api, dispatcher, clock))[2]
    await of_memos(api, "DELETE", memo, "", 204)
    await edit(api, "m18", content=WHISTLE)
    await soft_delete(api, "m19")
    assert await due_rows(database, tenant) == []
    assert await settle(dispatcher, clock, 60) == 0
    assert [one["number"] for one in await book(api)] == await shown(api) == [1, 2, 4, 5]
    assert (await context(api))["memo_window"]["gaps"] == []
    await of_memos(api, "POST", memo, "/regenerate", 202)
    assert await dispatcher.drain() == 1
    assert "silver whistle" in (await book(api))[2]["text"]
    assert "number 19." not in str(model.requests[-1])


# --- what had not become a memo ---


@pytest.mark.parametrize(
    ("answer", "spent", "status", "attempts"),
    [
        (refuses(500), 0, "pending", 1),
        (refuses(400), 0, "pending", 1),
        (refuses(500), 5, "failed", 6),
        (refuses(400), 5, "failed", 6),
        ("NONE", 0, "empty", 1),
    ],
    ids=["500", "400", "500 for good", "400 for good", "empty"],
)
async def test_a_change_makes_a_failed_memo_due_with_all_attempts(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    answer: Step,
    spent: int,
    status: str,
    attempts: int,
) -> None:
    model.script(answer)
    await append(api, talk(1, 8))
    await change(database, tenant, "work", f"attempts = {spent}")
    await settle(dispatcher, clock)
    (memo,) = await book(api)
    assert (memo["status"], memo["attempts"]) == (status, attempts)

    await edit(api, "m3", content=WHISTLE)
    (work,) = await due_rows(database, tenant)
    assert (work["attempts"], work["error"], work["failed_at"], work["lease"]) == (0, None, None, None)
    (memo,) = await book(api)
    assert (memo["status"], memo["stale"]) == (("empty", True) if status == "empty" else ("pending", False))
    assert (memo["attempts"], memo["error"]) == (0, None)
    assert await settle(dispatcher, clock) == 1
    (memo,) = await book(api)
    assert (memo["status"], memo["stale"], memo["attempts"]) == ("ready", False, 1)
    assert "silver whistle" in memo["text"]


async def test_an_empty_memo_is_a_gap_after_a_change_until_remade(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = "NONE"
    await put(api, settings={"history": {"keep_messages": 1, "grow_messages": 0}})
    await append(api, talk(1, 8))
    await settle(dispatcher, clock)
    await append(api, [said(9)])
    assert (await context(api))["memo_window"]["gaps"] == []
    await edit(api, "m3", content=WHISTLE)
    assert (await context(api))["memo_window"]["gaps"] == [[1, 8]]
    await edit(api, "m3", content=said(3)["content"])
    assert (await context(api))["memo_window"]["gaps"] == []
    assert await settle(dispatcher, clock) == 0


GONE: dict[str, Json] = {"hidden": {"hidden": True}, "excluded": {"excluded": True}, "blank": {"content": " \n"}}


@pytest.mark.parametrize("way", [*GONE, "deleted"])
async def test_a_batch_of_excluded_messages_is_empty_without_a_call(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, way: str
) -> None:
    await remembered(api, dispatcher, clock)
    for n in range(17, 25):
        await (soft_delete(api, f"m{n}") if way == "deleted" else edit(api, f"m{n}", **GONE[way]))
    assert (await context(api))["memo_window"]["gaps"] == [[17, 24]]
    assert await settle(dispatcher, clock) == 1
    memo = (await book(api))[2]
    assert (memo["status"], memo["stale"], memo["text"], memo["highlights"]) == ("empty", False, "", [])
    assert (memo["in_prompt"], memo["model"], memo["error"]) == (False, None, None)
    assert (await context(api))["memo_window"]["gaps"] == []
    assert len(model.calls) == 5


@pytest.mark.parametrize(("way", "back"), [("hidden", {"hidden": False}), ("excluded", {"excluded": False})])
async def test_a_message_back_in_an_empty_batch_makes_its_memo_due(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, way: str, back: Json
) -> None:
    await remembered(api, dispatcher, clock)
    for n in range(17, 25):
        await edit(api, f"m{n}", **GONE[way])
    await settle(dispatcher, clock)
    await edit(api, "m20", **back)
    assert await settle(dispatcher, clock) == 1
    assert len(model.calls) == 6
    asked = model.requests[-1]["messages"][-1]["content"].partition("<messages>")[2]
    assert [n for n in range(1, 42) if f"number {n}." in asked] == [20]
    memo = (await book(api))[2]
    assert (memo["status"], memo["stale"], memo["in_prompt"]) == ("ready", False, True)
    assert "number 20." in memo["text"]


async def test_a_pending_memo_without_eligible_messages_becomes_empty(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 8))
    await hide(api, (1, 8))
    assert await settle(dispatcher, clock) == 1
    assert await statuses(api) == ["empty"]
    assert model.calls == []
    await hide(api, (1, 8), hidden=False)
    assert len(await due_rows(database, tenant)) == 1
    assert await settle(dispatcher, clock) == 1
    assert await statuses(api) == ["ready"]


# --- where a memo leads to, and what waits for it ---


async def test_a_memo_leads_to_a_message_that_can_be_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    memos = await remembered(api, dispatcher, clock)

    async def leads_to() -> str:
        found = (await book(api))[2]
        message = await get(api, f"/messages/{found['first_message_id']}")
        assert (message["memo_id"], found["first_seq"]) == (found["id"], 17)
        return str(message["id"])

    assert await leads_to() == "m17"
    await soft_delete(api, "m17")
    assert await leads_to() == "m18"
    await edit(api, "m18", hidden=True)
    assert await leads_to() == "m19", "the first that it tells of"
    await hide(api, (19, 24))
    assert await leads_to() == "m18", "hidden is not gone"
    await hide(api, (17, 24), hidden=False)
    assert await leads_to() == "m18"
    await of_memos(api, "PATCH", memos[2], "", 200, {"text": "Kai hid something."})
    await soft_delete(api, "m18", "m19")
    assert await leads_to() == "m20"


async def test_a_full_cut_waits_for_a_memo_that_has_become_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 32))
    await settle(dispatcher, clock)
    await edit(api, "m3", content=WHISTLE)
    await append(api, [said(33)])
    assert (await context(api))["history"]["last_cut"] is None
    await settle(dispatcher, clock)
    cut = (await context(api))["history"]
    assert (cut["anchor_seq"], cut["last_cut"]["reason"]) == (17, "full")
    assert await count_formats_with(api, "silver whistle") == len(FORMATS)


async def test_a_full_cut_follows_an_undone_edit_with_the_next_append(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 32))
    await settle(dispatcher, clock)
    await edit(api, "m3", content=WHISTLE)
    await append(api, [said(33)])
    await edit(api, "m3", content=said(3)["content"])
    assert (await context(api))["history"]["last_cut"] is None
    await append(api, [said(34)])
    cut = (await context(api))["history"]
    assert (cut["anchor_seq"], cut["messages"], cut["last_cut"]["reason"]) == (17, 18, "full")


async def test_a_full_cut_is_judged_again_after_a_truncation(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    await settle(dispatcher, clock)
    await append(api, talk(9, 40))
    assert (await context(api))["history"]["last_cut"] is None
    await cut_off(api, 13)
    await append(api, talk(41, 44))
    await settle(dispatcher, clock)
    assert [(memo["first_seq"], memo["last_seq"], memo["status"]) for memo in await book(api)] == [
        (1, 8, "ready"),
        (9, 44, "ready"),
    ]
    shown_now = (await context(api))["history"]
    assert (shown_now["anchor_seq"], shown_now["messages"], shown_now["last_cut"]) == (1, 16, None)


# --- switched off ---


async def test_an_edit_with_memos_disabled_is_processed_when_enabled(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await remembered(api, dispatcher, clock)
    calls = len(model.calls)
    await put(api, status=200, settings={"memos": {"enabled": False}})
    await edit(api, "m3", content=WHISTLE)
    assert await settle(dispatcher, clock) == 0
    assert (await book(api))[0]["stale"]
    await put(api, status=200, settings={"memos": {"enabled": True}})
    assert await settle(dispatcher, clock) == 1
    assert len(model.calls) == calls + 1
    assert not (await book(api))[0]["stale"]


async def test_a_memo_edited_while_memos_are_off_is_not_pending(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async def reported() -> set[tuple[str, str]]:
        return {(one["status"], one["by"]) for one in (await get(api, "/inclusion", limit=8))["items"]}

    memo, *_ = await remembered(api, dispatcher, clock)
    await put(api, status=200, settings={"memos": {"enabled": False}})
    before = await reported()
    await edit(api, "m3", content=WHISTLE)
    assert await reported() == before == {("expired", f"memo:{memo['id']}")}
    assert (await get(api, "/messages/m3"))["memo_id"] == memo["id"]
    await put(api, status=200, settings={"memos": {"enabled": True}})
    assert await reported() == {("pending", f"memo:{memo['id']}")}


# --- counted ---


async def test_the_chat_counts_the_memos_in_its_book(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    async def counted() -> tuple[int, int]:
        return (await get(api, ""))["counters"]["memos"], len(await book(api))

    memos = await remembered(api, dispatcher, clock)
    assert await counted() == (5, 5)
    ok(await api.post("/v1/chats/c/memos", json={"text": "They met at sea."}), 201)
    await of_memos(api, "DELETE", memos[1], "", 204)
    assert await counted() == (5, 5)
    await of_memos(api, "POST", memos[1], "/regenerate", 202)
    assert await counted() == (6, 6)
    await cut_off(api, memos[2]["first_seq"] + 1)
    assert await counted() == (3, 3)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": memos[0]["last_seq"]}), 201)
    fork = ok(await api.get("/v1/chats/d"), 200)
    assert fork["counters"]["memos"] == len(ok(await api.get("/v1/chats/d/memos"), 200)["items"]) == 1


async def test_marking_many_memos_as_stale_reads_no_whole_book(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 1_000))
    async with database.raw() as connection:
        memos = await connection.fetch(
            "SELECT line_id, memo_id, current_hash, first_message_id FROM memos WHERE chat_key = $1",
            chat_key(tenant, "c"),
        )
        (line_id, *_), (_, *columns) = memos[0], zip(*memos, strict=True)
        statement = f"EXPLAIN (ANALYZE) {UPDATE_HASHES}"
        plan = await connection.fetch(statement, chat_key(tenant, "c"), line_id, *columns)
    told = "\n".join(row[0] for row in plan)
    assert "pk_memos" in told
    assert "Rows Removed by Filter" not in told
