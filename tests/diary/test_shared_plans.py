"""The plan of the query of shared diaries: indexes lead to the chats, and to the newest entries of each."""

import asyncpg
import orjson

from app.diary.queries import OF_CURRENT
from tests.plans import INDEX_SCANS, count_blocks, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions

ENTRIES = 50_000
"""The entries of one chat of the user; all of its other chats together have as many."""

SHARING = '{"diary": {"scope": "character"}}'

FILL = f"""
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at, settings, characters)
    SELECT md5('chat' || n)::uuid, md5('line' || n)::uuid, 'many', 'chat' || n, 'user' || n / 1000,
        md5('user' || n / 1000)::uuid, now(), now(), now(),
        CASE WHEN n % 250 = 7 THEN '{SHARING}' ELSE '{{}}' END::jsonb, '[{{"name": "Kai", "aliases": []}}]'
    FROM generate_series(0, 9999) AS n;
    INSERT INTO diary_entries (chat_key, line_id, entry_id, character, number, at_seq, content, origin, dated_at,
        created_at)
    SELECT md5('chat' || k)::uuid, md5('line' || k)::uuid, md5('e' || n)::uuid, 'Kai', n, n, 'entry ' || n, 'person',
        now(), now() + make_interval(secs => n)
    FROM generate_series(1, {2 * ENTRIES}) AS n, LATERAL (
        SELECT CASE WHEN n > {ENTRIES} THEN 257 ELSE n % 9000 END AS k) AS of;
    ANALYZE chats, diary_entries"""

QUERY = f"SELECT ({OF_CURRENT}) FROM chats c WHERE c.chat_key = md5('chat' || $1::int)::uuid"


async def test_shared_entries_are_found_by_indexes_alone(fresh_database_url: str) -> None:
    await unwatch_revisions(fresh_database_url)
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(FILL, timeout=300)
        found = orjson.loads(await connection.fetchval(QUERY, 7))["shared"]["rows"]
        plan, apart = await fetch_plan(connection, QUERY, 7), await fetch_plan(connection, QUERY, 8)
    finally:
        await connection.close()
    assert [row[4] for row in found[0][1]] == [f"entry {n}" for n in range(2 * ENTRIES - 23, 2 * ENTRIES + 1)]
    read = list_scans(plan, "chats", "diary_entries")
    assert {node["Node Type"] for node in read} <= INDEX_SCANS
    assert count_blocks(plan) < 250, "three other chats, and at most 24 entries of each"
    assert count_blocks(apart) < 10, "a chat that does not share reads nothing"
