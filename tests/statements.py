"""What a database is asked, statement by statement."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asyncpg.connection import LoggedQuery

from app.kit.db import Connection, Database

_FRAME = {"BEGIN", "COMMIT", "ROLLBACK"}


@dataclass
class Statements:
    """The statements of one connection, in order, and the same with their arguments."""

    all: list[str] = field(default_factory=list)
    logged: list[LoggedQuery] = field(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """Those that ask or change something: all but the frame of a transaction."""
        return [text for text in self.all if text not in _FRAME]

    @property
    def frame(self) -> list[str]:
        """Where transactions begin and end."""
        return [text for text in self.all if text in _FRAME]


@asynccontextmanager
async def watched(database: Database) -> AsyncIterator[Statements]:
    """Listen to the one connection that requests after each other are served with; read it after the block.

    Nothing else may use the database, or one that shares its connections, inside the block.
    """
    seen = Statements()

    def listen(query: LoggedQuery) -> None:
        seen.all.append(query.query.strip().rstrip(";"))
        seen.logged.append(query)

    async with database.raw() as connection:
        listened = connection
        connection.add_query_logger(listen)
    try:
        yield seen
        await asyncio.sleep(0)  # asyncpg reports a statement in the next iteration of the loop
    finally:
        listened.remove_query_logger(listen)


_CLEAR_STATISTICS = """
    SELECT pg_clear_relation_stats('public', '{table}'), (
        SELECT count(pg_clear_attribute_stats('public', '{table}', attname::text, false)) FROM pg_attribute
        WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped)"""


@asynccontextmanager
async def analysed(connection: Connection, *tables: str) -> AsyncIterator[None]:
    """Give the planner statistics of these tables inside the block: later tests have other rows in them."""
    await connection.execute(f"ANALYZE {', '.join(tables)}")
    try:
        yield
    finally:
        await clear_statistics(connection, *tables)


async def clear_statistics(connection: Connection, *tables: str) -> None:
    """Leave the planner without statistics of these tables, as autovacuum may have collected some of other rows."""
    for table in tables:
        await connection.execute(_CLEAR_STATISTICS.format(table=table))
