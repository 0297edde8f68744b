"""The plan of the query of facts among a million statements: index lookups alone, whatever there is elsewhere.

`make check` has a tenth of the statements, `make check-long` all of them.
"""

import os

import asyncpg
import orjson

from app.facts.queries import NEWEST_OF_LINE
from tests.plans import INDEX_SCANS, count_blocks, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions

USERS = 20_000 if "TESTS_EXAMPLES" in os.environ else 2_000
FACTS = 50

FILL = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, tokens, origin, learnt_at)
    SELECT md5('user' || n % {USERS})::uuid, '00000000-0000-0000-0000-000000000000', md5('s' || n)::uuid, 'fact',
        'key ' || n / {USERS}, 'value ' || n, 5, 'tool', now() - make_interval(secs => n)
    FROM generate_series(0, {USERS} * {FACTS} - 1) AS n;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq)
    SELECT md5('chat' || n % {USERS})::uuid, md5('line' || n % {USERS})::uuid, md5('s' || n)::uuid, 'facts',
        md5('s' || n)::uuid, md5('user' || n % {USERS})::uuid, n / {USERS}
    FROM generate_series(0, {USERS} * {FACTS} - 1) AS n;
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT md5('chat' || n)::uuid, md5('line' || n)::uuid, 'many', 'chat' || n, 'user' || n, md5('user' || n)::uuid,
        now(), now(), now()
    FROM generate_series(0, {USERS} - 1) AS n;
    ANALYZE statements, teachings, chats"""

QUERY = f"""
    SELECT ({NEWEST_OF_LINE}) FROM chats c CROSS JOIN (SELECT NULL::int AS seq) AS b
    WHERE c.chat_key = md5('chat7')::uuid"""


async def test_facts_are_found_by_indexes_alone(fresh_database_url: str) -> None:
    await unwatch_revisions(fresh_database_url)
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(FILL, timeout=300)
        query = f"SELECT ({NEWEST_OF_LINE}) FROM chats c CROSS JOIN (SELECT NULL::int AS seq) AS b WHERE c.chat_key = "
        found = orjson.loads(await connection.fetchval(query + "md5('chat7')::uuid"))["rows"]
        assert len(found) == FACTS
        plan = await fetch_plan(connection, f"{query} md5('chat7')::uuid")
    finally:
        await connection.close()
    read = list_scans(plan, "statements", "teachings", "chats")
    assert {node["Node Type"] for node in read} <= INDEX_SCANS
    assert count_blocks(plan) < FACTS * 20
