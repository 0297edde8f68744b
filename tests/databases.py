"""Databases of the server of the tests: one that was filled once is cloned for each test that needs its rows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg

from app.local.running import Urls
from tests.slowness import SLOWNESS

UNWATCHED = "; ".join(
    f"ALTER TABLE {table} SET (autovacuum_enabled = false)" for table in ("statements", "teachings", "chats")
)
"""Leaves the statistics of the large tables to the tests."""


FILL_S = 1_200.0 * SLOWNESS
"""Seconds after which a million rows must have been written."""


async def clone(servers: Urls, template: str) -> str:
    """Return the URL of a new database, which is a copy of another one that has no connections."""
    name = f"db_{uuid4().hex}"
    await run(servers, f"CREATE DATABASE {name} TEMPLATE {template}")
    return set_name(servers.database_url, name)


@asynccontextmanager
async def cloned(servers: Urls, template: str) -> AsyncIterator[str]:
    """Clone a database for the duration of the block, and drop the copy afterwards."""
    url = await clone(servers, template)
    try:
        yield url
    finally:
        await run(servers, f"DROP DATABASE {name_of(url)} WITH (FORCE)")


async def fill(url: str, statements: str) -> None:
    """Execute statements in a database and disconnect, so that it can be cloned."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(statements, timeout=FILL_S)
    finally:
        await connection.close()


async def run(servers: Urls, statement: str) -> None:
    """Execute a statement in the server's own database."""
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def name_of(url: str) -> str:
    """Return the name of the database that a URL has."""
    return url.split("?", 1)[0].rsplit("/", 1)[1]


def set_name(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    head, query = url.split("?", 1)
    return f"{head.rsplit('/', 1)[0]}/{name}?{query}"
