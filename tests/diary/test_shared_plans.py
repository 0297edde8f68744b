"""The plan of the query of shared diaries: indexes lead to the chats, and to the newest entries of each."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import orjson
import pytest

from app.diary.queries import OF_CURRENT
from app.kit.db import Connection
from app.passages.keys import list_wanted
from app.passages.words import list_patterns
from app.registry import LAYERS
from app.search.service import statements_in_use
from tests.plans import INDEX_SCANS, count_blocks, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions
from tests.search.test_plans import explain_prepared

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


KEY, LINE = "md5('chat7')::uuid", "md5('line7')::uuid"


@pytest.fixture
async def connection(fresh_database_url: str) -> AsyncIterator[Connection]:
    """A connection to the filled database."""
    await unwatch_revisions(fresh_database_url)
    opened = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    try:
        await opened.execute(FILL, timeout=300)
        yield opened
    finally:
        await opened.close()


async def test_shared_entries_are_found_by_indexes_alone(connection: Connection) -> None:
    found = orjson.loads(await connection.fetchval(QUERY, 7))["shared"]["rows"]
    plan, apart = await fetch_plan(connection, QUERY, 7), await fetch_plan(connection, QUERY, 8)
    assert [row[4] for row in found[0][1]] == [f"entry {n}" for n in range(2 * ENTRIES - 23, 2 * ENTRIES + 1)]
    read = list_scans(plan, "chats", "diary_entries")
    assert {node["Node Type"] for node in read} <= INDEX_SCANS
    assert count_blocks(plan) < 250, "three other chats, and at most 24 entries of each"
    assert count_blocks(apart) < 10, "a chat that does not share reads nothing"


@pytest.mark.parametrize("name", ["shared_recall", "shared_of_chat"])
async def test_a_search_finds_shared_entries_by_indexes(connection: Connection, name: str) -> None:
    assert any(layer.shared_documents for layer in LAYERS)
    ((key, line, now),) = await connection.fetch(f"SELECT {KEY}, {LINE}, now()")
    patterns, keys = list_patterns(["entry"]), list_wanted(["entry"])
    given: tuple[Any, ...] = (key, line, "Kai", now, None, [], [], patterns, 2_000, keys, [], "weighs", False)
    if name == "shared_of_chat":
        given = (key, now, None, ["diary"], *[None] * 4, patterns, line, keys, False)
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    plan = await explain_prepared(connection, getattr(statements_in_use(), name), given)
    assert plan["Actual Rows"] == 24 + 6, "those of the other chats, and its own"
    assert {node["Node Type"] for node in list_scans(plan, "chats", "diary_entries")} <= INDEX_SCANS
    assert count_blocks(plan) < 400, "three other chats, and at most 24 entries of each"
