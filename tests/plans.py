"""The plans of statements: what PostgreSQL reads, and how."""

from typing import Any

import orjson

from app.kit.db import Connection
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
