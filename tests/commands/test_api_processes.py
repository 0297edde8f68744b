"""Several API processes on one port, which one process starts, replaces and ends."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.cli import main
from app.local.address import free_port
from app.local.running import Urls
from tests.conftest import PROJECT
from tests.local.conftest import eventually
from tests.slowness import ALLOCATOR, SLOWNESS


class Processes:
    """The processes of `memobook api --workers 2`."""

    def __init__(self, parent: asyncio.subprocess.Process, port: int) -> None:
        self.parent = parent
        self.port = port
        self.seen: set[psutil.Process] = set()

    @property
    def serving(self) -> list[psutil.Process]:
        """The children that serve; Python's own resource tracker is another child."""
        found = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.parent.pid).children():
                with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    if any("spawn_main" in word for word in child.cmdline()):
                        found.append(child)
        self.seen.update(found)
        return found

    async def answers(self) -> bool:
        """Whether a request on a new connection is answered within a short time."""
        assert self.parent.returncode is None
        async with httpx.AsyncClient(trust_env=False, timeout=1) as client:
            try:
                return (await client.get(f"http://127.0.0.1:{self.port}/readyz")).is_success
            except httpx.TransportError:
                return False

    async def each_answers(self) -> None:
        """Wait until each child answers, and limits connections, while the other one is stopped."""
        first, second = self.serving
        for stopped in (first, second):
            stopped.send_signal(signal.SIGSTOP)
            try:
                await eventually(self.answers)
                await self.refuses_half_a_request()
            finally:
                stopped.send_signal(signal.SIGCONT)

    async def refuses_half_a_request(self) -> None:
        """Check that the deadline of the settings holds."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        async with asyncio.timeout(20 * SLOWNESS):
            assert b" 408 " in await reader.readline()
        writer.close()


@asynccontextmanager
async def two_processes(folder: Path, database_url: str, redis_url: str) -> AsyncIterator[Processes]:
    port = free_port("127.0.0.1", 0)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "api", "--workers", "2", "--port", str(port)),
        cwd=folder,
        env={
            **ALLOCATOR,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(PROJECT),
            "MEMOBOOK_DATABASE_URL": database_url,
            "MEMOBOOK_REDIS_URL": redis_url,
            "MEMOBOOK_HEAD_TIMEOUT_S": "0.5",
        },
    )
    processes = Processes(parent, port)
    try:
        await eventually(processes.answers)
        await eventually(lambda: len(processes.serving) == 2)
        yield processes
    finally:
        if parent.returncode is None:
            parent.kill()
        await parent.wait()
        for process in processes.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture
async def processes(tmp_path: Path, fresh_database_url: str, servers: Urls) -> AsyncIterator[Processes]:
    """Two processes on a database without keys."""
    async with two_processes(tmp_path, fresh_database_url, servers.redis_url) as running:
        yield running


async def test_both_processes_serve_and_a_killed_one_is_replaced(processes: Processes) -> None:
    await processes.each_answers()
    victim, survivor = processes.serving
    victim.kill()
    await eventually(lambda: len(processes.serving) == 2 and victim not in processes.serving)
    assert survivor in processes.serving
    await processes.each_answers()
    children = processes.serving
    processes.parent.terminate()
    assert await processes.parent.wait() == 0
    assert not any(child.is_running() for child in children)


async def test_no_process_outlives_the_one_that_started_it(processes: Processes) -> None:
    children = processes.serving
    processes.parent.kill()
    await processes.parent.wait()
    await eventually(lambda: not any(child.is_running() for child in children))


@pytest.mark.parametrize("number", ["0", "65", "two", "-1"])
def test_a_wrong_number_of_processes_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["api", "--workers", number])
    assert "must be a number from 1 to 64" in capsys.readouterr().err
