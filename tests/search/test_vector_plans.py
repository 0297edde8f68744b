"""What a search with vectors reads: only rows of its chats, also without statistics."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.kit.db import Connection, Database, list_tables
from app.kit.ids import chat_key, user_key
from app.kit.owners import CHAT_WIDE
from app.passages.keys import list_wanted
from app.passages.lookup import MOST_NEAREST
from app.passages.words import list_patterns
from app.search.service import statements_in_use
from tests.memories.asking import write
from tests.search.finding import begin_long, message
from tests.search.test_plans import OTHERS, count_read, explain_prepared
from tests.statements import analysed, clear_statistics
from tests.talk import Json, append

MESSAGES = 800
MEMORIES = 40
MODEL = "of plans"

NAMES = ("recall", "of_chat", "of_user")

VECTOR = (
    "(SELECT '[' || string_agg((random() + g * 0 + n * 0)::text, ',') || ']' FROM generate_series(1, 4) AS g)::halfvec"
)

FILL = (
    f"""
    INSERT INTO vectors (chat_key, line_id, model_id, message_id, digest, part, vector)
    SELECT chat_key, '{CHAT_WIDE}', $2, message_id, digest, 0, {VECTOR.replace("n * 0", "seq * 0")}
    FROM messages WHERE chat_key = $1""",
    f"""
    INSERT INTO text_vectors (chat_key, line_id, model_id, digest, part, vector)
    SELECT owner_key, '{CHAT_WIDE}', $2, sha256(convert_to(content, 'UTF8')), 0,
        {VECTOR.replace("n * 0", "importance * 0")}
    FROM statements WHERE owner_key = $1""",
)

FILL_OTHERS = (
    f"""
    INSERT INTO vectors (chat_key, line_id, model_id, message_id, digest, part, vector)
    SELECT gen_random_uuid(), '{CHAT_WIDE}', $1, 'm' || n, 'd', 0, {VECTOR} FROM generate_series(1, 20000) AS n""",
    f"""
    INSERT INTO text_vectors (chat_key, line_id, model_id, digest, part, vector)
    SELECT gen_random_uuid(), '{CHAT_WIDE}', $1, 'd', 0, {VECTOR} FROM generate_series(1, 20000) AS n""",
)


@pytest.fixture
async def story(api: httpx.AsyncClient, database: Database, tenant: str) -> AsyncIterator[None]:
    """A chat of the user mira with vectors for its messages and memories, beside many rows of others."""
    await begin_long(api, search={"across_chats": True})
    await append(api, [message(n, f"We sail on, day {n}.") for n in range(7, MESSAGES + 1)])
    for number in range(MEMORIES):
        await write(api, f"Kai knows the harbour number {number}.")
    async with database.raw() as connection:
        model_id = await connection.fetchval(
            "INSERT INTO embedding_models (name, dimension, created_at, is_current) VALUES ($1, 4, now(), false)"
            " RETURNING model_id",
            MODEL,
        )
        for query in FILL:
            await connection.execute(query, chat_key(tenant, "c"), model_id)
        await connection.execute(OTHERS, timeout=300)
        for query in FILL_OTHERS:
            await connection.execute(query, model_id, timeout=300)
    yield
    async with database.raw() as connection:
        await connection.execute("TRUNCATE vectors, text_vectors, passages")
        await connection.execute("DELETE FROM embedding_models WHERE name = $1", MODEL)


async def explain(connection: Connection, tenant: str, name: str) -> Json:
    """The plan of a search for a word in the chat `c`, or for its user, with what was read."""
    key = chat_key(tenant, "c")
    row = await connection.fetchrow("SELECT line_id, now() AS now FROM chats WHERE chat_key = $1", key)
    assert row is not None
    patterns, keys = list_patterns(["lantern"]), list_wanted(["lantern"])
    wanted: tuple[Any, ...] = (row["now"], *[None] * 6, patterns)
    vector = ("[0.5,0.5,0.5,0.5]", MODEL)
    given: dict[str, tuple[Any, ...]] = {
        "recall": (
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
            *vector,
            True,
        ),
        "of_chat": (key, *wanted, row["line_id"], keys, False, *vector),
        "of_user": (user_key(tenant, "mira"), *wanted, keys, False, *vector),
    }
    return await explain_prepared(connection, getattr(statements_in_use(with_vectors=True), name), given[name])


@pytest.mark.usefixtures("story")
async def test_a_search_with_vectors_reads_its_chats_alone(database: Database, tenant: str) -> None:
    tables = [table.name for table in list_tables()]
    async with database.raw() as connection:
        await clear_statistics(connection, *tables)
        plans = {(name, "without statistics"): await explain(connection, tenant, name) for name in NAMES}
        async with analysed(connection, *tables):
            plans |= {(name, "with statistics"): await explain(connection, tenant, name) for name in NAMES}
    for case, plan in plans.items():
        assert MESSAGES <= count_read(plan, "vectors") <= 2 * MESSAGES + MOST_NEAREST, case
        assert MEMORIES <= count_read(plan, "text_vectors") <= 3 * MEMORIES, case
        assert count_read(plan, "messages") <= MESSAGES + 2 * MOST_NEAREST, case
        assert plan["Actual Rows"] >= 100, case
