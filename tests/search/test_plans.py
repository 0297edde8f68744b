"""What a search reads, also once PostgreSQL has statistics."""

from typing import Any

import httpx

from app.kit.db import Database
from app.kit.ids import chat_key
from app.search.service import statements_in_use
from tests.search.finding import begin_long, message
from tests.talk import Json, append


async def test_a_search_reads_the_newest_old_messages_alone(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await begin_long(api)
    for first in (7, 1_007, 2_007):
        await append(api, [message(n, f"We sail on, day {n}.") for n in range(first, first + 1_000)])
    key = chat_key(tenant, "c")
    async with database.raw() as connection:
        line_id = await connection.fetchval("SELECT line_id FROM chats WHERE chat_key = $1", key)
        await connection.execute("ANALYZE messages")
        now = await connection.fetchval("SELECT now()")
        given: tuple[Any, ...] = (key, line_id, None, now, None, [], [], ["sail"], 2_000)
        plan = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT json) {statements_in_use().recall}", *given)
    scans = [node for node in _list_nodes(plan[0]["Plan"]) if node.get("Relation Name") == "messages"]
    read = [node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans]
    assert scans
    assert max(read) <= 1_010, scans


def _list_nodes(plan: Json) -> list[Json]:
    """Every node of a plan."""
    return [plan, *(node for one in plan.get("Plans", ()) for node in _list_nodes(one))]
