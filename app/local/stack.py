"""The whole service on one machine: PostgreSQL, Valkey, worker and API, as child processes of this process.

They start in this order and stop in reverse order.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from app.local.address import free_port, url_of
from app.local.children import Child, how_it_ended
from app.local.command import STOP_SIGNALS, Command, StopSignals, run_to_end
from app.local.directory import DataDirectory
from app.local.errors import LocalError
from app.local.leftovers import PidFile, end_leftovers
from app.local.lock import locked
from app.local.running import Urls, recorded
from app.local.servers import running_servers

_PROGRAM = (sys.executable, "-m", "app.cli")
_NAMES = {"migrate": "The migration", "worker": "The worker", "api": "The API"}
_CHILDREN = ("api", "worker", "valkey", "postgres")
"""The names of the pid files, in the order in which the children stop."""

_WORKER_STOPS: StopSignals = ((signal.SIGTERM, 5.0), (signal.SIGTERM, 15.0))
"""The second signal ends a worker that still waits for the model, because a person waits until this process ends."""


class Stack:
    """Runs the service during an `async with` block.

    Enter it on the main thread: the children are stopped when the thread that started them ends. Entering raises
    LocalError if the service cannot start; no process is left running then. Inside the block, `urls` holds the URLs of
    the servers and `url` that of the API.

    Args:
        data: The data directory, created if missing. Only one stack at a time can use it.
        database_url: An external PostgreSQL; the embedded one is not started then.
        redis_url: An external Redis or Valkey; the embedded one is not started then.
        host: The address that the API listens on.
        port: The port of the API; 0 for a free one.
        migrate: Whether to migrate the database.
        serve: Whether to run API and worker.
        check: Called with the URLs after the migration, before API and worker start. An exception ends the start.
        program: The command with the subcommands `migrate`, `worker` and `api`.
        environment: Additional environment variables for these subcommands.
        postgres_settings: Additional settings of the embedded PostgreSQL by name.
        say: Called with lines of text for people, one at a time.

    """

    urls: Urls

    def __init__(
        self,
        data: Path,
        *,
        database_url: str | None = None,
        redis_url: str | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        migrate: bool = True,
        serve: bool = True,
        check: Callable[[Urls], Awaitable[None]] | None = None,
        program: Sequence[str] = _PROGRAM,
        environment: Mapping[str, str] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.directory = DataDirectory(data)
        self._database_url = database_url
        self._redis_url = redis_url
        self._host = host
        self._port = port
        self._migrate = migrate
        self._serve = serve
        self._check = check
        self._program = tuple(program)
        self._environment = dict(environment or {})
        self._postgres_settings = dict(postgres_settings or {})
        self._say = say

    @property
    def url(self) -> str:
        """The URL of the API for clients on this machine."""
        return url_of(self._host, self._port)

    async def __aenter__(self) -> Self:
        self._exits = AsyncExitStack()
        try:
            await self._enter(self._exits)
        except BaseException as error:
            await _to_the_end(self._exits.aclose())
            if isinstance(error, OSError):
                raise LocalError(f"cannot use the data directory {self.directory.path}: {error}") from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _to_the_end(self._exits.aclose())

    async def _enter(self, exits: AsyncExitStack) -> None:
        self.directory.make()
        exits.enter_context(locked(self.directory.lock))
        # Before the port is checked: a leftover API may still use it.
        await end_leftovers((PidFile.of(self.directory, name) for name in _CHILDREN), self._say)
        if self._serve:
            self._port = free_port(self._host, self._port)
        servers = running_servers(
            self.directory,
            database_url=self._database_url,
            redis_url=self._redis_url,
            postgres_settings=self._postgres_settings,
            say=self._say,
        )
        self.urls = await exits.enter_async_context(servers)
        exits.enter_context(recorded(self.directory, self.urls))
        if self._migrate and (code := await run_to_end(self._command("migrate"))) != 0:
            raise LocalError(f"The migration failed ({how_it_ended(code)})")
        if self._check:
            await self._check(self.urls)
        if self._serve:
            await exits.enter_async_context(self._child("worker", stop_signals=_WORKER_STOPS).running())
            api = self._child("api", "--host", self._host, "--port", str(self._port))
            # One client for all probes: creating a client takes 35 ms of CPU time, which the starting processes need.
            client = await exits.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=10))
            await exits.enter_async_context(api.running(partial(self._answers, client)))

    def _child(self, name: str, *options: str, stop_signals: StopSignals = STOP_SIGNALS) -> Child:
        command = replace(self._command(name, *options), stop_signals=stop_signals)
        return Child(command, pid_file=PidFile.of(self.directory, name), say=self._say)

    def _command(self, name: str, *options: str) -> Command:
        urls = {"MEMOBOOK_DATABASE_URL": self.urls.database_url, "MEMOBOOK_REDIS_URL": self.urls.redis_url}
        return Command(
            name=_NAMES[name],
            arguments=(*self._program, name, *options),
            environment={**os.environ, **self._environment, **urls},
        )

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        """Return whether the API is ready. `client` ignores the proxies of the environment: the API is on loopback."""
        try:
            return (await client.get(f"{self.url}/readyz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


async def _to_the_end(closing: Coroutine[object, object, None]) -> None:
    """Await `closing` to its end even if this task is cancelled meanwhile; then raise the CancelledError."""
    task = asyncio.ensure_future(closing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
