"""A person asks for the model again where rules have read hundreds of ranges, which are scheduled step by step."""

import logging

import httpx
import pytest

from app.chats.heads import read_head
from app.consolidation.handlers import covered_through
from app.consolidation.regeneration import MOST_AT_ONCE
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.kit.work_queue import RETRY_DELAYS_S
from tests.book import due_rows
from tests.chats.rich import rows
from tests.consolidation.learning import begin, learn_all, quoted, turn
from tests.scripted_model import Reply, Request, ScriptedModel, refuses
from tests.talk import Json, append, cut_off, edit, ok, put, said

DECLINES = "I'm sorry, but I can't help with that request."
PATH = "/v1/chats/c/consolidation/regenerate"
RANGES = 230
LAST = 2 * RANGES

# The chat has read so many ranges of a turn each by rules.
READ_BY_RULE = f"""
    INSERT INTO consolidations (chat_key, line_id, first_seq, last_seq, learnt_at, generated_at, origin, filters,
        source_hash, current_hash, prompt_version)
    SELECT r.chat_key, r.line_id, 2 * n - 1, 2 * n, r.learnt_at + make_interval(secs => n), r.generated_at,
        'extractive', r.filters, '\\x00', '\\x00', 'extractive/1'
    FROM consolidations AS r CROSS JOIN generate_series(2, {RANGES}) AS n WHERE r.chat_key = $1 AND r.first_seq = 1"""


@pytest.fixture(autouse=True)
async def many_ranges(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    """A chat whose ranges were all read by rules."""
    await begin(api)
    await turn(api, 1, "My brother Tomas works as a ferryman at the harbour since 2011, I promise.")
    model.script(DECLINES, DECLINES)
    await learn_all(dispatcher, clock)
    await switch(api, enabled=False)
    await append(api, [said(n) for n in range(3, LAST + 1)])
    await switch(api, enabled=True)
    async with database.raw() as connection:
        await connection.execute(READ_BY_RULE, chat_key(tenant, "c"))


async def switch(api: httpx.AsyncClient, *, enabled: bool) -> None:
    """Switch learning on or off."""
    await put(api, status=200, settings={"consolidation": {"enabled": enabled}})


async def ask(api: httpx.AsyncClient, **wanted: int) -> Json:
    return ok(await api.post(PATH, json=wanted), 202)


async def starts_of_due(database: Database, tenant: str) -> list[int]:
    """Where the ranges begin that are due."""
    found = await due_rows(database, tenant, "consolidation")
    return [row["at_seq"] for row in found if row["key"].startswith("range:")]


async def left(connection: Connection, tenant: str, chat: str = "c") -> list[tuple[int, str]]:
    """Each of the items that hold what is left, as its position and its spans."""
    rows = await connection.fetch(
        "SELECT at_seq, payload ->> 'again' AS spans FROM work WHERE owner_key = $1 AND key LIKE 'again%'",
        chat_key(tenant, chat),
    )
    return [(row["at_seq"], row["spans"]) for row in rows]


async def count_read_by_model(connection: Connection, tenant: str, chat: str = "c") -> int:
    read = "SELECT count(*)::int FROM consolidations WHERE chat_key = $1 AND origin = 'model'"
    return int(await connection.fetchval(read, chat_key(tenant, chat)))


async def test_many_ranges_are_scheduled_step_by_step(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = await ask(api)
    assert (asked["ranges"], asked["first_seq"], asked["last_seq"]) == (RANGES, 1, LAST)
    assert await starts_of_due(database, tenant) == list(range(1, 2 * MOST_AT_ONCE, 2))
    async with database.raw() as connection:
        assert await left(connection, tenant) == [(201, f"[[201, {LAST}]]")]
    part = await ask(api, first_seq=1, last_seq=4)
    assert (part["ranges"], part["work_id"]) == (2, asked["work_id"])
    model.otherwise, calls = "NONE", len(model.requests)
    with caplog.at_level(logging.INFO, "app.kit.work_queue"):
        await learn_all(dispatcher, clock)
    found = [one for one in caplog.records if one.getMessage() == "scheduled consolidation"]
    scheduled = [len(one.__dict__["fields"]["work"]) for one in found]
    assert scheduled == [1, MOST_AT_ONCE, RANGES - 2 * MOST_AT_ONCE]
    assert len(model.requests) == calls + RANGES
    assert ok(await api.post(PATH), 200)["ranges"] == 0


async def test_a_range_that_waits_for_a_retry_holds_back_none(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await ask(api)

    def fail_once(request: Request) -> str | Reply:
        return refuses(500) if "Tomas" in str(quoted(request)) else "NONE"

    model.otherwise = fail_once
    await dispatcher.drain()
    assert await starts_of_due(database, tenant) == [1]
    async with database.raw() as connection:
        assert await count_read_by_model(connection, tenant) == RANGES - 1


async def test_an_edit_after_a_failure_loses_nothing(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await ask(api)
    async with database.raw() as connection:
        await connection.execute(
            "UPDATE work SET failed_at = $2 WHERE owner_key = $1 AND key = 'range:1'", chat_key(tenant, "c"), clock()
        )
    await edit(api, "m2", content="Since 2011!")
    await edit(api, "m2", content="Hm.")
    model.otherwise = "NONE"
    await learn_all(dispatcher, clock)
    async with database.raw() as connection:
        assert await count_read_by_model(connection, tenant) == RANGES


async def test_overlapping_requests_read_each_range_once(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    async with database.raw() as connection:
        await ask(api, last_seq=300)
        assert await left(connection, tenant) == [(201, "[[201, 300]]")]
        await ask(api)
        assert await left(connection, tenant) == [(201, f"[[201, {LAST}]]")]
        await ask(api, first_seq=101)
        assert await left(connection, tenant) == [(301, f"[[301, {LAST}]]")]
        await ask(api, first_seq=299)
        assert await left(connection, tenant) == []
    model.otherwise, calls = DECLINES, len(model.requests)
    await learn_all(dispatcher, clock)
    assert len(model.requests) == calls + 2 * RANGES


async def test_a_second_request_keeps_what_is_left_of_a_first(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    async with database.raw() as connection:
        await ask(api, first_seq=241)
        assert await left(connection, tenant) == [(441, f"[[441, {LAST}]]")]
        await ask(api, last_seq=204)
        assert await left(connection, tenant) == [(201, f"[[201, 204], [441, {LAST}]]")]


async def test_a_second_request_leaves_ranges_that_are_due_alone(
    api: httpx.AsyncClient, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await ask(api)
    async with database.raw() as connection:
        await connection.execute(
            """UPDATE work SET attempts = 2, run_after = $2, lease = gen_random_uuid(),
                leased_until = clock_timestamp() + interval '10 seconds' WHERE owner_key = $1 AND key = 'range:3'""",
            chat_key(tenant, "c"),
            clock.step(60),
        )
    before, former = await due_rows(database, tenant, "consolidation"), (await rows(database, tenant))["chats"]
    await ask(api, first_seq=3, last_seq=4)
    assert await due_rows(database, tenant, "consolidation") == before
    assert [one["revision"] for one in (await rows(database, tenant))["chats"]] == [one["revision"] for one in former]


async def test_switching_learning_off_cancels_the_request(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    asked, calls = await ask(api), len(model.requests)
    await switch(api, enabled=False)
    assert await due_rows(database, tenant, "consolidation") == []
    await switch(api, enabled=True)
    await learn_all(dispatcher, clock)
    assert len(model.requests) == calls
    again = await ask(api)
    assert (again["ranges"], again["first_seq"]) == (RANGES, 1)
    assert again["work_id"] != asked["work_id"]


@pytest.mark.parametrize(("from_seq", "expected"), [(251, [(201, "[[201, 250]]")]), (250, [(201, "[[201, 248]]")])])
async def test_a_cut_off_shortens_what_is_left(
    from_seq: int,
    expected: list[tuple[int, str]],
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await ask(api)
    await cut_off(api, from_seq)
    async with database.raw() as connection:
        assert await left(connection, tenant) == expected
    model.otherwise = "NONE"
    await learn_all(dispatcher, clock)
    async with database.raw() as connection:
        assert await count_read_by_model(connection, tenant) == (from_seq - 1) // 2


async def test_a_cut_off_removes_only_spans_after_it(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await ask(api, first_seq=241)
    await ask(api, last_seq=204)
    await cut_off(api, 231)
    async with database.raw() as connection:
        assert await left(connection, tenant) == [(201, "[[201, 204]]")]
    await cut_off(api, 101)
    async with database.raw() as connection:
        assert await left(connection, tenant) == []


async def test_a_fork_reads_its_messages_again(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await ask(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "whole"}), 201)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "part", "at_seq": 300}), 201)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "short", "at_seq": 100}), 201)
    async with database.raw() as connection:
        assert await left(connection, tenant, "whole") == [(201, f"[[201, {LAST}]]")]
        assert await left(connection, tenant, "part") == [(201, "[[201, 300]]")]
        assert await left(connection, tenant, "short") == []
    model.otherwise = "NONE"
    await learn_all(dispatcher, clock)
    async with database.raw() as connection:
        read = [await count_read_by_model(connection, tenant, chat) for chat in ("c", "whole", "part", "short")]
    assert read == [RANGES, RANGES, 150, 50]


async def test_a_restored_line_goes_on_with_what_is_left(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await ask(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    model.otherwise = "NONE"
    await learn_all(dispatcher, clock)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    calls = len(model.requests)
    await learn_all(dispatcher, clock)
    assert len(model.requests) == calls + RANGES
    assert ok(await api.post(PATH), 200)["ranges"] == 0


async def test_no_cut_waits_for_ranges_that_are_not_due_yet(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, [said(LAST + 1)])
    await ask(api)
    async with database.unit_of_work() as db_session:
        chat = chat_key(tenant, "c")
        line_id = await db_session.raw.fetchval("SELECT line_id FROM chats WHERE chat_key = $1", chat)
        head = await read_head(db_session, chat, line_id)
        assert head is not None
        assert await covered_through(db_session, head, 199, LAST) == 198
        assert await covered_through(db_session, head, 201, LAST) == LAST


async def test_asking_again_ends_the_wait_for_a_retry(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await ask(api, last_seq=2)
    model.otherwise = refuses(503)
    for delay_s in (0, *RETRY_DELAYS_S[:3]):
        clock.step(delay_s)
        await dispatcher.drain()
    model.otherwise, calls = "NONE", len(model.requests)
    await dispatcher.drain()
    assert len(model.requests) == calls, "the range waits for its next retry"
    await ask(api, last_seq=2)
    await dispatcher.drain()
    assert len(model.requests) == calls + 1
    assert await starts_of_due(database, tenant) == []


async def test_an_edit_of_a_range_that_is_left_keeps_the_request(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await ask(api)
    await edit(api, "m301", content="My brother Tomas moved to Bergen in 2019.")
    (item,) = [one for one in await due_rows(database, tenant, "consolidation") if one["key"] == "range:301"]
    assert "again" in (item["payload"] or {})
