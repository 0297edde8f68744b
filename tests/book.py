"""What became of the chat `c`: its memo book, what of it is in the prompt, what is still due."""

import asyncpg
import httpx

from app.kit.db import Database, Table
from app.kit.ids import chat_key
from tests.talk import Json, get, ok


async def book(api: httpx.AsyncClient) -> list[Json]:
    """The memos in story order."""
    items: list[Json] = (await get(api, "/memos", limit=500))["items"]
    return items


async def statuses(api: httpx.AsyncClient) -> list[str]:
    """The memos' statuses in story order."""
    return [memo["status"] for memo in await book(api)]


async def shown(api: httpx.AsyncClient) -> list[int]:
    """The numbers of the memos that are in the prompt."""
    return [memo["number"] for memo in await book(api) if memo["in_prompt"]]


async def due_rows(database: Database, tenant: str, layer: str | None = None) -> list[asyncpg.Record]:
    """Its due work, in the conversation's order; that of one layer, or of all."""
    read = "SELECT * FROM work WHERE owner_key = $1 AND layer = coalesce($2, layer) ORDER BY at_seq"
    async with database.raw() as connection:
        return await connection.fetch(read, chat_key(tenant, "c"), layer)


def key_column(table: str) -> str:
    """The column of a table that holds the chat's key."""
    return "owner_key" if "owner_key" in Table.metadata.tables[table].c else "chat_key"


async def change(database: Database, tenant: str, table: str, values: str) -> None:
    """Change its rows of a table behind the service's back."""
    statement = f"UPDATE {table} SET {values} WHERE {key_column(table)} = $1"
    async with database.raw() as connection:
        await connection.execute(statement, chat_key(tenant, "c"))


async def ask(api: httpx.AsyncClient, method: str, path: str, status: int, body: Json | None = None) -> Json:
    """Send a request below the memo book."""
    return ok(await api.request(method, f"/v1/chats/c/memos{path}", json=body), status)
