"""The real service in processes that the soak can kill, freeze and restart one by one.

Two API processes and two workers as an operator starts them, PostgreSQL and Valkey from their wheels, and the scripted
model. The service reaches PostgreSQL through a proxy that can freeze, and its clients reach it through proxies that can
cut connections.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asyncpg
import httpx
import orjson
import psutil

from app.local.account import choose_account
from app.local.address import free_port
from app.local.binaries import postgres_program
from app.local.command import Command, run_to_end, spawn
from app.local.directory import DataDirectory
from app.local.postgres import Postgres
from app.local.sockets import socket_base, socket_directory
from app.local.valkey import Valkey
from tests.oracle.answers import echo
from tests.proxies import CuttingProxy, FreezingProxy
from tests.scripted_model import ScriptedModel
from tests.slowness import ALLOCATOR, SLOWNESS
from tests.soak.ledger import Violation
from tests.talk import Json

ROOT = Path(__file__).parents[2]
ADMIN_KEY = "mb_5a0c5a0c5a0c_" + "k" * 43
START_S = 60.0 * SLOWNESS
MAX_PROCESS_BYTES = 500 * 1024 * 1024
MAX_CONNECTIONS = 60
KNOWN_CAUSES = {"Unavailable", "WritesRefused"}
"""Errors that a fault causes: a log may contain them, because they name what the operator has to mend."""


@dataclass
class Program:
    """A process that is started, ended and watched.

    Attributes:
        command: The command.
        process: The running process; None before the first start.
        expected: Whether it is expected to run.

    """

    command: Command
    process: asyncio.subprocess.Process | None = None
    expected: bool = False
    read_bytes: int = 0
    peak_bytes: int = 0

    async def start(self) -> None:
        """Start the process."""
        self.process = await spawn(self.command)
        self.expected = True

    async def end(self, number: signal.Signals, within_s: float = 30.0 * SLOWNESS) -> int:
        """Send a signal, and return the exit code. Raises Violation if the process does not end."""
        assert self.process is not None
        self.expected = False
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            async with asyncio.timeout(within_s):
                return await self.process.wait()
        except TimeoutError:
            raise Violation(f"{self.command.name} does not end within {within_s:g} s of {number.name}") from None

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def processes(self) -> list[psutil.Process]:
        """The process and its children."""
        assert self.process is not None
        try:
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    async def kill(self) -> None:
        """Kill the process at the end of the soak, even if it is stopped."""
        if self.process is not None and self.process.returncode is None:
            await self.end(signal.SIGKILL)

    def check(self) -> None:
        """Check that the process runs if it has to, and is not too large. Raises Violation."""
        if not self.expected or self.process is None:
            return
        if self.process.returncode is not None:
            raise Violation(f"{self.command.name} ended by itself with {self.process.returncode}")
        with suppress(psutil.NoSuchProcess):
            size = psutil.Process(self.process.pid).memory_info().rss
            self.peak_bytes = max(self.peak_bytes, size)
            if size > MAX_PROCESS_BYTES:
                raise Violation(f"{self.command.name} uses {size:,} bytes of memory")

    def read_log(self) -> Iterator[str]:
        """Yield the lines of the log that were not read before."""
        assert self.command.log is not None
        with self.command.log.open("rb") as file:
            file.seek(self.read_bytes)
            for line in file:
                if line.endswith(b"\n"):  # the rest of an unfinished line is read next time
                    self.read_bytes += len(line)
                    yield line.decode(errors="replace").rstrip()


@dataclass
class Stack:
    """The service, from `async with` on.

    Args:
        path: A directory for its data and logs; other users must be able to enter it.

    """

    path: Path
    apis: list[Program] = field(default_factory=list)
    workers: list[Program] = field(default_factory=list)
    proxies: list[CuttingProxy] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    model: ScriptedModel = field(default_factory=ScriptedModel)

    async def __aenter__(self) -> Self:
        self._exits = AsyncExitStack()
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exits.__aexit__(kind, error, trace)

    async def _start(self) -> None:
        directory = DataDirectory(self.path / "data")
        directory.make()
        account = choose_account(
            directory.postgres, [directory.path, postgres_program("postgres").parent, socket_base()]
        )
        sockets = self._exits.enter_context(socket_directory(directory.run / "sockets", account))
        settings = {"fsync": "off", "max_connections": str(MAX_CONNECTIONS), "log_min_messages": "warning"}
        self._postgres = Postgres(directory, account, sockets, settings)
        self._valkey = Valkey(directory, sockets)
        await self._postgres.initialise()
        self.postgres = self._program(self._postgres.command)
        self.valkey = self._program(self._valkey.command)
        await self.start_postgres()
        await self.start_valkey()
        await self._postgres.make_database()
        self.database_url = self._postgres.url.replace("+asyncpg", "")
        proxied = Path(self._exits.enter_context(socket_directory(directory.run / "proxied", account)))
        self.link = await self._exits.enter_async_context(FreezingProxy(self._postgres.url, proxied))
        await self._exits.enter_async_context(self.model)
        self.model.otherwise = echo
        environment = self._environment()
        assert await run_to_end(self._command("migrate", environment)) == 0, "the migration failed"
        for number in (1, 2):
            port = free_port("127.0.0.1", 0)
            self.ports.append(port)
            self.apis.append(self._program(self._command("api", environment, number, "--port", str(port))))
            self.workers.append(self._program(self._command("worker", environment, number)))
            self.proxies.append(await self._exits.enter_async_context(CuttingProxy(port)))
        for program in (*self.apis, *self.workers):
            await program.start()
        self.http = await self._exits.enter_async_context(
            httpx.AsyncClient(headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=10 * SLOWNESS, trust_env=False)
        )
        await self.until_ready(START_S)

    def _environment(self) -> dict[str, str]:
        return {
            **ALLOCATOR,
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": str(ROOT),
            "MEMOBOOK_DATABASE_URL": self.link.url,
            "MEMOBOOK_REDIS_URL": self._valkey.url,
            "MEMOBOOK_ADMIN_KEY": ADMIN_KEY,
            "MEMOBOOK_DATABASE_TIMEOUT_S": "3",
            "MEMOBOOK_DATABASE_POOL": "10",
            "MEMOBOOK_LLM_BASE_URL": self.model.base_url,
            "MEMOBOOK_LLM_MODEL": "scripted",
            "MEMOBOOK_LLM_TIMEOUT_S": "2",
            "MEMOBOOK_SETTLE_S": "0.2",
            "MEMOBOOK_POLL_S": "1",
            "MEMOBOOK_KEPT_REPLACED_LINES": "200",  # former lines are compared
            "MEMOBOOK_LOG_LEVEL": "warning",
        }

    def _command(self, name: str, environment: dict[str, str], number: int = 0, *options: str) -> Command:
        return Command(
            name=f"{name} {number}",
            arguments=(sys.executable, "-m", "app.cli", name, *options),
            environment=environment,
            directory=self.path,  # not that of a developer, whose .env would be read
            log=self.path / f"{name}-{number}.log",
        )

    def _program(self, command: Command) -> Program:
        program = Program(command)
        self._exits.push_async_callback(program.kill)
        return program

    @property
    def programs(self) -> list[Program]:
        """The processes of the service."""
        return [*self.apis, *self.workers]

    async def start_postgres(self) -> None:
        """Start PostgreSQL, and wait until it accepts connections; a killed one's processes may hold its memory."""
        async with asyncio.timeout(START_S):
            while True:
                self._postgres.forget_dead_postmaster()
                await self.postgres.start()
                assert self.postgres.process is not None
                while self.postgres.process.returncode is None:
                    if await self._postgres.accepts():
                        return
                    await asyncio.sleep(0.05)
                await asyncio.sleep(0.1)

    async def start_valkey(self) -> None:
        """Start Valkey, and wait until it answers."""
        await self.valkey.start()
        async with asyncio.timeout(START_S):
            while not await self._valkey.accepts():
                await asyncio.sleep(0.05)

    @property
    def redis_url(self) -> str:
        """The URL of Valkey."""
        return self._valkey.url

    async def connect(self, **settings: str) -> "asyncpg.Connection[asyncpg.Record]":
        """Return a connection to the database that no proxy is before."""
        given = {"application_name": "soak", **settings}
        return await asyncpg.connect(self.database_url, server_settings=given, timeout=10 * SLOWNESS)

    async def readiness(self, port: int) -> tuple[int, Json]:
        """The status and the answer of `/readyz` of an API process; 0 if it does not answer."""
        try:
            answer = await self.http.get(f"http://127.0.0.1:{port}/readyz")
            return answer.status_code, answer.json()
        except httpx.HTTPError:
            return 0, {}

    async def until_ready(self, within_s: float) -> None:
        """Wait until every API process says that all is well. Raises Violation."""
        await self.until_readiness(lambda status, said: status == 200 and said["redis"] == "ok", within_s)

    async def until_readiness(self, reached: Callable[[int, Json], bool], within_s: float) -> None:
        """Wait until every API process says on `/readyz` what is expected. Raises Violation."""
        last: Any = None
        try:
            async with asyncio.timeout(within_s):
                for port in self.ports:
                    while not reached(*(last := await self.readiness(port))):
                        await asyncio.sleep(0.05)
        except TimeoutError:
            raise Violation(f"/readyz says {last} after {within_s:g} s") from None

    def check_processes(self) -> None:
        """Check that the service runs, is not too large, and has logged no unexpected error. Raises Violation."""
        for program in self.programs:
            program.check()
            for line in program.read_log():
                if reason := is_unexpected(line):
                    raise Violation(f"{program.command.name} logged {reason}: {line[:3000]}")


@contextmanager
def open_directory() -> Iterator[Path]:
    """Yield a directory that every user can enter: PostgreSQL runs as another user if this process is root's."""
    with tempfile.TemporaryDirectory(prefix="soak-", dir="/tmp") as name:
        path = Path(name).resolve()
        path.chmod(0o711)
        yield path


def is_unexpected(line: str) -> str | None:
    """Return why a line of a log is a fault of the service: it is no record, or a record of an error."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return "something that is no record"
    named = {str(cause).partition(":")[0] for cause in record.get("error", ())} | set(record["message"].split(": "))
    if named & KNOWN_CAUSES:
        return None
    if "traceback" in record:
        return "a traceback"
    return "an error" if record["level"] in ("error", "critical") else None
