"""What is wrong with the settings ends a command at its start, with one line that names the setting."""

import asyncio
import sys
from pathlib import Path

import pytest

from app.local.running import Urls

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


@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
async def test_a_server_that_is_away_is_named(tmp_path: Path, command: str) -> None:
    url = f"postgresql://memobook@/memobook?host={tmp_path}"
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: The database is not reachable.\n"


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_a_database_without_the_schema_says_what_to_run(tmp_path: Path, servers: Urls, command: str) -> None:
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=servers.database_url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: the database is not migrated; run memobook migrate\n"
