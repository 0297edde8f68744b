"""What a search reads, also once PostgreSQL has statistics."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.passages.keys import hash_keys, list_wanted
from app.passages.lookup import MOST_IN_INDEX
from app.passages.vocabulary import IN_INDEX
from app.passages.words import list_patterns
from app.search.service import statements_in_use
from app.search.spelling import list_neighbours
from tests.background import settle
from tests.plans import fetch_plan, list_nodes, list_scans
from tests.search.finding import begin_long, message
from tests.statements import analysed, clear_statistics
from tests.talk import Json, append

OTHERS = """
    INSERT INTO passages (chat_key, line_id, message_id, digest, keys)
    SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 'm' || n, 'd',
        ARRAY(SELECT (random() * 4e9 - 2e9)::int + n * 0 FROM generate_series(1, 20))
    FROM generate_series(1, 20000) AS n"""


async def begin_story(api: httpx.AsyncClient) -> None:
    """A chat of 3,000 messages, one of which has a lantern."""
    await begin_long(api)
    for first in (7, 1_007, 2_007):
        await append(api, [message(n, f"We sail on, day {n}.") for n in range(first, first + 1_000)])


async def explain(connection: Connection, tenant: str, term: str, name: str) -> Json:
    """The plan of a search for a word in the chat `c`, for any values as the service has it, with what was read."""
    key = chat_key(tenant, "c")
    row = await connection.fetchrow("SELECT line_id, now() AS now FROM chats WHERE chat_key = $1", key)
    assert row is not None
    patterns, keys = list_patterns([term]), list_wanted([term])
    given: tuple[Any, ...] = (
        key,
        row["line_id"],
        None,
        row["now"],
        None,
        [],
        [],
        patterns,
        2_000,
        keys,
        [],
        "weighs",
        False,
    )
    if name == "of_chat":
        given = (key, row["now"], *[None] * 6, patterns, row["line_id"], keys, False)
    return await explain_prepared(connection, getattr(statements_in_use(), name), given)


async def explain_prepared(connection: Connection, statement: str, given: Sequence[Any]) -> Json:
    """The plan of a prepared statement, with what was read."""
    await connection.execute(f"PREPARE search AS {statement}")
    values = ", ".join(map(_quote, given))
    try:
        return await fetch_plan(connection, f"EXECUTE search ({values})")
    finally:
        await connection.execute("DEALLOCATE search")


def _quote(value: object) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, list) and value and isinstance(value[0], int):
        return f"ARRAY{value}::int[]"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_quote, value))}]::text[]"
    return "'" + str(value).replace("'", "''") + "'"


def count_read(plan: Json, table: str) -> float:
    """The rows of a table that a plan has read."""
    scans = list_scans(plan, table)
    assert scans
    return float(sum((node["Actual Rows"] + _count_removed(node)) * node["Actual Loops"] for node in scans))


def _count_removed(node: Json) -> float:
    return float(node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))


async def test_recall_reads_the_newest_messages_without_an_index(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await begin_story(api)
    async with database.raw() as connection, analysed(connection, "messages"):
        plan = await explain(connection, tenant, "lantern", "recall")
    assert 1_000 <= count_read(plan, "messages") <= 1_010


@pytest.mark.parametrize("statement", ["recall", "of_chat"])
async def test_with_the_index_a_search_reads_what_it_finds(
    api: httpx.AsyncClient,
    database: Database,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    tenant: str,
    statement: str,
) -> None:
    await begin_story(api)
    clock.step(5)
    await dispatcher.drain()
    async with database.raw() as connection:
        await connection.execute(OTHERS, timeout=300)
        await clear_statistics(connection, "messages", "passages", "chats")
        plans = [await explain(connection, tenant, "lantern", statement)]
        async with analysed(connection, "messages", "passages", "chats"):
            plans.append(await explain(connection, tenant, "lantern", statement))
    for plan in plans:
        assert count_read(plan, "messages") <= 70, plan
        assert count_read(plan, "passages") <= 5, plan
        assert plan["Actual Rows"] == 1


@pytest.mark.parametrize("statement", ["recall", "of_chat"])
async def test_a_word_of_all_messages_reads_few(
    api: httpx.AsyncClient,
    database: Database,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    tenant: str,
    statement: str,
) -> None:
    await begin_story(api)
    clock.step(5)
    await dispatcher.drain()
    async with database.raw() as connection:
        plan = await explain(connection, tenant, "sail", statement)
    assert MOST_IN_INDEX <= count_read(plan, "messages") <= MOST_IN_INDEX + 64 + plan["Actual Rows"]


async def test_the_words_of_a_chat_are_counted_by_the_index(
    api: httpx.AsyncClient, database: Database, dispatcher: Dispatcher, clock: SteppedClock, tenant: str
) -> None:
    await begin_story(api)
    await settle(dispatcher, clock)
    key = chat_key(tenant, "c")
    given = [key, hash_keys(key, list_neighbours("lantren")), hash_keys(key, ["lantren"])]
    async with database.raw() as connection:
        await connection.execute(OTHERS, timeout=300)
        await clear_statistics(connection, "passages")
        plans = [await explain_prepared(connection, IN_INDEX, given)]
        async with analysed(connection, "passages"):
            plans.append(await explain_prepared(connection, IN_INDEX, given))
    for plan in plans:
        assert count_read(plan, "passages") <= 5, plan
        assert plan["Actual Rows"] == 2, "the lantern, and the number of messages with the term"


@pytest.mark.parametrize(("name", "parameters"), [("recall", 16), ("of_chat", 14), ("of_user", 13)])
async def test_the_vector_of_a_query_is_parsed_once(database: Database, name: str, parameters: int) -> None:
    statement = getattr(statements_in_use(with_vectors=True), name)
    given = ", ".join(["NULL"] * parameters)
    async with database.raw() as connection:
        await connection.execute(f"PREPARE search AS {statement}")
        try:
            plan = await connection.fetchval(f"EXPLAIN (VERBOSE, FORMAT json) EXECUTE search ({given})")
        finally:
            await connection.execute("DEALLOCATE search")
    parsed = [node for node in list_nodes(plan[0]["Plan"]) if "::halfvec" in str({**node, "Plans": []})]
    assert parsed
    assert all(node.get("Parent Relationship") == "InitPlan" for node in parsed), parsed
