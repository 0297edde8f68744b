"""The processes beside the stack: servers that are measured, and the load that measures them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import psutil

from app.local.address import free_port
from app.local.children import Child
from app.local.command import Command
from app.local.directory import DataDirectory
from app.local.leftovers import PidFile
from bench.load import Outcome, Plan

_ROOT = Path(__file__).resolve().parents[1]
_HOST = "127.0.0.1"
_END_S = 5.0


class Refused(Exception):
    """A server answered with a status other than 200 and 201, so the measurement is invalid."""


class Load:
    """A client of the load's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def run(self, plan: Plan) -> Outcome:
        """Carry out a plan in the load's process. Raises Refused, or EOFError if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise EOFError("the load has no pipes")
        stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        await stdin.drain()
        line = await stdout.readline()
        if not line:
            raise EOFError("the load has ended")
        outcome = Outcome(**json.loads(line))
        if outcome.refused or not outcome.count:
            raise Refused(f"{outcome.refused} requests were refused, {outcome.count} answered")
        return outcome


@asynccontextmanager
async def running_load() -> AsyncGenerator[Load]:
    """Run the load for the duration of the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.load"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    try:
        yield Load(process)
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def running_server(
    directory: DataDirectory, module: str, *options: object, environment: Mapping[str, str]
) -> AsyncGenerator[int]:
    """Run `python -m bench.<module> PORT OPTIONS…` for the duration of the block; yield its port. Raises LocalError."""
    port = free_port(_HOST, 0)
    command = Command(
        name=f"bench.{module}",
        arguments=(sys.executable, "-m", f"bench.{module}", str(port), *map(str, options)),
        environment={**os.environ, **environment},
        directory=_ROOT,
    )
    child = Child(command, pid_file=PidFile.of(directory, module), say=say)

    async def accepts() -> bool:
        try:
            _, writer = await asyncio.open_connection(_HOST, port)
        except OSError:
            return False
        writer.close()
        return True

    async with child.running(accepts):
        yield port


def process_of(directory: DataDirectory, name: str) -> psutil.Process:
    """Return a child process of the stack that runs on `directory`: `api` or `worker`. Raises LookupError."""
    found = PidFile.of(directory, name).find()
    if found is None:
        raise LookupError(f"the {name} does not run")
    return psutil.Process(found[0].pid)


def say(line: str) -> None:
    """Print a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)
