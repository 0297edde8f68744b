"""What each change of a chat does to its revision. The triggers of all tests check that no change forgets it."""

from collections.abc import Callable

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from app.chats.heads import lock_line
from app.chats.revision import record, record_append, record_nothing
from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.owners import Owner
from app.registry import LAYERS
from tests.chats.renames import rename
from tests.revisions import Numbers, list_numbers, read_now_ms, read_numbers
from tests.scripted_model import ScriptedModel, refuses
from tests.statements import watched
from tests.talk import (
    Act,
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
    talk_with_memos,
)

NAMES = {name for layer in LAYERS for name in (layer.name, *layer.also_known_as)}
"""The names under which layers record changes."""


async def _post(api: httpx.AsyncClient, path: str, body: object = None, status: int = 201) -> object:
    return ok(await api.post(f"/v1/chats/c{path}", json=body), status)


async def _write_memo(api: httpx.AsyncClient) -> object:
    return await _post(api, "/memos", {"text": "They have met before."})


async def _restore(api: httpx.AsyncClient) -> object:
    return await _post(api, "/checkpoints/dusk/restore")


async def _switch(api: httpx.AsyncClient) -> object:
    abandoned = next(line["line"] for line in (await get(api, "/lines"))["items"] if not line["current"])
    return await _post(api, f"/lines/{abandoned}/switch", status=200)


async def _reimport(api: httpx.AsyncClient, *ids: int) -> object:
    return ok(await api.put("/v1/chats/c/messages", json={"messages": [said(n) for n in ids]}), 200)


CHANGES: list[tuple[str, Act, set[str]]] = [
    ("edit", lambda api: edit(api, "m2", content="Another lamp."), {"messages", *NAMES}),
    ("metadata of a message", lambda api: edit(api, "m2", metadata={"mood": "calm"}), {"messages"}),
    ("pin", lambda api: edit(api, "m2", pinned=True), {"messages"}),
    ("swipe", lambda api: add_swipe(api, "m2", "Another lamp."), {"messages", *NAMES}),
    ("hide", lambda api: hide(api, (1, 2)), {"messages", *NAMES}),
    ("delete", lambda api: soft_delete(api, "m2"), {"messages", *NAMES}),
    ("cut off", lambda api: cut_off(api, 3), {"messages", *NAMES}),
    ("settings", lambda api: put(api, status=200, settings={"time": True}), {"settings", *NAMES}),
    ("metadata", lambda api: put(api, status=200, metadata={"title": "Lamps"}), {"settings", *NAMES}),
    ("rename", lambda api: rename(api, "Kai", "Cay"), {"messages", "settings", *NAMES}),
    ("memo", _write_memo, {"memos"}),
    ("diary", lambda api: _post(api, "/diary", {"content": "A lamp.", "character": "Kai"}), {"diary"}),
    ("break", lambda api: api.put("/v1/chats/c/scenes/breaks/2"), {"scenes", "recap"}),
    ("recap", lambda api: api.put("/v1/chats/c/recap", json={"text": "They met."}), {"scenes", "recap"}),
    ("summary", lambda api: api.put("/v1/chats/c/summary", json={"text": "They met."}), {"summary"}),
    ("checkpoint", lambda api: _post(api, "/checkpoints", {"name": "dawn"}), {"line"}),
    ("delete a checkpoint", lambda api: api.delete("/v1/chats/c/checkpoints/dusk"), {"line"}),
    ("re-import in place", lambda api: _reimport(api, 1, 2, 3), {"messages", *NAMES}),
]

NO_CHANGES: list[tuple[str, Act]] = [
    ("retried append", lambda api: append(api, talk(1, 4), status=200)),
    ("refused append", lambda api: append(api, [said(1, content="Other words.")], status=409)),
    ("edit that leaves all as it is", lambda api: edit(api, "m2", content=said(2)["content"])),
    ("swipe that is selected", lambda api: select_swipe(api, "m2", 0)),
    ("hidden already", lambda api: hide(api, (1, 2), hidden=False)),
    ("cut off after the end", lambda api: cut_off(api, 5)),
    ("re-import of the same", lambda api: _reimport(api, 1, 2, 3, 4)),
    ("rename to the same name", lambda api: rename(api, "Kai", "Kai")),
    ("fork", lambda api: _post(api, "/fork", {"chat_id": "d"})),
    ("reads", lambda api: _read_all(api)),
    ("unknown message", lambda api: edit(api, "m9", 404, content="No.")),
]


async def _read_all(api: httpx.AsyncClient) -> None:
    await context(api)
    for path in ("", "/messages", "/memos", "/diary", "/scenes", "/lines", "/checkpoints", "/state", "/inclusion"):
        await get(api, path)


@pytest.fixture
async def chat(api: httpx.AsyncClient, database: Database, tenant: str) -> Numbers:
    """Four messages, a checkpoint, and the numbers then."""
    await put(api, characters=[{"name": "Kai"}])
    await append(api, talk(1, 4))
    await _post(api, "/checkpoints", {"name": "dusk"})
    return await read_numbers(database, tenant)


async def test_a_new_chats_revision_is_the_current_time(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    before = await read_now_ms(database)
    await put(api)
    found = await read_numbers(database, tenant)
    assert before <= found.revision <= await read_now_ms(database)
    assert (found.base, found.changed) == (found.revision, {"line"})


async def test_the_first_append_sets_the_revision_to_the_time(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    before = await read_now_ms(database)
    await append(api, talk(1, 2))
    found = await read_numbers(database, tenant)
    assert before <= found.revision == found.base <= await read_now_ms(database)
    assert found.changed == {"line"}


async def test_an_append_leaves_the_base_unless_it_fills_a_batch(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers
) -> None:
    await append(api, talk(5, 6))
    found = await read_numbers(database, tenant)
    assert (found.revision, found.base, found.changed) == (chat.revision + 1, chat.base, {"messages"})
    await append(api, talk(7, 8))
    found = await read_numbers(database, tenant)
    assert (found.revision, found.changed) == (chat.revision + 2, {"messages", "memos", "work"})
    assert found.base == found.revision, "a batch is full, and contexts may be cut where it ends"


async def test_an_append_with_a_cut_raises_the_base(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await talk_with_memos(api, dispatcher, clock, 32)
    before = await read_numbers(database, tenant)
    await append(api, talk(33, 40))
    clock.step(2)
    await dispatcher.drain()
    await append(api, talk(41, 48))
    found = await read_numbers(database, tenant)
    assert (await get(api, ""))["anchor_seq"] > 1
    assert before.base < found.base <= found.revision


@pytest.mark.parametrize(("act", "changed"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
async def test_a_change_raises_it_by_one(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers, act: Act, changed: set[str]
) -> None:
    await act(api)
    found = await read_numbers(database, tenant)
    assert (found.line, found.revision, found.base) == (chat.line, chat.revision + 1, chat.revision + 1)
    assert changed <= found.changed <= changed | {"memos"}, "the first change of a layer also writes the empty window"


@pytest.mark.parametrize("act", [act for _, act in NO_CHANGES], ids=[name for name, _ in NO_CHANGES])
async def test_a_request_without_a_change_keeps_the_revision(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers, act: Act
) -> None:
    await act(api)
    assert await read_numbers(database, tenant) == chat


async def test_a_transaction_that_is_rolled_back_leaves_it(database: Database, tenant: str, chat: Numbers) -> None:
    async def fail() -> None:
        async with database.unit_of_work() as db_session:
            await lock_line(db_session, chat_key(tenant, "c"), chat.line)
            await db_session.write_last()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await read_numbers(database, tenant) == chat


@pytest.mark.parametrize("begin", [_restore, lambda api: _reimport(api, 2, 1)], ids=["restore", "re-import"])
async def test_a_new_line_continues_the_revision_of_the_former_line(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers, begin: Act
) -> None:
    for n in range(5, 8):
        await append(api, [said(n)])
    former = await read_numbers(database, tenant)
    await begin(api)
    found = await read_numbers(database, tenant)
    assert found.line != former.line
    assert (found.revision, found.base, found.changed) == (former.revision + 1, former.revision + 1, {"line"})
    left = next(line for line in await list_numbers(database, tenant) if line.line == former.line)
    assert (left.revision, left.changed) == (former.revision + 1, {"line", "work"})


async def test_switching_to_a_line_raises_the_revision_by_one(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers
) -> None:
    await _restore(api)
    for n in range(5, 8):
        await append(api, [said(n)])
    former = await read_numbers(database, tenant)
    await _switch(api)
    found = await read_numbers(database, tenant)
    assert found == Numbers(chat.line, former.revision + 1, former.revision + 1, frozenset({"line"}))
    ok(await api.post(f"/v1/chats/c/lines/{chat.line}/switch"), 200)
    assert await read_numbers(database, tenant) == found


async def test_a_change_of_the_chat_raises_the_revision_of_all_lines(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers
) -> None:
    before = {line.line: line.revision for line in await list_numbers(database, tenant)}
    await put(api, status=200, metadata={"title": "Lamps"})
    after = {line.line: line.revision for line in await list_numbers(database, tenant)}
    assert after == {line: revision + 1 for line, revision in before.items()}


async def test_a_forks_first_revision_is_the_current_time(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers
) -> None:
    for n in range(5, 60):
        await append(api, [said(n)])
    before = await read_now_ms(database)
    await _post(api, "/fork", {"chat_id": "whole"})
    await _post(api, "/fork", {"chat_id": "part", "at_seq": 4})
    for chat_id in ("whole", "part"):
        found = await read_numbers(database, tenant, chat_id)
        assert before <= found.revision == found.base <= await read_now_ms(database)


async def test_a_recreated_chat_has_greater_revisions(
    api: httpx.AsyncClient, database: Database, tenant: str, chat: Numbers
) -> None:
    for content in ("One.", "Two.", "Three."):
        await edit(api, "m2", content=content)
    former = await read_numbers(database, tenant)
    ok(await api.delete("/v1/chats/c"), 204)
    assert await list_numbers(database, tenant) == []
    await append(api, talk(1, 4))
    assert (await read_numbers(database, tenant)).base > former.revision


async def test_outcomes_raise_the_revision_but_claims_do_not(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    before = await read_numbers(database, tenant)
    owner = Owner.of_line(tenant, chat_key(tenant, "c"), before.line)
    async with database.unit_of_work() as db_session:
        (claimed,) = await work_queue.claim(db_session, owner, limit=9, now=clock())
    async with database.unit_of_work() as db_session:
        await work_queue.renew(db_session, [claimed])
        await work_queue.release(db_session, claimed)
    assert await read_numbers(database, tenant) == before
    model.otherwise, answer = refuses(400), model.otherwise
    await dispatcher.drain()
    model.otherwise = answer
    failed = await read_numbers(database, tenant)
    assert (failed.revision, failed.changed) == (before.revision + 1, {"work", "memos"})
    clock.step(60)
    await dispatcher.drain()
    assert (await get(api, "/memos"))["items"][0]["status"] == "ready"
    made = await read_numbers(database, tenant)
    assert (made.revision, made.base, made.changed) == (before.revision + 2, before.revision + 2, {"work", "memos"})


async def test_work_that_is_tried_again_raises_it(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await append(api, talk(1, 16))
    model.otherwise = refuses(503)
    for _ in range(work_queue.MAX_ATTEMPTS):
        clock.step(3_600)
        await dispatcher.drain()
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 2}
    before = await read_numbers(database, tenant)
    ok(await api.post("/v1/work/retry", json={"chat_id": "c"}), 200)
    retried = await read_numbers(database, tenant)
    assert (retried.revision, retried.changed) == (before.revision + 1, {"work", "memos"})
    (first, _) = ok(await api.get("/v1/work", params={"chat_id": "c"}), 200)["items"]
    ok(await api.post(f"/v1/work/{first['id']}/retry"), 202)
    assert (await read_numbers(database, tenant)).revision == before.revision + 2
    ok(await api.post("/v1/work/retry", json={"chat_id": "c"}), 200)
    assert (await read_numbers(database, tenant)).revision == before.revision + 2, "nothing had failed"


async def test_an_append_takes_three_statements(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    async with watched(app.state.database) as statements:
        await append(api, [said(5)])
    assert [text.split()[0] for text in statements.asked] == ["SELECT", "WITH", "UPDATE"]


# --- what a transaction says of itself ---


async def test_an_unrecorded_change_counts_as_a_change_of_the_line(
    database: Database, tenant: str, chat: Numbers
) -> None:
    async with database.unit_of_work() as db_session:
        await lock_line(db_session, chat_key(tenant, "c"), chat.line)
    assert await read_numbers(database, tenant) == Numbers(
        chat.line, chat.revision + 1, chat.revision + 1, frozenset({"line"})
    )


@pytest.mark.parametrize("says", [record_append, record_nothing])
async def test_two_changes_in_one_transaction_raise_the_base(
    database: Database, tenant: str, chat: Numbers, says: Callable[..., None]
) -> None:
    """The second verb knows nothing of what the first one did."""
    async with database.unit_of_work() as db_session:
        for _ in range(2):
            await lock_line(db_session, chat_key(tenant, "c"), chat.line)
        says(db_session, (chat_key(tenant, "c"), chat.line))
    found = await read_numbers(database, tenant)
    assert (found.revision, found.base) == (chat.revision + 1, chat.revision + 1)


async def test_only_a_locked_line_can_be_written(database: Database, tenant: str, chat: Numbers) -> None:
    with pytest.raises(LookupError, match="is not locked"):
        async with database.unit_of_work() as db_session:
            record(db_session, (chat_key(tenant, "c"), chat.line), "memos")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET content = 'other' WHERE chat_key = $1",
        "DELETE FROM messages WHERE chat_key = $1",
        "UPDATE chats SET language = 'de' WHERE chat_key = $1",
        "INSERT INTO revisions (chat_key, line_id, seq, number, swipe, role, content, replaced_at)"
        " SELECT chat_key, line_id, 1, 1, 0, 'user', 'x', now() FROM chats WHERE chat_key = $1",
    ],
    ids=["update", "delete", "row", "insert"],
)
async def test_the_triggers_of_the_tests_refuse_a_commit_without_it(
    database: Database, tenant: str, chat: Numbers, change: str
) -> None:
    with pytest.raises(asyncpg.RaiseError, match="without raising its revision"):
        async with database.unit_of_work() as db_session:
            await db_session.raw.execute(change, chat_key(tenant, "c"))
    assert await read_numbers(database, tenant) == chat


async def test_the_test_triggers_reject_an_unnamed_change(database: Database, tenant: str, chat: Numbers) -> None:
    line = (chat_key(tenant, "c"), chat.line)

    async def edit_as_memos() -> None:
        async with database.unit_of_work() as db_session:
            await lock_line(db_session, *line)
            record(db_session, line, "memos")
            await db_session.raw.execute("UPDATE messages SET content = 'other' WHERE chat_key = $1", line[0])

    with pytest.raises(asyncpg.RaiseError, match="wrote messages"):
        await edit_as_memos()
