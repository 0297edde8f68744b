"""What is wrong with the settings ends a command at its start, with one line that names the setting."""

import asyncio
import sys
from pathlib import Path

import orjson
import pytest

from app.local.running import Urls
from tests.proxies import FreezingProxy

ROOM = Path(__file__).parents[2]


async def refusal(place: Path, *command: str, **settings: str) -> str:
    """What a command says to stderr before it ends with 1."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *command),
        cwd=place,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOM)} | settings,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 1, said.decode()
    return said.decode()


@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
async def test_a_database_that_does_not_exist_is_named(tmp_path: Path, servers: Urls, command: str) -> None:
    head, query = servers.database_url.split("?", 1)
    url = f"{head.rsplit('/', 1)[0]}/nothing?{query}"
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: The database does not exist.\n"


async def test_a_migration_ends_without_a_server(tmp_path: Path) -> None:
    url = f"postgresql://memobook@/memobook?host={tmp_path}"
    said = await refusal(tmp_path, "migrate", MEMOBOOK_DATABASE_URL=url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: The database is not reachable.\n"


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_a_service_waits_for_its_server(
    tmp_path: Path, short_path: Path, fresh_database_url: str, command: str
) -> None:
    proxy = FreezingProxy(fresh_database_url.replace("+asyncpg", ""), short_path)
    arguments = (command, "--port", "0") if command == "api" else (command,)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOM), "MEMOBOOK_DATABASE_URL": proxy.url},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            assert process.stderr is not None
            said = (await process.stderr.readline()).decode()
            assert (
                orjson.loads(said)["message"] == "MEMOBOOK_DATABASE_URL: The database is not reachable. Waiting for it."
            )
            async with proxy:
                await proxy.connected.wait()
                process.terminate()
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_a_database_without_the_schema_says_what_to_run(tmp_path: Path, servers: Urls, command: str) -> None:
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=servers.database_url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: the database is not migrated; run memobook migrate\n"
