"""The plans of statements: what PostgreSQL reads, and how."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any

import orjson
from asyncpg.connection import LoggedQuery

from app.kit.db import Connection, Database
from app.kit.owners import NO_LINE
from tests.statements import analysed, clear_statistics, watched
from tests.talk import Json

INDEX_SCANS = {"Index Scan", "Index Only Scan"}
WRITES = ("INSERT", "UPDATE", "DELETE")

_OTHERS = f"""
    CREATE TEMPORARY TABLE others ON COMMIT DROP AS
    SELECT gen_random_uuid() AS owner_key, gen_random_uuid() AS id, n FROM generate_series(1, 5000) AS n;
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT owner_key, '{NO_LINE}', id, CASE WHEN n % 2 = 0 THEN 'fact' ELSE 'memory' END, 'key ' || n, 'text ' || n,
        0.5, 'model', now()
    FROM others;
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq)
    SELECT id, id, id, CASE WHEN n % 2 = 0 THEN 'facts' ELSE 'memories' END, id, owner_key, 1 FROM others"""
"""Adds statements of others: of a table with one scope, the planner may read all, however the query is written."""


async def fetch_plan(connection: Connection, statement: str, *parameters: Any) -> Json:
    """Run a statement, and return its plan with what was read."""
    explained = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {statement}", *parameters)
    plan: Json = (orjson.loads(explained) if isinstance(explained, str) else explained)[0]["Plan"]
    return plan


def list_nodes(plan: Json) -> list[Json]:
    """Every node of a plan."""
    return [plan, *(node for one in plan.get("Plans", ()) for node in list_nodes(one))]


def list_scans(plan: Json, *tables: str) -> list[Json]:
    """The nodes of a plan that read one of these tables."""
    return [node for node in list_nodes(plan) if node.get("Relation Name") in tables]


def count_blocks(plan: Json) -> int:
    """The blocks that a plan has read, from memory or from the disk."""
    blocks: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return blocks


@dataclass
class Read:
    """What statements read.

    Attributes:
        statements: The rows of the table of statements.
        teachings: The rows of teachings.
        returned: The rows that they returned.

    """

    statements: int = 0
    teachings: int = 0
    returned: int = 0


@asynccontextmanager
async def counted(database: Database) -> AsyncIterator[Read]:
    """Count what the queries of statements read that run inside the block, by running them again with their plans.

    They run among statements of others, without statistics and with them, and the greater numbers are returned: other
    tests leave statements, and autovacuum collects statistics at any time. What a query would write again is rolled
    back. Statements that begin with INSERT, UPDATE or DELETE do not count, nor do queries whose rows are read one after
    the other by a cursor.
    """
    found, tables = Read(), ("statements", "teachings", "chats")
    async with watched(database) as seen:
        yield found
    queries = [one for one in seen.logged if "statements" in one.query and not one.query.lstrip().startswith(WRITES)]
    async with database.raw() as connection:
        adding = connection.transaction()
        await adding.start()
        try:
            await connection.execute(_OTHERS)
            await clear_statistics(connection, *tables)
            without = [await read_again(connection, one) for one in queries]
            async with analysed(connection, *tables):
                pairs = list(zip(without, [await read_again(connection, one) for one in queries], strict=True))
        finally:
            await adding.rollback()
    for one in fields(Read):
        setattr(found, one.name, sum(max(getattr(read, one.name) for read in pair) for pair in pairs))


async def read_again(connection: Connection, asked: LoggedQuery) -> Read:
    """Run a query again, and roll back what it wrote."""
    running = connection.transaction()
    await running.start()
    try:
        plan = await fetch_plan(connection, asked.query, *asked.args)
    finally:
        await running.rollback()
    return Read(count_rows(plan, "statements"), count_rows(plan, "teachings"), plan["Actual Rows"])


def count_rows(plan: Json, table: str) -> int:
    """The rows that a plan has read of a table, those that a filter removed included."""
    rows = 0.0
    for node in list_scans(plan, table):
        rows += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return round(rows)
