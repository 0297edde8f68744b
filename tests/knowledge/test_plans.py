"""The plans of the statements that read what lines taught, and memories, among many of other chats, users and tenants.

They read by indexes alone, and no more than the chat, its user and its tenant have, also without statistics.
`make check` has 80,000 statements, `make check-long` a million.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Sized
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import md5
from math import inf, isfinite
from typing import Any
from uuid import UUID

import pytest
from asyncpg.connection import LoggedQuery

from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database, DbSession
from app.kit.ids import tenant_key
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge import queries as known
from app.knowledge.liveness import TENANT_KEY
from app.knowledge.reading import Viewpoint
from app.knowledge.scopes import ScopeKey
from app.layers.documents import list_documents
from app.local.running import Urls
from app.memories import compare_queries as compared
from app.memories import queries as memories
from app.memories.layer import LAYER
from app.memories.log_queries import list_learnt
from app.memories.memory import Memory
from app.memories.queries import Choice, Keeping
from app.pipeline import open_database
from app.registry import LAYERS
from tests.conftest import sqlalchemy_url
from tests.databases import UNWATCHED, cloned, fill, name_of
from tests.plans import count_blocks, fetch_plan, list_nodes
from tests.revision_watch import unwatch_revisions

USERS = 17_000 if "TESTS_EXAMPLES" in os.environ else 1_000
"""Each has a chat that taught 20 facts and 30 memories of the user, and 10 memories of its own, one each message."""

OF_TENANT = 10
"""The memories of the tenant, which the first chat taught."""

OF_OTHER_TENANT = 20_000

MOST_BLOCKS = 600
"""About ten for each of the 60 statements of a user: of the statement, its teachings, and their lines."""

MOST_BLOCKS_OF_LOG = 40
"""For each key of a day: it is looked up in each scope, once for its value of the day and once for what came later."""

FILL = f"""
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT md5('chat' || u)::uuid, md5('line' || u)::uuid, CASE WHEN u = 0 THEN 'other' ELSE 'many' END, 'chat' || u,
        'user' || u, md5('user' || u)::uuid, now(), now(), now()
    FROM generate_series(0, {USERS} - 1) AS u;
    CREATE TEMPORARY TABLE learnt AS
    SELECT u, i AS seq, i < 50 AS is_wide, md5('user' || u)::uuid AS wide_key, i < 20 AS is_fact, u || '.' || i AS id
    FROM generate_series(0, {USERS} - 1) AS u, generate_series(0, 59) AS i
    UNION ALL
    SELECT c.u, i, true, {TENANT_KEY}, false, c.tenant || '.' || i
    FROM (VALUES (0, 'other', {OF_OTHER_TENANT}), (1, 'many', {OF_TENANT})) AS c (u, tenant, most),
        generate_series(0, c.most - 1) AS i;
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT CASE WHEN is_wide THEN wide_key ELSE md5('chat' || u)::uuid END,
        CASE WHEN is_wide THEN '{NO_LINE}' ELSE '{CHAT_WIDE}' END::uuid, md5('s' || id)::uuid,
        CASE WHEN is_fact THEN 'fact' ELSE 'memory' END, md5('key' || id)::uuid, 'text ' || id, 0.5, 'model',
        now() + make_interval(secs => seq)
    FROM learnt;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq)
    SELECT md5('chat' || u)::uuid, md5('line' || u)::uuid, md5('s' || id)::uuid,
        CASE WHEN is_fact THEN 'facts' ELSE 'memories' END, md5('s' || id)::uuid, CASE WHEN is_wide THEN wide_key END,
        seq
    FROM learnt"""


FORKS = 100
"""Each is a chat that taught the memories of the user of `LINE` as well, as forks do."""

FORK = f"""
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT md5('fork' || f)::uuid, md5('line' || f)::uuid, 'many', 'fork' || f, 'user7', md5('user7')::uuid, now(),
        now(), now()
    FROM generate_series(1, {FORKS}) AS f;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, said_at)
    SELECT md5('fork' || f)::uuid, md5('line' || f)::uuid, md5('s7.' || i)::uuid, 'memories', md5('s7.' || i)::uuid,
        md5('user7')::uuid, i, now() + make_interval(secs => f)
    FROM generate_series(1, {FORKS}) AS f, generate_series(20, 49) AS i"""


FORGOTTEN = 10

MOST_BLOCKS_OF_FORGOTTEN = 20
"""For each forgotten memory: its key, its statements, their teachings, and the line of each."""

FORGET = f"""
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, origin, is_set, learnt_at, forgotten)
    SELECT owner_key, line_id, md5('gone' || key)::uuid, kind, key, 'person', true, learnt_at + interval '1 day',
        ARRAY[sha256(content::bytea)]
    FROM statements WHERE statement_id IN (
        SELECT md5('sother.' || i * 1000)::uuid FROM generate_series(1, {FORGOTTEN}) AS i)"""
"""A person has forgotten some memories of the large tenant."""


def uuid_of(text: str) -> UUID:
    """What PostgreSQL makes of `md5(text)::uuid`."""
    return UUID(md5(text.encode(), usedforsecurity=False).hexdigest())


LINE = (uuid_of("chat7"), uuid_of("line7"))
LARGE_LINE = (uuid_of("chat0"), uuid_of("line0"))
OF_CHAT = ScopeKey.of_chat("many", LINE[0])
OF_USER = ScopeKey("user", "many", uuid_of("user7"))
OF_MANY = ScopeKey("global", "many", tenant_key("many"))
MEMORIES = [str(uuid_of(f"key7.{seq}")) for seq in range(20, 50)]
MEMORY = UUID(MEMORIES[0])
ALWAYS = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
WIDE = [uuid_of(f"s7.{seq}") for seq in range(50)]
KEEPING = Keeping(half_life_days=7.0, max_memories=1_000, least_order_key=None)
ALL, ONE = Choice(), Choice(memory_id=MEMORY)

Reader = Callable[[DbSession], Awaitable[Sized]]


def list_forgotten(scope: ScopeKey) -> Reader:
    """Lists the texts of forgotten memories."""

    async def list_texts(db_session: DbSession) -> Sized:
        return (await compared.list_forgotten(db_session, scope, LINE, character=None)).texts

    return list_texts


def find_weakest(most: int) -> Reader:
    """Finds the weakest of the strongest memories of the user, and returns it in a list if it can be right."""
    keeping = replace(KEEPING, max_memories=most)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    values = (UUID(MEMORIES[-1]), UUID(int=0), 2, None, "", None, 0.5, (), "model", False, at, at)
    newest = Memory(*values, pinned=False, order_key=1e300, archived=False, archived_by_person=None, chosen=())

    async def find(db_session: DbSession) -> Sized:
        order_key, memory_id = await compared.find_weakest(db_session, OF_USER, LINE, keeping, MEMORIES, newest)
        is_right = isfinite(order_key) and memory_id in MEMORIES if most < len(MEMORIES) else order_key == -inf
        return [memory_id] if is_right else []

    return find


READERS: Mapping[str, tuple[int, Reader]] = {
    "learnt facts": (20, lambda of: known.list_learnt(of, LINE, "fact", 0, 99)),
    "learnt memories": (40, lambda of: known.list_learnt(of, LINE, "memory", 0, 99)),
    "positions on the line": (50, lambda of: known.list_positions(of, LINE, WIDE)),
    "positions on all lines": (50, lambda of: known.list_positions(of, None, WIDE)),
    "ratings on the line": (50, lambda of: known.list_ratings_of_chat(of, LINE, WIDE, only_chat=False)),
    "ratings of the user": (50, lambda of: known.list_ratings(of, OF_USER, WIDE)),
    "effects of calls": (50, lambda of: known.list_written(of, LINE, WIDE)),
    "the chat's": (50, lambda of: memories.list_of_chat(of, LINE, KEEPING, ALL, character=None)),
    "its own": (10, lambda of: memories.list_of_chat(of, LINE, KEEPING, ALL, character=None, only_chat=True)),
    "one": (1, lambda of: memories.list_of_chat(of, LINE, KEEPING, ONE, character=None)),
    "the user's": (30, lambda of: memories.list_of_scope(of, OF_USER, KEEPING, ALL)),
    "the tenant's": (OF_TENANT, lambda of: memories.list_of_scope(of, OF_MANY, KEEPING, ALL)),
    "the user's on the line": (30, lambda of: compared.list_compared(of, OF_USER, LINE, KEEPING, MEMORIES)),
    "one of the user's": (1, lambda of: compared.list_compared(of, OF_USER, LINE, KEEPING, MEMORIES[:1])),
    "the weakest of the user's strongest": (1, find_weakest(10)),
    "the weakest if all are": (1, find_weakest(1_000)),
    "settled": (0, lambda of: compared.list_settled(of, OF_USER, WIDE)),
    "forgotten": (0, list_forgotten(OF_USER)),
    "forgotten for the chat": (0, list_forgotten(OF_CHAT)),
    "texts of one": (1, lambda of: memories.list_contents(of, OF_USER, MEMORY)),
    "documents": (50, lambda of: list_documents(of, [LAYER], LINE)),
}
"""What is read, each with the number of results."""


@pytest.fixture(scope="module")
async def statements_of_all(servers: Urls, template: str) -> AsyncIterator[str]:
    """The name of a database with the statements of all, and no statistics yet."""
    async with cloned(servers, template) as url:
        await unwatch_revisions(url)
        await fill(url, f"{UNWATCHED}; {FILL}")
        yield name_of(url)


@pytest.fixture
async def filled(servers: Urls, statements_of_all: str, clock: SteppedClock) -> AsyncIterator[Database]:
    """A copy of that database."""
    async with cloned(servers, statements_of_all) as url:
        opened = open_database(sqlalchemy_url(url), LAYERS, clock=clock, settle_s=0, notify=lambda: None, pool_size=1)
        yield opened
        await opened.close()


async def read(database: Database, reader: Reader) -> tuple[int, LoggedQuery]:
    """How many results a reader has, and its statement."""
    asked: list[LoggedQuery] = []
    async with database.snapshot() as db_session:
        with db_session.raw.query_logger(asked.append):
            found = await reader(db_session)
            await asyncio.sleep(0)  # asyncpg reports a statement in the next iteration of the loop
    (statement,) = [one for one in asked if "statements" in one.query or "teachings" in one.query]
    return len(found), statement


async def explain(connection: Connection, query: str, args: Sequence[Any], *, is_generic: bool) -> dict[str, Any]:
    """The plan of a statement for its parameters, or that for any, which PostgreSQL may use from the sixth time on."""
    if not is_generic:
        return await fetch_plan(connection, query, *args)
    values = ", ".join(map(quote, args))
    await connection.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE asked AS {query}")
    try:
        return await fetch_plan(connection, f"EXECUTE asked{f' ({values})' if values else ''}")
    finally:
        await connection.execute("DEALLOCATE asked; RESET plan_cache_mode")


def quote(value: object) -> str:
    """A value of a parameter as SQL; none of them has a quotation mark."""
    if value is None:
        return "NULL"
    return f"'{{{','.join(map(str, value))}}}'" if isinstance(value, list) else f"'{value}'"


@pytest.mark.parametrize("has_statistics", [False, True])
async def test_statements_of_others_are_not_read(filled: Database, has_statistics: bool) -> None:
    if has_statistics:
        async with filled.raw() as connection:
            await connection.execute("ANALYZE statements, teachings, chats")
    bad = []
    for name, (count, reader) in READERS.items():
        found, asked = await read(filled, reader)
        assert found == count, name
        async with filled.raw() as connection:
            plans = [
                await explain(connection, asked.query, asked.args, is_generic=is_generic)
                for is_generic in (False, True)
            ]
        for plan in plans:
            blocks = count_blocks(plan)
            whole = [node["Relation Name"] for node in list_nodes(plan) if node["Node Type"] == "Seq Scan"]
            if whole or blocks > MOST_BLOCKS:
                bad.append((name, whole, blocks))
    assert bad == []


@pytest.mark.parametrize("has_statistics", [False, True])
async def test_the_log_of_a_day_looks_up_its_keys(filled: Database, has_statistics: bool) -> None:
    if has_statistics:
        async with filled.raw() as connection:
            await connection.execute("ANALYZE statements, teachings, chats")
    found, asked = await read(filled, lambda of: list_learnt(of, Viewpoint(OF_USER, LINE), *ALWAYS))
    assert found == 60 + OF_TENANT
    async with filled.raw() as connection:
        for is_generic in (False, True):
            plan = await explain(connection, asked.query, asked.args, is_generic=is_generic)
            assert "Seq Scan" not in {node["Node Type"] for node in list_nodes(plan)}
            assert count_blocks(plan) <= MOST_BLOCKS_OF_LOG * found


@pytest.mark.parametrize("has_statistics", [False, True])
async def test_texts_of_others_are_not_read(filled: Database, has_statistics: bool) -> None:
    where = (OF_USER.owner_key, OF_USER.line_id, OF_USER.character)
    async with filled.raw() as connection:
        if has_statistics:
            await connection.execute("ANALYZE statements, teachings, chats")
        for is_generic in (False, True):
            plan = await explain(connection, compared.TEXTS, where, is_generic=is_generic)
            assert plan["Actual Rows"] == len(MEMORIES)
            assert "Seq Scan" not in {node["Node Type"] for node in list_nodes(plan)}
            assert count_blocks(plan) <= MOST_BLOCKS


@pytest.mark.parametrize("has_statistics", [False, True])
async def test_of_a_large_scope_only_the_forgotten_is_read(filled: Database, has_statistics: bool) -> None:
    async with filled.raw() as connection:
        await connection.execute(FORGET)
        if has_statistics:
            await connection.execute("ANALYZE statements, teachings, chats")

    async def list_texts(db_session: DbSession) -> Sized:
        scope = ScopeKey.of_chat("other", LARGE_LINE[0])
        return (await compared.list_forgotten(db_session, scope, LARGE_LINE, character=None)).texts

    found, asked = await read(filled, list_texts)
    assert found == FORGOTTEN
    async with filled.raw() as connection:
        for is_generic in (False, True):
            plan = await explain(connection, asked.query, asked.args, is_generic=is_generic)
            assert "Seq Scan" not in {node["Node Type"] for node in list_nodes(plan)}
            assert count_blocks(plan) <= MOST_BLOCKS_OF_FORGOTTEN * FORGOTTEN


@pytest.mark.parametrize("has_statistics", [False, True])
@pytest.mark.parametrize("name", ["the chat's", "the user's", "the user's on the line"])
async def test_the_lines_of_all_forks_are_not_read(filled: Database, name: str, has_statistics: bool) -> None:
    async with filled.raw() as connection:
        await connection.execute(FORK)
        if has_statistics:
            await connection.execute("ANALYZE statements, teachings, chats")
    _, asked = await read(filled, READERS[name][1])
    async with filled.raw() as connection:
        plan = await explain(connection, asked.query, asked.args, is_generic=False)
    assert count_blocks(plan) <= MOST_BLOCKS, "to look up each line takes three more for each teaching"
