"""The plan of the query of blocks among many statements: index lookups alone, and no more than are needed.

Nothing before the newest `replace` is read, and no memories after the most important ones that hold.
"""

from typing import Any

import asyncpg
import orjson

from app.blocks.queries import BLOCKS_OF_LINE
from tests.plans import INDEX_SCANS, count_blocks, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions

USERS = 2_000
OPERATIONS = 50

FILL = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, operation, origin, learnt_at)
    SELECT md5('user' || n % {USERS})::uuid, '00000000-0000-0000-0000-000000000000', md5('s' || n)::uuid, 'block',
        'user', 'text ' || n, CASE WHEN n / {USERS} = {OPERATIONS} - 10 THEN 'replace' ELSE 'append' END, 'tool',
        now() + make_interval(secs => n)
    FROM generate_series(0, {USERS} * {OPERATIONS} - 1) AS n;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq)
    SELECT md5('chat' || n % {USERS})::uuid, md5('line' || n % {USERS})::uuid, md5('s' || n)::uuid, 'blocks',
        md5('s' || n)::uuid, md5('user' || n % {USERS})::uuid, n / {USERS}
    FROM generate_series(0, {USERS} * {OPERATIONS} - 1) AS n;
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT md5('chat' || n)::uuid, md5('line' || n)::uuid, 'many', 'chat' || n, 'user' || n, md5('user' || n)::uuid,
        now(), now(), now()
    FROM generate_series(0, {USERS} - 1) AS n;
    ANALYZE statements, teachings, chats"""

QUERY = f"""
    SELECT ({BLOCKS_OF_LINE}) FROM chats c CROSS JOIN (SELECT NULL::int AS seq) AS b
    WHERE c.chat_key = md5('chat7')::uuid"""


MEMORIES = 100_000
OF_ONE = 1_000

# Of the user 7, who has most of them: each tenth of the most important memories has a newer text of less importance,
# and another tenth was taken back.
FILL_MEMORIES = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT md5('user' || CASE WHEN n < {OF_ONE} THEN 7 ELSE n % {USERS} END)::uuid,
        '00000000-0000-0000-0000-000000000000'::uuid, md5('m' || n)::uuid, 'memory', 'memory ' || n, 'text ' || n,
        CASE WHEN n < {OF_ONE} THEN 0.7 + n * 0.0001 ELSE n % 10 / 10.0 END, 'model', now() + make_interval(secs => n)
    FROM generate_series(0, {MEMORIES} - 1) AS n
    UNION ALL
    SELECT md5('user7')::uuid, '00000000-0000-0000-0000-000000000000'::uuid, md5('newer' || n)::uuid, 'memory',
        'memory ' || n, 'newer ' || n, 0.5, 'model', now() + make_interval(days => 1, secs => n)
    FROM generate_series(0, {OF_ONE} - 1, 10) AS n;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, hidden)
    SELECT md5('chat' || n % {USERS})::uuid, md5('line' || n % {USERS})::uuid, s.statement_id, 'memories',
        s.statement_id, s.owner_key, n / {USERS}, n % 10 = 1
    FROM (SELECT *, substr(key, 8)::int AS n FROM statements WHERE kind = 'memory') AS s;
    ANALYZE statements, teachings"""


async def test_blocks_are_found_by_indexes_alone(fresh_database_url: str) -> None:
    found, plan = await explain(fresh_database_url, FILL)
    assert [len(rows) for rows in found] == [10, 0]
    assert count_blocks(plan) < 200


async def test_only_important_memories_are_read(fresh_database_url: str) -> None:
    found, plan = await explain(fresh_database_url, FILL + ";" + FILL_MEMORIES)
    numbers = [int(key.removeprefix("memory ")) for _, _, key, *_ in found[1]]
    assert sorted(numbers, reverse=True) == [n for n in range(OF_ONE - 1, 0, -1) if n % 10 > 1][:50]
    assert count_blocks(plan) < 1_000


async def explain(fresh_database_url: str, fill: str) -> tuple[list[list[Any]], dict[str, Any]]:
    """Fill the tables and return the rows that the query finds, and its plan, which has nothing but index scans."""
    await unwatch_revisions(fresh_database_url)
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(fill, timeout=300)
        found = orjson.loads(await connection.fetchval(QUERY))
        plan = await fetch_plan(connection, QUERY)
    finally:
        await connection.close()
    read = list_scans(plan, "statements", "teachings", "chats")
    assert {node["Node Type"] for node in read} <= INDEX_SCANS
    return found, plan
