"""The output and the exit code of `memobook doctor`."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import orjson

from app.dispatcher import Dispatcher
from app.kit import workers
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.registry import LAYERS
from tests.background import LONG_S, PATIENCE_S, running
from tests.commands.here import outcome_here
from tests.conftest import PROJECT, sqlalchemy_url
from tests.slowness import ALLOCATOR, SLOWNESS


async def doctor(folder: Path, *options: str, **settings: str) -> tuple[int | None, str]:
    """The exit code of the command and what it prints; it writes nothing to stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "doctor", *options),
        cwd=folder,
        env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)} | settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60 * SLOWNESS):
        out, error = await process.communicate()
    assert error == b""
    return process.returncode, out.decode()


async def doctor_here(folder: Path, *options: str, **settings: str) -> tuple[int, str]:
    """The same of the command in this process."""
    code, said, error = await outcome_here(folder, "doctor", *options, **settings)
    assert error == ""
    return code, said


async def test_only_a_fault_changes_the_exit_code(tmp_path: Path, fresh_database_url: str) -> None:
    code, text = await doctor(tmp_path, MEMOBOOK_DATABASE_URL=fresh_database_url)
    assert code == 1, text
    assert "fault    worker       No worker has reported within 30 seconds.\n" in text
    assert "→ Start memobook worker" in text
    async with AsyncExitStack() as stack:
        database = Database(sqlalchemy_url(fresh_database_url), pool_size=4)
        stack.push_async_callback(database.close)
        worker = Dispatcher(JobContext(database, system_clock), LAYERS, slots=1, poll_s=LONG_S)
        await stack.enter_async_context(running(worker))
        async with asyncio.timeout(PATIENCE_S), database.raw() as connection:
            while not await workers.count_workers(connection):
                pass
        code, text = await doctor_here(tmp_path, MEMOBOOK_DATABASE_URL=fresh_database_url)
        assert code == 0, text
        assert "note     model        No model is configured" in text
        code, text = await doctor_here(tmp_path, "--host", "0.0.0.0", MEMOBOOK_DATABASE_URL=fresh_database_url)
    assert code == 1
    assert "fault    keys " in text
    assert text.count("fault ") == 1, text


async def test_the_output_can_be_json(tmp_path: Path) -> None:
    code, text = await doctor_here(tmp_path, "--json")
    document = orjson.loads(text)
    assert (code, document["status"]) == (1, "fault")
    assert document["checks"][1] == {
        "check": "database",
        "state": "fault",
        "message": "MEMOBOOK_DATABASE_URL is not set.",
        "advice": "Set it, or start memobook up, which has a database of its own.",
    }


async def test_a_wrong_setting_is_a_fault(tmp_path: Path) -> None:
    code, text = await doctor_here(tmp_path, MEMOBOOK_DATABASE_POOL="many")
    assert code == 1
    assert text.startswith("fault    settings     MEMOBOOK_DATABASE_POOL:")
