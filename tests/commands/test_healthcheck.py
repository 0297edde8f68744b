"""`memobook healthcheck`: whether one worker, not just any, still reports."""

import asyncio
import sys
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from app.kit import workers
from tests.conftest import PROJECT
from tests.local.conftest import eventually
from tests.slowness import ALLOCATOR, SLOWNESS


async def start(folder: Path, *arguments: str, **settings: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=folder,
        env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)} | settings,
        stderr=asyncio.subprocess.PIPE,
    )


async def check(folder: Path, database_url: str) -> tuple[int | None, str]:
    """The exit code of the check and what it says."""
    process = await start(folder, "healthcheck", "worker.id", MEMOBOOK_DATABASE_URL=database_url)
    async with asyncio.timeout(30 * SLOWNESS):
        _, said = await process.communicate()
    return process.returncode, said.decode()


async def test_a_check_is_about_its_own_worker(tmp_path: Path, fresh_database_url: str) -> None:
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))

    async def has_reported() -> bool:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM workers)"))

    worker = await start(tmp_path, "worker", "--record", "worker.id", MEMOBOOK_DATABASE_URL=fresh_database_url)
    try:
        await eventually(has_reported)
        recorded = UUID((tmp_path / "worker.id").read_text())
        assert await connection.fetchval("SELECT worker_id FROM workers") == recorded
        assert await check(tmp_path, fresh_database_url) == (0, "")
    finally:
        worker.kill()
        await worker.wait()
    await workers.report(connection, uuid4())
    await connection.execute(
        "UPDATE workers SET seen_at = seen_at - interval '31 seconds' WHERE worker_id = $1", recorded
    )
    silent = "memobook: The worker has not reported for 30 seconds.\n"
    assert await check(tmp_path, fresh_database_url) == (1, silent)
    await workers.sign_off(connection, recorded)
    unknown = "memobook: The worker has not reported yet, has ended, or has been silent for a day.\n"
    assert await check(tmp_path, fresh_database_url) == (1, unknown)
    await connection.close()


async def test_without_a_record_or_database_it_fails(tmp_path: Path, short_path: Path, fresh_database_url: str) -> None:
    assert await check(tmp_path, fresh_database_url) == (1, "memobook: worker.id does not contain the id of a worker\n")
    (tmp_path / "worker.id").write_text(str(uuid4()))
    away = f"postgresql://memobook@/memobook?host={short_path}"
    assert await check(tmp_path, away) == (1, "memobook: MEMOBOOK_DATABASE_URL: The database is not reachable.\n")
