"""Checkpoints, lines and forks over HTTP: what comes back, what stays apart, what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from app.chats.chat_lock import ChatRef
from app.chats.models import OF_CHAT
from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.lines import service as lines
from app.lines.limits import LineLimits
from app.pipeline import open_database
from app.registry import LAYERS
from tests.book import book, change, due_rows, statuses
from tests.chats.rich import Rows, make_rich_chat, rows_of, without_revisions
from tests.conftest import NOON, SETTLE_S, client_of, sqlalchemy_url
from tests.scripted_model import ScriptedModel
from tests.summary.folds import OWN_FOLDS, counting_fold
from tests.talk import FORMATS, Json, append, context, get, ok, put, said, talk, talk_with_memos, walk

NAMELESS = "01a1fd8d-0000-7000-8000-000000000000"
UNTRIED = "attempts = CASE WHEN failed_at IS NULL THEN 0 ELSE attempts END"
"""Attempts of due work are shown with its memo, and are not copied with a line."""


@pytest.fixture
async def rich(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    """The chat `c`, with something in every table, and nothing that a copy of the line would not have."""
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    await change(database, tenant, "work", UNTRIED)


# --- restore ---


@pytest.mark.parametrize("settled", [True, False], ids=["nothing due", "work due"])
async def test_a_restore_gives_the_same_context_byte_for_byte(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str, settled: bool
) -> None:
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    await change(database, tenant, "work", UNTRIED)
    if settled:
        await change(database, tenant, "work", "lease = NULL, leased_until = NULL, failed_at = NULL, attempts = 0")
        clock.step(60)
        await dispatcher.drain()
        assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    before = await _everything(api)
    await _checkpoint(api, "dusk")
    assert await _everything(api) == before, "making one changes nothing"
    await _move_on(api, dispatcher, clock, 44)
    moved_on = await _everything(api)
    assert all(moved_on[path] != before[path] for path in before)
    assert await _restore(api, "dusk") == (await get(api, ""))["line"]
    assert await _everything(api) == before


async def test_a_restore_reverts_only_what_belongs_to_the_line(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    await _checkpoint(api, "dusk")
    before = await get(api, "")
    await put(
        api,
        status=200,
        user_id="ren",
        system_prompt="You are Ren.",
        settings={"preset": "diary"},
        characters=[],
        time_zone="UTC",
        metadata={"theme": None, "storm": True},
    )
    await _move_on(api, dispatcher, clock, 44)
    line = await _restore(api, "dusk")
    of_chat = {"user_id": "ren", "metadata": {"storm": True}}
    assert await get(api, "") == before | {"line": line} | of_chat
    assert ok(await api.get("/v1/chats", params={"user_id": "mira"}), 200)["items"] == []
    assert [chat["line"] for chat in ok(await api.get("/v1/chats", params={"user_id": "ren"}), 200)["items"]] == [line]


async def test_metadata_stays_when_another_line_becomes_current(api: httpx.AsyncClient) -> None:
    first = (await put(api, metadata={"theme": "dusk"}))["line"]
    await append(api, talk(1, 3))
    await _checkpoint(api, "dusk")
    await put(api, status=200, metadata={"theme": "storm"})
    await _restore(api, "dusk")
    assert (await get(api, ""))["metadata"] == {"theme": "storm"}
    await put(api, status=200, metadata={"theme": "dawn", "n": 1})
    await _switch(api, first)
    assert (await get(api, ""))["metadata"] == {"theme": "dawn", "n": 1}
    await put(api, status=200, metadata=None)
    inserted = [said(1), said(9), said(2), said(3)]
    reimported = ok(await api.put("/v1/chats/c/messages", json={"messages": inserted}), 200)
    assert reimported["line"] not in (None, first)
    assert (await get(api, ""))["metadata"] == {}


async def test_a_fork_copies_metadata_and_then_has_its_own(api: httpx.AsyncClient) -> None:
    await put(api, metadata={"theme": "dusk"})
    assert (await _fork(api, "d"))["metadata"] == {"theme": "dusk"}
    await put(api, "d", status=200, metadata={"theme": "dawn"})
    assert (await get(api, ""))["metadata"] == {"theme": "dusk"}


async def test_all_lines_have_equal_values_in_columns_of_the_chat(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, user_id="mira", metadata={"theme": "dusk"})
    for name in ("dusk", "dawn"):
        await _checkpoint(api, name)
        await append(api, [said(1, id=name)])
        await put(api, status=200, user_id=name, metadata={"theme": name}, system_prompt=name)
        await _restore(api, name)
    columns = ", ".join(sorted(OF_CHAT))
    async with database.raw() as connection:
        rows = await connection.fetch(f"SELECT {columns} FROM chats WHERE chat_key = $1", chat_key(tenant, "c"))
    assert len(rows) == 5
    assert len({repr(row) for row in rows}) == 1


async def test_a_checkpoint_can_be_restored_again_and_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, rich: None
) -> None:
    await _checkpoint(api, "dusk")
    before = await _everything(api)
    for first in (44, 52):
        await _move_on(api, dispatcher, clock, first)
        await _restore(api, "dusk")
        assert await _everything(api) == before
    assert len((await get(api, "/lines"))["items"]) == 3


async def test_an_empty_chat_has_checkpoints_too(api: httpx.AsyncClient) -> None:
    await put(api)
    assert (await _checkpoint(api, "before the first word"))["head_seq"] == 0
    await append(api, talk(1, 9))
    await _restore(api, "before the first word")
    assert (await get(api, "/messages"))["items"] == []
    assert (await get(api, ""))["counters"] == {"messages": 0, "turns": 0, "tokens": 0, "memos": 0}
    await append(api, talk(1, 9))
    assert len(await book(api)) == 1


# --- lines ---


async def test_an_abandoned_line_stays_readable_as_it_was_left(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, rich: None
) -> None:
    await _checkpoint(api, "dusk")
    await _move_on(api, dispatcher, clock, 44)
    left, line = await _everything(api), (await get(api, ""))["line"]
    await _restore(api, "dusk")
    await append(api, [said(60, content="Nothing of this is known elsewhere.")])
    assert await _everything(api, line) == left


async def test_appends_after_a_restore_are_on_the_new_line_only(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 16)
    await _checkpoint(api, "dusk")
    await append(api, [said(17, content="The storm came.")])
    former = (await get(api, ""))["line"]
    await _restore(api, "dusk")
    appended = await append(api, [said(17, content="The night was calm.")])
    assert [message["seq"] for message in appended["messages"]] == [17], "id and seq are free on this line"
    assert "storm" not in str(await _everything(api))
    assert "calm" not in str(await _everything(api, former))
    assert (await get(api, "/messages/m17", line=former))["content"] == "The storm came."


async def test_switching_lines_restores_each_line_unchanged(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, rich: None
) -> None:
    await _checkpoint(api, "dusk")
    await _move_on(api, dispatcher, clock, 44)
    first = (await get(api, ""))["line"]
    left = {first: await _everything(api)}
    second = await _restore(api, "dusk")
    await _move_on(api, dispatcher, clock, 44)
    left[second] = await _everything(api)
    for _ in range(2):
        for line, there in left.items():
            assert await _switch(api, line) == line
            assert await _everything(api) == there
    assert len((await get(api, "/lines"))["items"]) == 2


async def test_a_line_that_is_switched_to_goes_on_from_there(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 16)
    first = (await get(api, ""))["line"]
    await _checkpoint(api, "dusk")
    await append(api, talk(17, 20))
    await _restore(api, "dusk")
    await _switch(api, first)
    await append(api, talk(21, 24))
    clock.step(2)
    await dispatcher.drain()
    assert [(memo["first_seq"], memo["status"]) for memo in await book(api)] == [
        (1, "ready"),
        (9, "ready"),
        (17, "ready"),
    ]


async def test_switching_to_the_current_line_changes_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    before = await rows_of(database, chat_key(tenant, "c"))
    line = (await get(api, ""))["line"]
    assert await _switch(api, line) == line
    assert await rows_of(database, chat_key(tenant, "c")) == before


async def test_lines_and_checkpoints_name_their_origin(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await append(api, talk(1, 3))
    first = (await get(api, ""))["line"]
    clock.step(10)
    frozen = await _checkpoint(api, "dusk")
    assert frozen == {
        "name": "dusk",
        "line": frozen["line"],
        "head_seq": 3,
        "messages": 3,
        "created_at": "2026-04-01T12:00:10Z",
    }
    await append(api, talk(4, 5))
    clock.step(10)
    second = await _restore(api, "dusk")
    assert (await get(api, "/checkpoints"))["items"] == [frozen]
    assert (await get(api, "/lines"))["items"] == [
        {
            "line": second,
            "current": True,
            "parent": frozen["line"],
            "head_seq": 3,
            "messages": 3,
            "created_at": "2026-04-01T12:00:20Z",
            "last_active_at": "2026-04-01T12:00:00Z",
        },
        {
            "line": first,
            "current": False,
            "parent": None,
            "head_seq": 5,
            "messages": 5,
            "created_at": "2026-04-01T12:00:00Z",
            "last_active_at": "2026-04-01T12:00:10Z",
        },
    ]


async def test_lines_and_checkpoints_are_listed_in_pages_newest_first(
    api: httpx.AsyncClient, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    made = [(await get(api, ""))["line"]]
    for n in range(6):
        clock.step(n % 2)  # some of them at the same time
        await _checkpoint(api, f"no. {n}")
        made.append(await _restore(api, "no. 0"))
    pages = await walk(api, "/v1/chats/c/lines", limit=3)
    assert [[line["line"] for line in page] for page in pages] == [made[:3:-1], made[3:0:-1], made[:1]]
    pages = await walk(api, "/v1/chats/c/checkpoints", limit=4)
    assert [[found["name"][-1] for found in page] for page in pages] == [["5", "4", "3", "2"], ["1", "0"]]


async def test_a_checkpoint_is_readable_by_its_line(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, rich: None
) -> None:
    before = await _everything(api)
    frozen = (await _checkpoint(api, "dusk"))["line"]
    await _move_on(api, dispatcher, clock, 44)
    assert await _everything(api, frozen) == before


async def test_a_deleted_checkpoint_leaves_no_row_and_all_lines(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    key = chat_key(tenant, "c")
    first = (await get(api, ""))["line"]
    frozen = (await _checkpoint(api, "dusk"))["line"]
    await _checkpoint(api, "dawn")
    await _restore(api, "dusk")
    before = without_revisions(await rows_of(database, key))
    ok(await api.delete("/v1/chats/c/checkpoints/dusk"), 204)
    left = without_revisions(await rows_of(database, key))
    for chat in before["chats"]:
        if chat["parent_line_id"] == frozen:
            chat["parent_line_id"] = first  # that is whose copy the checkpoint was
    assert _sorted(left) == _sorted(
        {table: [row for row in before[table] if row["line_id"] != frozen] for table in before}
    )
    assert [line["parent"] for line in (await get(api, "/lines"))["items"]] == [first, None]
    assert [found["name"] for found in (await get(api, "/checkpoints"))["items"]] == ["dawn"]
    await get(api, "/messages", 404, line=frozen)
    await _checkpoint(api, "dusk")


async def test_a_line_without_common_messages_has_no_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    former = (await get(api, ""))["line"]
    assert (await context(api))["history"]["last_cut"]["at_seq"] > 1
    wanted = [said(2), said(1, id="new"), said(1)]
    outcome = ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert outcome["line"] != former
    assert (await context(api))["history"] == {"anchor_seq": 1, "last_seq": 3, "messages": 3, "last_cut": None}
    assert (await get(api, "/lines"))["items"][0]["parent"] == former


# --- work ---


async def test_work_due_at_a_checkpoint_is_done_on_the_restored_line(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await append(api, talk(1, 8))
    first = (await get(api, ""))["line"]
    clock.step(2)
    gate = model.hold(1)
    async with asyncio.TaskGroup() as group:
        group.create_task(dispatcher.drain())
        await gate.reached()
        await _checkpoint(api, "dusk")
        second = await _restore(api, "dusk")
        rows = {str(row["line_id"]): row for row in await due_rows(database, tenant)}
        assert (rows[first]["lease"] is None, rows[second]["lease"]) == (False, None)
        gate.release()
    await dispatcher.drain()
    assert await statuses(api) == ["ready"]
    assert [memo["status"] for memo in (await get(api, "/memos", line=first))["items"]] == ["ready"]
    assert len(model.calls) == 2, "once for each line, and none for the checkpoint"


async def test_only_the_current_line_is_worked_on(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    await _checkpoint(api, "dusk")
    await append(api, talk(9, 16))
    first = (await get(api, ""))["line"]
    await _restore(api, "dusk")
    clock.step(2)
    assert await dispatcher.drain() == 1
    assert await statuses(api) == ["ready"]
    assert [memo["status"] for memo in (await get(api, "/memos", line=first))["items"]] == ["pending"] * 2
    await _switch(api, first)
    assert await dispatcher.drain() == 2
    assert await statuses(api) == ["ready"] * 2


async def test_work_of_lines_that_are_not_current_is_parked(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    first = (await get(api, ""))["line"]
    frozen = (await _checkpoint(api, "dusk"))["line"]
    second = await _restore(api, "dusk")

    async def resting() -> set[str]:
        rows = (await rows_of(database, chat_key(tenant, "c")))["work"]
        return {row["line_id"] for row in rows if row["run_after"] == "infinity"}

    assert await resting() == {first, frozen}
    await _switch(api, first)
    assert await resting() == {second, frozen}


async def test_work_scheduled_on_a_line_left_meanwhile_is_parked(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await put(api, settings=OWN_FOLDS)
    await _checkpoint(api, "start")
    await append(api, talk(1, 200))
    model.otherwise = counting_fold
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    await _restore(api, "start")
    gate.release()
    await draining
    assert [row["run_after"] for row in (await rows_of(database, chat_key(tenant, "c")))["work"]] == ["infinity"]


async def test_a_line_that_becomes_current_has_the_workers_called(
    api: httpx.AsyncClient, database_url: str, clock: SteppedClock, tenant: str
) -> None:
    await append(api, talk(1, 8))
    first = UUID((await get(api, ""))["line"])
    await _checkpoint(api, "dusk")
    ref, target = (ChatRef(tenant, chat_id, chat_key(tenant, chat_id)) for chat_id in ("c", "d"))
    notified: list[str] = []
    url = sqlalchemy_url(database_url)
    listening = open_database(
        url, LAYERS, clock=clock, settle_s=SETTLE_S, notify=lambda: notified.append("notified"), pool_size=1
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(listening.close)
        async with listening.unit_of_work() as db_session:
            await lines.restore(db_session, ref, "dusk", limits=LineLimits(2, 1, 1), now=clock())
        assert len(notified) == 1
        async with listening.unit_of_work() as db_session:
            await lines.switch(db_session, ref, first, now=clock())
        assert len(notified) == 2
        async with listening.unit_of_work() as db_session:
            await lines.switch(db_session, ref, first, now=clock())
        assert len(notified) == 2, "no worker is notified for the line that is current already"
        async with listening.unit_of_work() as db_session:
            await lines.fork(db_session, ref, target, None, now=clock())
        assert len(notified) == 3


async def test_work_of_another_line_cannot_be_retried(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    key = chat_key(tenant, "c")
    (failed,) = ok(await api.get("/v1/work", params={"status": "failed"}), 200)["items"]
    frozen = (await _checkpoint(api, "dusk"))["line"]
    second = await _restore(api, "dusk")
    before = await rows_of(database, key)
    elsewhere = [row["work_id"] for row in before["work"] if row["line_id"] != second]
    assert {failed["id"], *(row["work_id"] for row in before["work"] if row["line_id"] == frozen)} <= set(elsewhere)
    for work_id in elsewhere:
        ok(await api.post(f"/v1/work/{work_id}/retry"), 404)
    assert await rows_of(database, key) == before
    (copied,) = ok(await api.get("/v1/work", params={"status": "failed"}), 200)["items"]
    ok(await api.post(f"/v1/work/{copied['id']}/retry"), 202)


# --- fork ---


async def test_a_fork_of_everything_reads_like_the_chat(
    api: httpx.AsyncClient, clock: SteppedClock, database: Database, tenant: str, rich: None
) -> None:
    await _checkpoint(api, "dusk")
    await _restore(api, "dusk")  # a line that was copied itself
    before = await _everything(api)
    chat = await get(api, "")
    rows = await rows_of(database, chat_key(tenant, "c"))
    clock.step(100)
    forked = await _fork(api, "d")
    now = f"{clock():%Y-%m-%dT%H:%M:%SZ}"
    assert forked == chat | {"chat_id": "d", "line": forked["line"], "created_at": now, "last_active_at": now}
    assert forked == ok(await api.get("/v1/chats/d"), 200)
    assert await _everything(api, chat_id="d") == before | {"": await _read(api, "d", "")}
    assert ok(await api.get("/v1/chats/d/lines"), 200)["items"][0]["parent"] is None
    assert await rows_of(database, chat_key(tenant, "c")) == rows


async def test_a_fork_is_independent_of_its_chat(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 16)
    await _fork(api, "d")
    await append(api, [said(17, content="The storm came.")], "d")
    await append(api, [said(17, content="The night was calm.")])
    assert "storm" not in str(await _everything(api))
    assert "calm" not in str(await _everything(api, chat_id="d"))
    ok(await api.delete("/v1/chats/c"), 204)
    assert len(ok(await api.get("/v1/chats/d/messages"), 200)["items"]) == 17


def _any_talk(last: int) -> list[Json]:
    """A conversation in which not everybody takes turns, and not everything is sent."""
    roles = ["user", "assistant", "assistant", "narrator", "user", "user", "assistant", "system", "assistant", "user"]
    messages = [said(n, role=roles[n % len(roles)]) for n in range(1, last + 1)]
    for n in (6, 12, 19, 26):
        messages[n - 1] |= {"role": "assistant", "kind": "thought"}
    for n in (9, 21):
        messages[n - 1] |= {"content": " \n"}
    return messages


@pytest.mark.parametrize("at_seq", [1, 2, 3, 6, 8, 10, 13, 16, 17, 23, 24, 25, 31, 39, 40])
async def test_a_fork_counts_only_its_own_messages(
    api: httpx.AsyncClient, database: Database, tenant: str, at_seq: int
) -> None:
    messages = _any_talk(40)
    await put(api, settings={"history": {"keep_messages": 40}})
    await append(api, messages)
    forked = await _fork(api, "d", at_seq)
    await put(api, "e", settings={"history": {"keep_messages": 40}})
    await append(api, messages[:at_seq], "e")
    (counted,), (expected,) = [(await rows_of(database, chat_key(tenant, name)))["chats"] for name in ("d", "e")]
    names = ("head_seq", "message_count", "token_count", "turn_count", "history_messages", "awaits_reply")
    assert {name: counted[name] for name in names} == {name: expected[name] for name in names}
    assert (forked["head_seq"], forked["counters"]["messages"]) == (at_seq, at_seq)


async def test_a_fork_counts_no_tombstones_and_sends_nothing_hidden(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 12))
    for name in ("m2", "m5", "m11"):
        ok(await api.delete(f"/v1/chats/c/messages/{name}"), 204)
    ok(await api.patch("/v1/chats/c/messages/m7", json={"hidden": True}), 200)
    forked = await _fork(api, "d", 8)
    # Of 1 3 4 6 7 8 only 4 and 8 answer something that is there.
    assert (forked["counters"]["messages"], forked["counters"]["turns"]) == (6, 2)
    assert [one["seq"] for one in ok(await api.get("/v1/chats/d/messages"), 200)["items"]] == [1, 3, 4, 6, 7, 8]
    (row,) = (await rows_of(database, chat_key(tenant, "d")))["chats"]
    assert row["history_messages"] == 5


async def test_a_fork_inside_a_batch_reopens_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 40)
    ok(await api.post("/v1/chats/c/memos", json={"text": "They have met before.", "after_seq": 5}), 201)
    ok(await api.post("/v1/chats/c/memos", json={"text": "They will meet again.", "after_seq": 30}), 201)
    await _fork(api, "d", 20)
    assert [(memo["first_seq"], memo["last_seq"], memo["after_seq"]) for memo in await _book(api, "d")] == [
        (1, 8, None),
        (None, None, 5),
        (9, 16, None),
    ]
    await append(api, [said(n, content=f"Otherwise, {n}.") for n in range(21, 25)], "d")
    clock.step(2)
    await dispatcher.drain()
    batch = (await _book(api, "d"))[-1]
    assert (batch["first_seq"], batch["last_seq"], batch["status"]) == (17, 24, "ready")


async def test_a_fork_rewinds_to_where_enough_is_left(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 64)
    assert (await context(api))["history"]["anchor_seq"] > 20
    await _fork(api, "d", 30)
    shown = ok(await api.get("/v1/chats/d/context"), 200)
    assert (shown["history"]["anchor_seq"], shown["history"]["last_seq"], shown["history"]["messages"]) == (9, 30, 22)
    assert shown["history"]["last_cut"]["reason"] == "rewind"
    assert shown["memo_window"] == {"memos": 1, "first_seq": 1, "last_seq": 8, "gaps": []}


async def test_a_seq_after_a_forks_end_is_free_in_it(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 12))
    await _fork(api, "d", 5)
    appended = await append(api, [said(6, content="Otherwise.")], "d")
    assert [(one["seq"], one["id"]) for one in appended["messages"]] == [(6, "m6")]


# --- refused ---


REFUSED: list[tuple[str, Json | None, int, str]] = [
    ("/checkpoints", {"name": "dusk"}, 409, "checkpoint_taken"),
    ("/checkpoints/dawn/restore", None, 404, "checkpoint_not_found"),
    (f"/lines/{NAMELESS}/switch", None, 404, "line_not_found"),
    ("/fork", {"chat_id": "d"}, 409, "chat_taken"),
    ("/fork", {"chat_id": "c"}, 409, "chat_taken"),
    ("/fork", {"chat_id": "d", "at_seq": 3}, 409, "chat_taken"),
    ("/fork", {"chat_id": "e", "at_seq": 44}, 422, "invalid"),
    ("/fork", {"chat_id": "e", "at_seq": 13}, 422, "invalid"),
    ("/fork", {"chat_id": "e", "at_seq": 0}, 422, "invalid"),
    ("/fork", {"chat_id": "e", "at_seq": -1}, 422, "invalid"),
    ("/fork", {"chat_id": "e", "at_seq": 2**31}, 422, "invalid"),
    ("/fork", {"chat_id": "e f"}, 422, "invalid"),
    ("/fork", {}, 422, "invalid"),
]


async def test_invalid_requests_are_refused_and_change_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    # One chat for all requests: each is checked to change nothing, and the chat takes 3 s to make.
    await _checkpoint(api, "dusk")
    await append(api, talk(1, 3), "d")
    before = [await rows_of(database, chat_key(tenant, name)) for name in ("c", "d", "e")]
    for path, body, status, code in REFUSED:
        problem = ok(await api.post(f"/v1/chats/c{path}", json=body), status)
        assert problem["code"] == code, (path, body)
        assert [await rows_of(database, chat_key(tenant, name)) for name in ("c", "d", "e")] == before, (path, body)
        if status == 422:
            blamed = {error["loc"][-1] for error in problem["errors"]}
            assert blamed == ({"at_seq"} if body and "at_seq" in body else {"chat_id"}), (path, body)


@pytest.mark.parametrize(("path", "field", "taken"), [("/checkpoints", "name", "dusk"), ("/fork", "chat_id", "d")])
async def test_a_taken_id_is_in_the_error(api: httpx.AsyncClient, path: str, field: str, taken: str) -> None:
    await put(api)
    await put(api, "d")
    await _checkpoint(api, "dusk")
    problem = ok(await api.post(f"/v1/chats/c{path}", json={field: taken}), 409)
    assert problem["errors"] == [{"loc": ["body", field], "msg": "is taken", "id": taken}]


async def test_a_fork_says_which_seqs_there_are(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await append(api, talk(1, 3))
    await change(database, tenant, "messages", "deleted_at = CASE WHEN seq = 2 THEN now() END")
    for at_seq, told in ((4, "3"), (2, "deleted")):
        problem = ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": at_seq}), 422)
        assert told in problem["errors"][0]["msg"]
        assert problem["errors"][0]["loc"] == ["body", "at_seq"]


async def test_a_checkpoint_is_not_switched_to(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    frozen = (await _checkpoint(api, "dusk"))["line"]
    before = await rows_of(database, chat_key(tenant, "c"))
    problem = ok(await api.post(f"/v1/chats/c/lines/{frozen}/switch"), 409)
    assert problem["code"] == "line_is_checkpoint"
    assert "restore" in problem["detail"]
    ok(await api.delete("/v1/chats/c/checkpoints/dawn"), 404)
    assert await rows_of(database, chat_key(tenant, "c")) == before


@pytest.mark.parametrize("name", ["", " ", "\u3000\t", ".", "..", "a/b", "/", "a\nb", "\0", "\x7f", "\x85", "x" * 101])
async def test_a_name_unfit_for_a_path_is_a_422(api: httpx.AsyncClient, name: str) -> None:
    await put(api)
    problem = ok(await api.post("/v1/chats/c/checkpoints", json={"name": name}), 422)
    assert problem["errors"][0]["loc"] == ["body", "name"]
    assert (await get(api, "/checkpoints"))["items"] == []


@pytest.mark.parametrize(
    "name", ["x" * 100, "...", "50 % done?", "#1 & only", "黄昏 🏮", "a\\b", "%2F", "restore", "a+b"]
)
async def test_any_other_name_leads_back_to_its_checkpoint(api: httpx.AsyncClient, name: str) -> None:
    await append(api, talk(1, 2))
    assert (await _checkpoint(api, name))["name"] == name
    await append(api, [said(3)])
    await _restore(api, name)
    assert (await get(api, ""))["head_seq"] == 2
    ok(await api.delete(f"/v1/chats/c/checkpoints/{_quoted(name)}"), 204)


@pytest.mark.parametrize("path", ["/lines", "/checkpoints"])
async def test_an_invalid_cursor_is_a_422(api: httpx.AsyncClient, path: str) -> None:
    await put(api)
    for cursor in ("x", "WzFd", "%%%", "=", "\0"):
        problem = await get(api, path, 422, cursor=cursor)
        assert problem["errors"][0]["loc"] == ["query", "cursor"]


# --- whose ---


CALLS = [
    ("POST", "/checkpoints", {"name": "dawn"}),
    ("GET", "/checkpoints", None),
    ("POST", "/checkpoints/dusk/restore", None),
    ("DELETE", "/checkpoints/dusk", None),
    ("GET", "/lines", None),
    ("POST", "/lines/{line}/switch", None),
    ("POST", "/fork", {"chat_id": "e"}),
]


@pytest.fixture
async def strangers(app: FastAPI, api: httpx.AsyncClient, database: Database, tenant: str) -> AsyncIterator[list[Any]]:
    """Another tenant, another user, and who is limited to another chat."""
    async with database.unit_of_work() as db_session:
        keys = [(await create_key(db_session, f"{tenant}-x", ["read", "write"], NOON)).text]
    for limit in ({"user_id": "ren"}, {"chat_id": "d"}):
        body = {"scopes": ["read", "write"], "ttl_s": 60} | limit
        keys.append(ok(await api.post("/v1/tokens", json=body), 201)["token"])
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client_of(app, key)) for key in keys]


async def test_lines_of_a_chat_are_hidden_without_access_to_it(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None, strangers: list[httpx.AsyncClient]
) -> None:
    # One chat for all requests: each is checked to change nothing, and the chat takes 3 s to make.
    line = (await get(api, ""))["line"]
    await _checkpoint(api, "dusk")
    before = await rows_of(database, chat_key(tenant, "c"))
    for method, path, body in CALLS:
        for stranger in strangers:
            problem = ok(await stranger.request(method, f"/v1/chats/c{path.format(line=line)}", json=body), 404)
            assert problem["code"] == "chat_not_found", (method, path)
        assert await rows_of(database, chat_key(tenant, "c")) == before, (method, path)
        ok(await api.get("/v1/chats/e"), 404)


async def test_a_token_for_one_chat_makes_no_other(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    body = {"scopes": ["read", "write"], "ttl_s": 60, "chat_id": "c"}
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as limited:
        await _checkpoint(limited, "dusk")
        await _restore(limited, "dusk")
        ok(await limited.post("/v1/chats/c/fork", json={"chat_id": "d"}), 404)
    ok(await api.get("/v1/chats/d"), 404)


async def test_a_users_token_forks_into_a_chat_of_that_user(app: FastAPI, api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira")
    body = {"scopes": ["read", "write"], "ttl_s": 60, "user_id": "mira"}
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as limited:
        assert (await _fork(limited, "d"))["user_id"] == "mira"


async def test_a_read_only_token_lists_but_changes_nothing(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    await _checkpoint(api, "dusk")
    body = {"scopes": ["read"], "ttl_s": 60, "chat_id": "c"}
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as reader:
        for method, path, given in CALLS:
            url = f"/v1/chats/c{path.format(line=NAMELESS)}"
            ok(await reader.request(method, url, json=given), 200 if method == "GET" else 403)


async def test_an_erased_chat_leaves_no_row_of_any_line(
    api: httpx.AsyncClient, database: Database, tenant: str, rich: None
) -> None:
    await _checkpoint(api, "dusk")
    await _restore(api, "dusk")
    await _fork(api, "d", 20)
    assert all(len(rows) > 1 for rows in (await rows_of(database, chat_key(tenant, "c"))).values())
    ok(await api.delete("/v1/chats/c"), 204)
    assert set(map(len, (await rows_of(database, chat_key(tenant, "c"))).values())) == {0}
    ok(await api.delete("/v1/users/mira"), 204)
    assert set(map(len, (await rows_of(database, chat_key(tenant, "d"))).values())) == {0}


# --- at once ---


async def _fork_unless_busy(api: httpx.AsyncClient, name: str, chat_id: str) -> httpx.Response:
    """Fork, and try again as a client would if a slow machine makes the fork wait too long for the chat's row."""
    for _ in range(5):
        answer = await api.post(f"/v1/chats/{name}/fork", json={"chat_id": chat_id})
        if answer.status_code != 503:
            break
    return answer


async def test_of_racing_forks_into_one_chat_one_makes_it(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 40))
    await append(api, talk(1, 20), "b")
    forks = [_fork_unless_busy(api, name, "d") for name in ("c", "b") * 3]
    answers = await asyncio.gather(*forks)
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    assert {answer.json().get("code") for answer in answers} == {None, "chat_taken"}
    (made,) = [answer.json() for answer in answers if answer.status_code == 201]
    found = ok(await api.get("/v1/chats/d/messages"), 200)["items"]
    assert len(found) == made["counters"]["messages"]


async def test_of_racing_checkpoints_of_one_name_one_is_made(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 40))
    answers = await asyncio.gather(*(api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    assert len((await get(api, "/checkpoints"))["items"]) == 1


async def test_racing_restores_and_appends_come_one_after_the_other(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 16))
    await _checkpoint(api, "dusk")
    for round_ in range(4):
        appends = [
            api.post("/v1/chats/c/messages", json={"messages": [said(n, id=f"r{round_}-{n}")]}) for n in range(3)
        ]
        restores = [api.post("/v1/chats/c/checkpoints/dusk/restore") for _ in range(3)]
        mixed = [request for pair in zip(appends, restores, strict=True) for request in pair]
        answers = await asyncio.gather(*mixed)
        assert {answer.status_code for answer in answers} <= {201, 503}
        assert {answer.json()["code"] for answer in answers if answer.status_code == 503} <= {"chat_busy"}
    rows = await rows_of(database, chat_key(tenant, "c"))
    assert [chat["line_status"] for chat in rows["chats"]].count("current") == 1
    for chat in rows["chats"]:
        seqs = sorted(row["seq"] for row in rows["messages"] if row["line_id"] == chat["line_id"])
        assert seqs == list(range(1, chat["head_seq"] + 1)), "no line has a message that its head does not know"
        assert chat["message_count"] == len(seqs)


# --- what is asked ---


async def _everything(api: httpx.AsyncClient, line: str | None = None, *, chat_id: str = "c") -> dict[str, str]:
    """Return all answers about a line as text, with the ids of line and chat replaced by constants."""
    paths = ["", "/messages?limit=500", "/memos?limit=500", "/messages/m3/revisions", "/inclusion?limit=500"]
    paths += [f"/context?format={name}" for name in FORMATS]
    if line is None:
        return {path: await _read(api, chat_id, path) for path in paths}
    return {path: await _read(api, chat_id, f"{path}{'&' if '?' in path else '?'}line={line}", line) for path in paths}


async def _read(api: httpx.AsyncClient, chat_id: str, path: str, line: str | None = None) -> str:
    line = line or ok(await api.get(f"/v1/chats/{chat_id}"), 200)["line"]
    answer = await api.get(f"/v1/chats/{chat_id}{path}")
    assert answer.status_code == 200, answer.text
    return answer.text.replace(line, "LINE").replace(f'"chat_id":"{chat_id}"', '"chat_id":"CHAT"')


async def _move_on(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, first: int) -> None:
    """Continue from `first` until each answer about the line differs."""
    await append(api, talk(first, first + 15))
    ok(await api.patch("/v1/chats/c/messages/m3", json={"content": f"The lamp went out at {first}."}), 200)
    clock.step(2)
    await dispatcher.drain()
    await append(api, talk(first + 16, first + 17))


async def _checkpoint(api: httpx.AsyncClient, name: str) -> Json:
    return ok(await api.post("/v1/chats/c/checkpoints", json={"name": name}), 201)


async def _restore(api: httpx.AsyncClient, name: str) -> str:
    line: str = ok(await api.post(f"/v1/chats/c/checkpoints/{_quoted(name)}/restore"), 201)["line"]
    return line


async def _switch(api: httpx.AsyncClient, line: str) -> str:
    switched: str = ok(await api.post(f"/v1/chats/c/lines/{line}/switch"), 200)["line"]
    return switched


async def _fork(api: httpx.AsyncClient, chat_id: str, at_seq: int | None = None) -> Json:
    body = {"chat_id": chat_id} | ({} if at_seq is None else {"at_seq": at_seq})
    return ok(await api.post("/v1/chats/c/fork", json=body), 201)


async def _book(api: httpx.AsyncClient, chat_id: str) -> list[Json]:
    items: list[Json] = ok(await api.get(f"/v1/chats/{chat_id}/memos"), 200)["items"]
    return items


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _sorted(rows: Rows) -> Rows:
    return {table: sorted(rows[table], key=repr) for table in rows}
