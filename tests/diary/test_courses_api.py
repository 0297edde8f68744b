"""Diaries where a story takes another course: cut off, forked, restored, imported again."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.operations.queries import count_work
from tests.background import settle
from tests.diary.diaries import KAI, MIRA, change, contents, discard, entries, keep_diary, prompt, save, write
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, context, cut_off, get, ok, put, said, soft_delete, talk


async def keep_some(api: httpx.AsyncClient) -> None:
    """Entries of both origins at 2, 4 and 6 of six messages."""
    await keep_diary(api)
    for n in (2, 4, 6):
        await append(api, talk(n - 1, n))
        await save(api, f"Saved at {n}.")
        await write(api, f"Written at {n}.")


async def test_a_truncation_moves_only_personal_entries_to_the_head(
    api: httpx.AsyncClient,
) -> None:
    await keep_some(api)
    (_, _, third, _, fifth, _) = await entries(api)
    await change(api, fifth["id"], "Edited at 6.")
    await cut_off(api, 4)
    left = await entries(api)
    assert [(entry["content"], entry["at_seq"]) for entry in left] == [
        ("Saved at 2.", 2),
        ("Written at 2.", 2),
        ("Written at 4.", 3),
        ("Edited at 6.", 3),
        ("Written at 6.", 3),
    ]
    assert {entry["origin"] for entry in left[2:]} == {"person"}
    assert third["content"] not in await prompt(api)
    assert "Edited at 6." in await prompt(api)


async def test_a_number_is_never_given_twice(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await keep_some(api)
    await cut_off(api, 1)
    await save(api, "Another course.")
    async with database.raw() as connection:
        rows = await connection.fetch(
            "SELECT number, content FROM diary_entries WHERE chat_key = $1 ORDER BY number", chat_key(tenant, "c")
        )
    assert [tuple(row) for row in rows] == [
        (2, "Written at 2."),
        (4, "Written at 4."),
        (6, "Written at 6."),
        (7, "Another course."),
    ]


@pytest.mark.parametrize("gone", [soft_delete, cut_off])
async def test_an_entry_follows_the_newest_message_that_exists(
    api: httpx.AsyncClient, gone: Callable[..., Awaitable[object]]
) -> None:
    await keep_diary(api)
    await append(api, [said(n, sent_at=f"2024-02-{n:02}T10:00:00Z") for n in range(1, 6)])
    await gone(api, "m5" if gone is soft_delete else 5)
    await save(api, "It mattered.")
    await save(api, "It mattered.")
    await write(api, "By a person.")
    assert [(entry["content"], entry["at_seq"]) for entry in await entries(api)] == [
        ("It mattered.", 4),
        ("By a person.", 4),
    ]
    assert "## 02/04 — memo entry\nIt mattered." in await prompt(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 4}), 201)
    assert len(ok(await api.get("/v1/chats/d/diary"), 200)["items"]) == 2


async def test_an_entry_after_deletion_of_all_messages_comes_first(
    api: httpx.AsyncClient,
) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await soft_delete(api, "m1", "m2")
    await save(api, "It mattered.")
    assert [entry["at_seq"] for entry in await entries(api)] == [0]


async def test_a_fork_has_what_was_written_up_to_there(api: httpx.AsyncClient) -> None:
    await keep_some(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 4}), 201)
    forked = ok(await api.get("/v1/chats/d/diary"), 200)["items"]
    assert [entry["content"] for entry in forked] == ["Saved at 2.", "Written at 2.", "Saved at 4.", "Written at 4."]
    assert all(entry["in_prompt"] for entry in forked)
    assert len(await entries(api)) == 6


async def test_each_line_has_the_diary_of_its_checkpoint(api: httpx.AsyncClient) -> None:
    await keep_some(api)
    before = await context(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "six"}), 201)
    await append(api, talk(7, 8))
    await save(api, "Saved at 8.")
    left = (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/checkpoints/six/restore"), 201)
    assert len(await entries(api)) == 6
    assert {**await context(api), "line": None} == {**before, "line": None}
    assert len(await contents(api, line=left)) == 7
    assert "Saved at 8." in await prompt(api, line=left)


async def test_an_import_that_inserts_a_message_keeps_the_entries(api: httpx.AsyncClient) -> None:
    await keep_some(api)
    wanted = [*talk(1, 3), said(3, id="between", content="Something between."), *talk(4, 6)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert [(entry["content"], entry["at_seq"]) for entry in await entries(api)] == [
        ("Saved at 2.", 2),
        ("Written at 2.", 2),
        ("Saved at 4.", 5),
        ("Written at 4.", 5),
        ("Saved at 6.", 7),
        ("Written at 6.", 7),
    ]
    assert (await prompt(api)).count("memo entry") == 6
    await save(api, "Afterwards.")
    assert (await contents(api))[-1] == "Afterwards."


async def test_an_import_restores_no_deleted_entry(api: httpx.AsyncClient) -> None:
    await keep_some(api)
    for entry in (await entries(api))[2:]:
        await discard(api, entry["id"])
    wanted = [*talk(1, 3), said(3, id="between", content="Something between."), *talk(4, 6)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    assert await contents(api) == ["Saved at 2.", "Written at 2."]


async def test_an_import_does_not_copy_an_edited_entry_twice(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, talk(1, 4))
    model.script("Written by the service.")
    await settle(dispatcher, clock)
    (entry,) = await entries(api)
    await change(api, entry["id"], "Edited by a person.")
    wanted = [*talk(1, 2), said(1, id="between", content="Something between."), *talk(3, 4)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    (moved,) = await entries(api)
    assert (moved["content"], moved["at_seq"], moved["origin"]) == ("Edited by a person.", 5, "person")
    assert "Edited by a person." in await prompt(api)


@pytest.mark.parametrize("inserted", [[], [said(4, id="between", role="narrator", content="It rained.")]])
async def test_an_import_of_other_times_changes_the_dates(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, inserted: list[Json]
) -> None:
    await keep_diary(api, auto_write_turns=2)
    await append(api, [said(n, sent_at=f"2024-02-{n:02}T10:00:00Z") for n in range(1, 7)])
    model.script("Written by the service.")
    await settle(dispatcher, clock)
    await save(api, "By myself.")
    await save(api, "To be kept.")
    await write(api, "By a person.")
    (*_, kept, by_person) = await entries(api)
    ok(await api.patch(f"/v1/chats/c/diary/{kept['id']}", json={"kept": True}), 200)
    wanted = [said(n, sent_at=f"2024-03-{n:02}T10:00:00Z") for n in range(1, 7)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": [*wanted[:4], *inserted, *wanted[4:]]}), 200)
    assert [(entry["content"], entry["dated_at"], entry["stale"]) for entry in await entries(api)] == [
        ("Written by the service.", "2024-03-04T10:00:00Z", False),
        ("By myself.", "2024-03-06T10:00:00Z", False),
        ("To be kept.", "2024-03-06T10:00:00Z", False),
        ("By a person.", by_person["dated_at"], False),
    ]
    shown = await prompt(api)
    assert "## 03/04 — memo entry\nWritten by the service." in shown
    assert "## 03/06 — memo entry\nBy myself." in shown
    assert await settle(dispatcher, clock) == 0


async def test_a_fold_due_on_another_line_is_parked_until_it_returns(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    await keep_diary(api, lines=10)
    await append(api, talk(1, 2))
    left = (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "start"}), 201)
    for n in range(40):
        await write(api, f"Entry {n}.")
    model.otherwise = "Folded."
    clock.step(2)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    ok(await api.post("/v1/chats/c/checkpoints/start/restore"), 201)
    gate.release()
    await draining
    async with database.raw() as connection:
        assert [row for row in await count_work(connection) if row["tenant"] == tenant] == []
    ok(await api.post(f"/v1/chats/c/lines/{left}/switch"), 200)
    for _ in range(3):
        await settle(dispatcher, clock)
    assert (await get(api, "/diary/folded"))["entries"] == 39
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_an_erased_chat_keeps_no_diary(api: httpx.AsyncClient) -> None:
    await keep_some(api)
    ok(await api.delete("/v1/chats/c"), 204)
    await put(api, characters=[KAI, MIRA])
    assert await entries(api) == []


async def test_a_fork_omits_a_folded_diary_of_later_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = echo
    await keep_diary(api, lines=4)
    for n in range(1, 6):
        await append(api, talk(n, n))
        await write(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    assert "w4w" in (await get(api, "/diary/folded"))["text"]
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 3}), 201)
    folded = ok(await api.get("/v1/chats/d/diary/folded"), 200)["text"]
    assert "w4w" not in folded
    shown = ok(await api.get("/v1/chats/d/context"), 200)["segments"]
    assert "w4w" not in str([one["text"] for one in shown if one["name"] == "diary"])


async def test_a_fork_omits_a_fold_based_on_later_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = echo
    await keep_diary(api, lines=4)
    await append(api, talk(1, 6))
    for n in range(1, 4):
        await write(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    await soft_delete(api, "m5", "m6")
    for first in (4, 7):
        for n in range(first, first + 3):
            await write(api, f"I heard w{n}w.")
        await settle(dispatcher, clock)
    folded = await get(api, "/diary/folded")
    assert (folded["version"], "w1w" in folded["text"], "w8w" in folded["text"]) == (3, True, True)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 4}), 201)
    assert "w1w" not in ok(await api.get("/v1/chats/d/diary/folded"), 200)["text"]
    assert "w1w" not in str(ok(await api.get("/v1/chats/d/context"), 200)["segments"])
