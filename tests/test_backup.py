"""The commands of docs/deploy.md restore a backup into a database that answers as the first one did."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.settings import Settings
from app.local.binaries import postgres_program
from app.main import create_app
from app.registry import LAYERS
from tests.conftest import client_of
from tests.talk import append, ok, put, said, talk

PAGE = (Path(__file__).parent.parent / "docs/deploy.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^docker compose exec -T postgres ((?:pg_dump|createdb|pg_restore) .*)$", PAGE, re.MULTILINE)
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


async def run(command: str, place: Path, database_url: str, names: dict[str, str]) -> None:
    """Run a command of the page on the database that `names` gives it."""
    parts = urlsplit(database_url)
    programs = postgres_program("postgres").parent
    host = parse_qs(parts.query)["host"][0]
    assert parts.password is not None
    # The name of the database: neither the role of that name, nor the file.
    program = command.split(" ", 1)[0]
    named = re.sub(r"(?<!username=)\bmemobook\b(?!\.dump)", names[program], command)
    assert named != command
    process = await asyncio.create_subprocess_exec(
        *("sh", "-euc", f"{programs}/{named}"),
        cwd=place,
        env={**os.environ, "PGHOST": host, "PGPORT": "5432", "PGPASSWORD": parts.password},
        stderr=asyncio.subprocess.PIPE,
    )
    _, error = await process.communicate()
    assert process.returncode == 0, error.decode()


async def test_a_restored_backup_gives_the_same_contexts(
    tmp_path: Path, fresh_database_url: str, clock: SteppedClock
) -> None:
    async with service(fresh_database_url, clock) as (client, dispatcher):
        for chat, preset in (("a", "memo"), ("b", "diary")):
            await put(client, chat, settings={"preset": preset})
            for first in range(1, 60, 10):
                await append(client, talk(first, first + 9), chat_id=chat)
                clock.step(60)
                await dispatcher.drain()
        before = await read(client)
        assert b"Highlight" in before[0]

    source = urlsplit(fresh_database_url).path.removeprefix("/")
    names = {"pg_dump": source, "createdb": f"{source}_restored", "pg_restore": f"{source}_restored"}
    assert [command.split(" ", 1)[0] for command in COMMANDS] == list(names)
    for command in COMMANDS:
        await run(command, tmp_path, fresh_database_url, names)

    async with service(fresh_database_url.replace(source, f"{source}_restored"), clock) as (client, dispatcher):
        assert await read(client) == before
        assert ok(await client.get("/readyz"), 200)["database"] == "ok"
        await append(client, [said(61)], chat_id="a")
