"""Workers as processes of their own, which tests kill with SIGKILL."""

import asyncio
import sys
from contextlib import AsyncExitStack

from app.kit.db import Database
from app.kit.ids import chat_key
from tests.slowness import SLOWNESS

PATIENCE_S = 40 * SLOWNESS
"""A dead worker's lease lasts 15 seconds; then the next look finds what it held."""

PROGRAM = (sys.executable, "-m", "app.cli", "worker")


class Workers:
    """Workers as processes of their own, all on the test's database and model."""

    def __init__(self, environment: dict[str, str], stack: AsyncExitStack) -> None:
        self._environment = environment
        self._stack = stack

    async def start(self, *, stderr: int | None = None, **environment: str) -> asyncio.subprocess.Process:
        """Start one; it is killed in the end, if it still runs."""
        process = await asyncio.create_subprocess_exec(*PROGRAM, env=self._environment | environment, stderr=stderr)

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await process.wait()

        self._stack.push_async_callback(end)
        return process


async def until(database: Database, tenant: str, question: str) -> None:
    """Ask about the chat, whose key is $1, until the answer is true."""
    async with asyncio.timeout(PATIENCE_S), database.raw() as connection:
        while not await connection.fetchval(f"SELECT {question}, pg_sleep(0.02)", chat_key(tenant, "c")):
            pass


async def until_all_is_made(database: Database, tenant: str) -> None:
    """Wait until the chat has no work."""
    await until(database, tenant, "NOT EXISTS (SELECT FROM work WHERE owner_key = $1)")


async def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a worker."""
    process.kill()
    await process.wait()
