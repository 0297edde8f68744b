"""The stack in a process of its own, as people start and end it."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from app.local.account import Account, launcher, own_account
from app.local.running import find_running
from tests.conftest import PROJECT
from tests.local.conftest import (
    SOMEBODY,
    child_named,
    connect,
    eventually,
    mode_of,
    processes_of,
    servers_only,
    with_namespaces,
)
from tests.slowness import SLOWNESS

LAST_LINE = "Press Ctrl-C to stop."


@asynccontextmanager
async def foreground(data: Path, port: int = 0, account: Account | None = None) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        *launcher(account or own_account(), signal.SIGKILL),
        *(sys.executable, "-B", "-m", "tests.local.foreground", str(data), str(port)),
        cwd=PROJECT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read_until(process: Process, line: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(60 * SLOWNESS):
        while not lines or line not in lines[-1]:
            said = await process.stdout.readline()
            assert said, (lines, await process.stderr.read() if process.stderr else b"")
            lines.append(said.decode().rstrip())
    return lines


async def ended(process: Process) -> int:
    async with asyncio.timeout(60 * SLOWNESS):
        return await process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_everything_cleanly(data: Path, number: signal.Signals) -> None:
    async with foreground(data) as process:
        lines = await read_until(process, LAST_LINE)
        assert "/docs" in lines[-3]
        assert str(data) in lines[-2]
        process.send_signal(number)
        assert await ended(process) == 0
    assert processes_of(data) == []
    assert list((data / "run").iterdir()) == []
    assert "database system is shut down" in (data / "logs/postgres.log").read_text()


async def test_a_second_ctrl_c_changes_nothing(data: Path) -> None:
    async with foreground(data) as process:
        await read_until(process, LAST_LINE)
        process.send_signal(signal.SIGINT)
        await read_until(process, "Stopping")
        process.send_signal(signal.SIGINT)
        assert await ended(process) == 0
    assert "database system is shut down" in (data / "logs/postgres.log").read_text()


async def test_ctrl_c_while_it_starts_leaves_nothing_running(open_folder: Path) -> None:
    data = open_folder / "data"
    async with foreground(data) as process:
        await eventually((data / "postgres.new").exists)
        process.send_signal(signal.SIGINT)
        assert await ended(process) == 0
    assert processes_of(data) == []
    async with servers_only(data):
        pass


async def test_children_end_with_a_killed_supervisor_and_data_is_kept(
    data: Path,
) -> None:
    async with foreground(data) as process:
        await read_until(process, LAST_LINE)
        service = [child_named(name, process.pid) for name in ("api", "worker")]
        process.kill()
        await process.wait()
        await eventually(lambda: not any(map(is_running, service)))
    async with servers_only(data) as stack:
        assert find_running(data) == stack.urls
        await (await connect(stack)).close()
    assert processes_of(data) == []


def is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def test_a_port_in_use_is_one_line_and_exit_code_1(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with foreground(data, port) as process:
            out, error = await process.communicate()
    assert process.returncode == 1
    assert out == b""
    assert error.decode().startswith(f"memobook: cannot listen on port {port} of 127.0.0.1: ")
    assert error.count(b"\n") == 1


async def test_data_in_use_is_one_line_and_exit_code_1(data: Path) -> None:
    async with servers_only(data), foreground(data) as process:
        _, error = await process.communicate()
    assert process.returncode == 1
    assert error.decode() == f"memobook: the data directory {data} is in use by process {os.getpid()}\n"


@with_namespaces
async def test_a_user_runs_it_all_as_itself(tmp_path: Path) -> None:
    async with foreground(tmp_path / "data", account=SOMEBODY) as process:
        await read_until(process, LAST_LINE)
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0
    assert mode_of(tmp_path / "data") == 0o700  # root's would let others pass
    assert processes_of(tmp_path) == []
