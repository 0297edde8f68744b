"""The statement of a context is long, and its plan costs ten times its execution: it is prepared once a connection."""

import httpx

from app.context.in_use import in_use
from app.context.queries import find_context
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from tests.talk import append, put, talk

USES = 3


async def test_a_connection_prepares_the_statement_once(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}])
    await append(api, talk(1, 2))
    queries = in_use().queries or {}
    async with database.raw() as connection:
        before = await _count_uses(connection)
        for _ in range(USES):
            await find_context(connection, tenant, chat_key(tenant, "c"), None, queries, "m2")
        after = await _count_uses(connection)
    assert USES in {uses - before.get(name, 0) for name, uses in after.items()}


async def _count_uses(connection: Connection) -> dict[str, int]:
    """How often each of the prepared statements of contexts was used."""
    rows = await connection.fetch(
        """
        SELECT name, generic_plans + custom_plans AS uses FROM pg_prepared_statements WHERE statement LIKE '%last_cut%'
        """
    )
    return {row["name"]: row["uses"] for row in rows}
