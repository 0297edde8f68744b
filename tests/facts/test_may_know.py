"""The condition on which a chat needs the queries of facts and blocks: never wrong where it says no, and cheap."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key, user_key
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge.liveness import MAY_KNOW, OWNERS_OF_CHAT
from app.knowledge.queries import KINDS
from tests.facts.asking import begin
from tests.plans import INDEX_SCANS, count_blocks, fetch_plan, list_scans
from tests.revision_watch import unwatch_revisions
from tests.talk import ok, put

INSERT = """
    INSERT INTO statements (owner_key, line_id, statement_id, kind, character, key, origin, learnt_at, operation)
    VALUES ($1, $2, $3, $4::text, $5, 'persona', 'tool', now(), CASE WHEN $4::text = 'block' THEN 'replace' END)"""
OF_CHAT = "FROM chats c WHERE c.chat_key = $1 AND c.line_status = 'current'"

# All statements belong to one user, whom no other chat belongs to.
FILL = """
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, tokens, origin, learnt_at)
    SELECT md5('user0')::uuid, '00000000-0000-0000-0000-000000000000', md5('s' || n)::uuid, 'fact', 'key ' || n,
        'value', 5, 'tool', now()
    FROM generate_series(1, 50000) AS n;
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT md5('chat' || n)::uuid, md5('line' || n)::uuid, 'many', 'chat' || n, 'user' || n, md5('user' || n)::uuid,
        now(), now(), now()
    FROM generate_series(0, 1000) AS n;
    ANALYZE statements, chats"""


@pytest.fixture
async def rolled_back(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A connection in a transaction that is rolled back."""
    async with database.raw() as connection:
        await connection.execute("BEGIN")
        yield connection
        await connection.execute("ROLLBACK")


async def may_know(connection: asyncpg.Connection, chat: UUID) -> bool:
    return await connection.fetchval(f"SELECT ({MAY_KNOW}) {OF_CHAT}", chat) is not None


async def test_a_statement_in_any_scope_of_the_chat_counts(
    api: httpx.AsyncClient, rolled_back: asyncpg.Connection, tenant: str
) -> None:
    await begin(api)
    ok(await api.post("/v1/chats/c/characters/Kai/rename", json={"name": "Kaito"}), 200)
    chat = chat_key(tenant, "c")
    owners = await rolled_back.fetch(
        f"SELECT o.* FROM chats c CROSS JOIN LATERAL ({OWNERS_OF_CHAT}) o "
        "WHERE c.chat_key = $1 AND c.line_status = 'current'",
        chat,
    )
    assert [row["rank"] for row in owners] == [0, 1, 1, 2, 3]
    for owner in owners:
        for kind in KINDS:
            assert not await may_know(rolled_back, chat)
            await rolled_back.execute("SAVEPOINT before")
            where = (owner["owner_key"], owner["line_id"], uuid4(), kind, owner["character"])
            await rolled_back.execute(INSERT, *where)
            assert await may_know(rolled_back, chat), (owner["rank"], kind)
            await rolled_back.execute("ROLLBACK TO before")


async def test_statements_of_others_do_not_count(
    api: httpx.AsyncClient, rolled_back: asyncpg.Connection, tenant: str
) -> None:
    await begin(api)
    await put(api, "alone")
    others = [(chat_key(tenant, "d"), CHAT_WIDE), (user_key(tenant, "nell"), NO_LINE), (user_key("t", "mira"), NO_LINE)]
    for owner_key, line_id in others:
        await rolled_back.execute(INSERT, owner_key, line_id, uuid4(), "fact", "")
    assert not await may_know(rolled_back, chat_key(tenant, "c"))
    await rolled_back.execute(INSERT, user_key(tenant, "mira"), NO_LINE, uuid4(), "fact", "")
    assert await may_know(rolled_back, chat_key(tenant, "c"))
    assert not await may_know(rolled_back, chat_key(tenant, "alone"))


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_it_is_one_lookup_for_each_scope(fresh_database_url: str, mode: str) -> None:
    await unwatch_revisions(fresh_database_url)
    url = fresh_database_url.replace("+asyncpg", "")
    connection = await asyncpg.connect(url, server_settings={"plan_cache_mode": mode})
    try:
        await connection.execute(FILL, timeout=300)
        for chat, expected in (("chat0", True), ("chat7", None)):
            query = f"SELECT ({MAY_KNOW}) {OF_CHAT}"
            key = await connection.fetchval("SELECT md5($1)::uuid", chat)
            assert await connection.fetchval(query, key) is expected
            plan = await fetch_plan(connection, query, key)
            (read,) = list_scans(plan, "statements")
            assert read["Node Type"] in INDEX_SCANS
            assert count_blocks(plan) < 20
    finally:
        await connection.close()
