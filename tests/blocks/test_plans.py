"""The plan of the query of blocks among many statements: index lookups alone, and no more than are needed.

Nothing before the newest `replace` is read, and no memories after the most important ones that hold. `make check` has a
tenth of the statements, `make check-long` a million.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import orjson
import pytest

from app.blocks.queries import BLOCKS_OF_LINE
from app.local.running import Urls
from tests.databases import FILL_S, UNWATCHED, cloned, fill, name_of
from tests.plans import INDEX_SCANS, count_blocks, count_rows, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions

USERS = 20_000 if "TESTS_EXAMPLES" in os.environ else 2_000
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


# Of the user 9: the important memory is the middle one. The user 11 has none that is important.
FILL_LESS_IMPORTANT = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT md5('user' || u)::uuid, '00000000-0000-0000-0000-000000000000'::uuid,
        ('00000000-0000-7000-80' || lpad(u::text, 2, '0') || '-' || lpad(n::text, 12, '0'))::uuid, 'memory',
        'own ' || n, 'text ' || n, CASE WHEN u = 9 AND n = {OF_ONE} / 2 THEN 0.8 ELSE 0.1 + n % 500 * 0.001 END,
        CASE WHEN n % 5 = 0 THEN 'extractive' ELSE 'model' END, now() + make_interval(secs => n)
    FROM generate_series(0, {OF_ONE} - 1) AS n, unnest('{{9, 11}}'::int[]) AS u;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq)
    SELECT md5('chat' || right(s.user_id, -4))::uuid, md5('line' || right(s.user_id, -4))::uuid, s.statement_id,
        'memories', s.statement_id, s.owner_key, 1
    FROM (SELECT s.*, c.user_id FROM statements s JOIN chats c ON c.user_key = s.owner_key) AS s
    WHERE s.key LIKE 'own %';
    ANALYZE statements, teachings"""


# Of the user 13: an important memory, and 30 others, each with 200 texts that were taken back and one that was not.
FILL_TAKEN_BACK = """
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT md5('user13')::uuid, '00000000-0000-0000-0000-000000000000'::uuid, md5('t' || n)::uuid, 'memory',
        'own ' || n % 30, 'text ' || n, 0.5, 'model', now() + make_interval(secs => n)
    FROM generate_series(0, 30 * 201 - 1) AS n
    UNION ALL
    SELECT md5('user13')::uuid, '00000000-0000-0000-0000-000000000000'::uuid,
        'ffffffff-ffff-7000-8000-000000000000'::uuid, 'memory', 'own 99', 'text', 0.8, 'model', now();
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, hidden)
    SELECT md5('chat13')::uuid, md5('line13')::uuid, s.statement_id, 'memories', s.statement_id, s.owner_key, 1,
        s.key <> 'own 99' AND NOT substr(s.content, 6)::int {live}
    FROM statements s WHERE s.owner_key = md5('user13')::uuid AND s.kind = 'memory' AND s.key LIKE 'own %';
    ANALYZE statements, teachings"""


@pytest.fixture(scope="module")
async def operations_of_all(servers: Urls, template: str) -> AsyncIterator[str]:
    """The name of a database with the operations on the blocks of all users."""
    async with cloned(servers, template) as url:
        await unwatch_revisions(url)
        await fill(url, f"{UNWATCHED}; {FILL}")
        yield name_of(url)


@pytest.fixture
async def filled(servers: Urls, operations_of_all: str) -> AsyncIterator[str]:
    """The URL of a copy of that database."""
    async with cloned(servers, operations_of_all) as url:
        yield url


async def test_blocks_are_found_by_indexes_alone(filled: str) -> None:
    found, plan = await explain(filled)
    assert [len(rows) for rows in found] == [10, 0]
    assert count_blocks(plan) < 200


async def test_only_the_most_important_memories_are_read(filled: str) -> None:
    found, plan = await explain(filled, FILL_MEMORIES)
    numbers = [int(key.removeprefix("memory ")) for _, _, key, *_ in found[1]]
    assert sorted(numbers, reverse=True) == [n for n in range(OF_ONE - 1, 0, -1) if n % 10 > 1][:50]
    assert count_blocks(plan) < 1_000


@pytest.mark.parametrize(("user", "found_most"), [(9, 50), (11, 0)])
async def test_newer_memories_are_left_in_the_index(filled: str, user: int, found_most: int) -> None:
    found, plan = await explain(filled, FILL_LESS_IMPORTANT, user=user)
    numbers = [int(key.removeprefix("own ")) for _, _, key, *_ in found[1]]
    first = OF_ONE // 2
    assert numbers == [first, *(n for n in range(first - 1, 0, -1) if n % 5)][:found_most]
    by_index = {node["Index Name"]: node for node in list_scans(plan, "statements")}
    assert by_index["ix_statements_arrival"]["Actual Rows"] <= 1
    assert count_rows(plan, "statements") < 250
    assert count_blocks(plan) < 1_000


@pytest.mark.parametrize(("live", "found_others"), [(">= 30 * 200", 30), ("< 30", 0)], ids=["newest", "oldest"])
async def test_few_texts_taken_back_are_read(filled: str, live: str, found_others: int) -> None:
    fill = FILL_TAKEN_BACK.format(live=live)
    found, plan = await explain(filled, fill, user=13)
    assert len(found[1]) == 1 + found_others
    assert count_rows(plan, "statements") < 500
    assert count_blocks(plan) < 3_000


async def explain(filled: str, more: str = "", *, user: int = 7) -> tuple[list[list[Any]], dict[str, Any]]:
    """Add more rows and return what the query finds, and its plan, which has nothing but index scans.

    The query is that of the chat of a user.
    """
    query = QUERY.replace("chat7", f"chat{user}")
    connection = await asyncpg.connect(filled.replace("+asyncpg", ""))
    try:
        if more:
            await connection.execute(more, timeout=FILL_S)
        found = orjson.loads(await connection.fetchval(query))
        plan = await fetch_plan(connection, query)
    finally:
        await connection.close()
    read = list_scans(plan, "statements", "teachings", "chats")
    assert {node["Node Type"] for node in read} <= INDEX_SCANS
    return found, plan
