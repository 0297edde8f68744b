"""The embedded stack of the benchmark, in a directory of its own, filled with chats."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from app.keys.service import create_key
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import system_clock
from app.kit.db import Connection, Database
from app.local.stack import Stack
from bench import statements
from bench.chats import CHATS, copy_chat, make_patterns
from bench.processes import say

FILLING = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_senders": "0",
    "max_wal_size": "16GB",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "work_mem": "256MB",
}
"""Used only while the chats are created: PostgreSQL is restarted for the measurements."""


async def fill(data: Path, sizes: Sequence[int]) -> str:
    """Create the chats of all sizes below `data`; return a key of the service."""
    async with Stack(data, serve=False, postgres_settings=FILLING | statements.SETTINGS, say=say) as stack:
        await make_patterns(stack.urls.database_url)
        async with superuser(stack) as connection:
            await statements.install(connection)
        chats = iter([(size, number) for size in sizes for number in range(2 * CHATS)])
        await asyncio.gather(*(_copy(stack, chats) for _ in range(os.cpu_count() or 1)))
        async with connected(stack) as connection:
            await connection.execute("VACUUM ANALYZE")
        key = await make_key(stack)
    os.sync()  # otherwise the disk would still be busy during the measurements
    return key


async def _copy(stack: Stack, chats: Iterator[tuple[int, int]]) -> None:
    async with connected(stack) as connection:
        for size, number in chats:
            await copy_chat(connection, size, number)


async def make_key(stack: Stack) -> str:
    """Create a key of the service that may read and write."""
    database = Database(stack.urls.database_url, pool_size=2)
    try:
        async with database.unit_of_work() as db_session:
            return (await create_key(db_session, DEFAULT_TENANT, ("read", "write"), system_clock())).text
    finally:
        await database.close()


def serving(data: Path, environment: Mapping[str, str]) -> Stack:
    """Run the stack on the chats of `fill`, with API and worker, and PostgreSQL as `memobook up` starts it."""
    return Stack(data, port=0, environment=environment, postgres_settings=statements.SETTINGS, say=say)


@asynccontextmanager
async def connected(stack: Stack) -> AsyncGenerator[Connection]:
    """Open a connection as the service's own role."""
    connection = await asyncpg.connect(stack.urls.database_url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def superuser(stack: Stack) -> AsyncGenerator[Connection]:
    """Open a connection to the service's database as PostgreSQL's superuser."""
    parts = urlsplit(stack.urls.database_url)
    connection = await asyncpg.connect(
        host=parse_qs(parts.query)["host"][0],
        database=parts.path.strip("/"),
        user="postgres",
        password=stack.directory.password("postgres"),
    )
    try:
        yield connection
    finally:
        await connection.close()
