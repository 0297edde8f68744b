"""To store a fact in a scope with thousands of keys, no more of them are read than the limit needs."""

import httpx

from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.owners import CHAT_WIDE
from app.knowledge.service import MAX_KEYS, MAX_STORED_KEYS
from tests.facts.asking import begin, call, set_fact
from tests.plans import counted
from tests.talk import append, talk

VALUES = 5
"""Each key has so many former values."""

FILL = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, origin, is_set, learnt_at)
    SELECT $1, '{CHAT_WIDE}', gen_random_uuid(), 'fact', 'key_' || lpad(n::text, 5, '0'),
        CASE WHEN v < {VALUES} OR n < $2 THEN 'value ' || v END, 'person', true, now() - make_interval(days => 9 - v)
    FROM generate_series(1, $3::int) AS n, generate_series(1, {VALUES}) AS v"""


async def fill(api: httpx.AsyncClient, database: Database, tenant: str, *, held: int, stored: int) -> None:
    """Store keys in a chat, the first of them with a value; those of the others were deleted."""
    await begin(api)
    async with database.raw() as connection:
        await connection.execute(FILL, chat_key(tenant, "c"), held + 1, stored)


async def test_former_values_are_not_counted(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await fill(api, database, tenant, held=500, stored=500)
    async with counted(database) as read:
        await set_fact(api, "pet", "a cat")
    assert read.statements <= 600


async def test_a_known_key_reads_no_other_values(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await fill(api, database, tenant, held=MAX_KEYS, stored=3 * MAX_KEYS)
    async with counted(database) as read:
        await set_fact(api, "key_00007", "a cat", status=200)
    assert read.statements <= 100
    assert read.returned <= 20


async def test_a_repeated_call_reads_each_key_once(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await fill(api, database, tenant, held=MAX_KEYS, stored=MAX_KEYS)
    await append(api, talk(1, 1))
    calls = (("set_fact", {"key": "key_00007", "value": "red"}), ("forget_fact", {"key": "key_00007"}))
    for tool, arguments in calls:
        first = await call(api, tool, arguments)
        async with counted(database) as read:
            assert await call(api, tool, arguments) == first
        assert read.statements <= 2 * MAX_KEYS + 100
        assert read.returned <= MAX_KEYS + 20


async def test_values_are_counted_up_to_the_limit(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await fill(api, database, tenant, held=MAX_KEYS, stored=MAX_STORED_KEYS - 1)
    async with counted(database) as read:
        assert (await set_fact(api, "pet", "a cat", status=409))["code"] == "too_many_keys"
    assert read.returned <= 20
    await set_fact(api, "key_00007", "green", status=200)
    await set_fact(api, "key_03000", "green", status=409)


async def test_the_keys_of_a_full_scope_are_counted_once(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await fill(api, database, tenant, held=10, stored=MAX_STORED_KEYS)
    async with counted(database) as read:
        assert (await set_fact(api, "pet", "a cat", status=409))["code"] == "too_many_keys"
    assert read.statements <= MAX_STORED_KEYS + 100
