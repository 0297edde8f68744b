"""The commands of docs/deploy.md restore a backup or convert a database, which then answers as before."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.settings import Settings
from app.local.binaries import postgres_program
from app.main import create_app
from app.migrate import migrate
from app.registry import LAYERS
from tests.conftest import client_of
from tests.local.former import former_postgres
from tests.slowness import SLOWNESS
from tests.talk import append, ok, put, said, talk

PAGE = (Path(__file__).parents[2] / "docs/deploy.md").read_text(encoding="utf-8")
RESTORING, CONVERTING = (
    re.findall(
        r"^docker compose exec -T postgres ((?:pg_dump|createdb|pg_restore|psql|dropdb) .*)$", part, re.MULTILINE
    )
    for part in (PAGE.split("## Backup and restore")[1].split("## Locale"))
)
CONTEXTS = [f"/v1/chats/{chat}/context?format={format}" for chat in "ab" for format in ("openai", "anthropic", "text")]


@asynccontextmanager
async def service(database_url: str, clock: SteppedClock) -> AsyncIterator[tuple[httpx.AsyncClient, Dispatcher]]:
    """The API without keys on a database, and a worker that quotes."""
    app = create_app(Settings(database_url=database_url, _env_file=None), clock=clock)
    async with client_of(app, None) as client:
        yield client, Dispatcher(JobContext(app.state.database, clock), LAYERS, slots=4, poll_s=30)
    await app.state.database.close()


async def read(client: httpx.AsyncClient) -> list[bytes]:
    """Every context and memo book, as bytes."""
    answers = [await client.get(path) for path in [*CONTEXTS, "/v1/chats/a/memos", "/v1/chats/b/summary"]]
    assert all(answer.status_code == 200 for answer in answers), [answer.text for answer in answers]
    return [answer.content for answer in answers]


async def run(command: str, folder: Path, database_url: str, name: str) -> None:
    """Run a command of the page on a database of the test: `name` is that of `memobook`."""
    parts = urlsplit(database_url)
    programs = postgres_program("postgres").parent
    host = parse_qs(parts.query)["host"][0]
    assert parts.password is not None
    # The name of the database: neither the role of that name, nor the file.
    named = re.sub(r"(?<!username=)\bmemobook(?=_|\b(?!\.dump))", name, command)
    assert named != command
    process = await asyncio.create_subprocess_exec(
        *("sh", "-euc", f"{programs}/{named}"),
        cwd=folder,
        env={**os.environ, "PGHOST": host, "PGPORT": "5432", "PGPASSWORD": parts.password},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, error = await process.communicate()
    assert process.returncode == 0, error.decode()


@pytest.fixture
async def database_without_letters(short_path: Path) -> AsyncIterator[str]:
    """A migrated database on a server whose databases have LC_CTYPE C. The role is a superuser, as that of compose."""
    async with former_postgres(short_path / "data") as postgres:
        superuser = await postgres.connect("postgres")
        await superuser.execute("ALTER ROLE memobook SUPERUSER")
        await superuser.close()
        connection = await asyncpg.connect(postgres.url.replace("+asyncpg", ""))
        await connection.execute("CREATE DATABASE talks TEMPLATE template0")
        await connection.close()
        url = postgres.url.replace("/memobook?", "/talks?")
        await asyncio.to_thread(migrate, url)
        yield url


@pytest.mark.parametrize(
    ("commands", "programs"),
    [
        (RESTORING, ["pg_dump", "dropdb", "createdb", "pg_restore"]),
        (CONVERTING, ["pg_dump", "createdb", "pg_restore", "psql", "dropdb"]),
    ],
    ids=["restored", "converted"],
)
async def test_the_commands_keep_the_contexts(
    tmp_path: Path, database_without_letters: str, clock: SteppedClock, commands: list[str], programs: list[str]
) -> None:
    url = database_without_letters
    async with service(url, clock) as (client, dispatcher):
        for chat, preset in (("a", "memo"), ("b", "diary")):
            await put(client, chat, settings={"preset": preset})
            for first in range(1, 60, 10):
                await append(client, talk(first, first + 9), chat_id=chat)
                clock.step(60)
                await dispatcher.drain()
        before = await read(client)
        assert b"Highlight" in before[0]
    assert await locale_of(url) == ("C", "C", False)

    assert [command.split(" ", 1)[0] for command in commands] == programs
    for command in commands:
        await run(command, tmp_path, url, urlsplit(url).path.removeprefix("/"))

    assert await locale_of(url) == ("C", "C.UTF-8", True)
    async with service(url, clock) as (client, dispatcher):
        assert await read(client) == before
        ready = await client.get("/readyz")
        async with asyncio.timeout(5 * SLOWNESS):
            while ready.status_code != 200 and SLOWNESS > 1:  # a slow machine answers the check later than in 2 s
                ready = await client.get("/readyz")
        assert ok(ready, 200)["database"] == "ok"
        await append(client, [said(61)], chat_id="a")


async def locale_of(url: str) -> tuple[str, str, bool]:
    """LC_COLLATE and LC_CTYPE, and whether full text search knows letters outside ASCII."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    row = await connection.fetchrow(
        """
        SELECT datcollate, datctype, to_tsvector('simple', 'é—é') = $$'é':1,2$$::tsvector
        FROM pg_database WHERE datname = current_database()
        """
    )
    await connection.close()
    assert row is not None
    return tuple(row)
