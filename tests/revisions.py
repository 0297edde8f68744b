"""The revisions of the chat `c`, as its rows have them."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from uuid import UUID

import orjson

from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.owners import Owner


@dataclass(frozen=True, slots=True)
class Numbers:
    """The revision of a line; `changed` without the names whose number is older than the revision."""

    line: UUID
    revision: int
    base: int
    changed: Set[str]


async def list_numbers(database: Database, tenant: str, chat_id: str = "c") -> Sequence[Numbers]:
    """The numbers of all lines of a chat, the current one first."""
    async with database.raw() as connection:
        rows = await connection.fetch(
            "SELECT line_id, revision, base_revision, changed::text AS changed FROM chats WHERE chat_key = $1"
            " ORDER BY line_status = 'current' DESC, line_id",
            chat_key(tenant, chat_id),
        )
    return [
        Numbers(
            row["line_id"],
            row["revision"],
            row["base_revision"],
            frozenset(name for name, number in orjson.loads(row["changed"]).items() if number == row["revision"]),
        )
        for row in rows
    ]


async def read_numbers(database: Database, tenant: str, chat_id: str = "c") -> Numbers:
    """The numbers of the current line."""
    return (await list_numbers(database, tenant, chat_id))[0]


async def read_scope(database: Database, owner: Owner) -> int | None:
    """The revision of a user or a tenant; None while there is no row."""
    async with database.raw() as connection:
        number: int | None = await connection.fetchval(
            "SELECT revision FROM scopes WHERE owner_key = $1 AND line_id = $2", owner.key, owner.line_id
        )
    return number


async def read_now_ms(database: Database) -> int:
    """The time by the database's clock."""
    async with database.raw() as connection:
        now_ms: int = await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    return now_ms
