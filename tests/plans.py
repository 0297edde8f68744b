"""The plans of statements: what PostgreSQL reads, and how."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from app.kit.db import Connection, Database
from tests.statements import analysed, watched
from tests.talk import Json

INDEX_SCANS = {"Index Scan", "Index Only Scan"}


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

    Queries whose rows are read one after the other by a cursor do not count.
    """
    found = Read()
    async with watched(database) as seen:
        yield found
    async with database.raw() as connection, analysed(connection, "statements", "teachings", "chats"):
        for one in seen.logged:
            if "statements" in one.query and not one.query.lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
                plan = await fetch_plan(connection, one.query, *one.args)
                found.statements += count_rows(plan, "statements")
                found.teachings += count_rows(plan, "teachings")
                found.returned += plan["Actual Rows"]


def count_rows(plan: Json, table: str) -> int:
    """The rows that a plan has read of a table, those that a filter removed included."""
    rows = 0.0
    for node in list_scans(plan, table):
        rows += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return round(rows)
