"""The whole service on one machine: PostgreSQL, Valkey, worker and API, as children of this process.

They start in that order and stop in the opposite one.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from app.local.address import free_port, url_of
from app.local.children import Child, how_it_ended
from app.local.command import Command, run_to_end
from app.local.directory import DataDirectory
from app.local.errors import LocalError
from app.local.leftovers import PidFile, end_leftovers
from app.local.lock import locked
from app.local.running import Urls, recorded
from app.local.servers import running_servers

_PROGRAM = (sys.executable, "-m", "app.cli")
_NAMES = {"migrate": "The migration", "worker": "The worker", "api": "The API"}
_CHILDREN = ("api", "worker", "valkey", "postgres")
"""By the names of their pid files, in the order in which they stop."""


class Stack:
    """The service while the block runs. To be entered on the main thread, which the children's lives hang on.

    Entering raises LocalError and then leaves nothing running. Inside, `urls` says where the servers are
    and `url` where the API is.

    Args:
        data: The data directory; made if missing. One stack at a time uses it.
        database_url: A real PostgreSQL; none is started then.
        redis_url: A real Redis or Valkey; none is started then.
        host: Where the API listens.
        port: Its port; 0 takes a free one.
        migrate: Whether to bring the schema up to date.
        serve: Whether to run API and worker.
        program: The command whose subcommands `migrate`, `worker` and `api` these are.
        environment: What they find in their environment besides this process's own.
        postgres_settings: Further settings of the embedded PostgreSQL by name.
        say: Takes one line at a time, for people.

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
        self._program = tuple(program)
        self._environment = dict(environment or {})
        self._postgres_settings = dict(postgres_settings or {})
        self._say = say

    @property
    def url(self) -> str:
        """The API's, as this machine reaches it."""
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
        # Before the port is looked at: an API that was left over may be what holds it.
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
        if self._serve:
            await exits.enter_async_context(self._child("worker").running())
            api = self._child("api", "--host", self._host, "--port", str(self._port))
            await exits.enter_async_context(api.running(self._answers))

    def _child(self, name: str, *options: str) -> Child:
        return Child(self._command(name, *options), pid_file=PidFile.of(self.directory, name), say=self._say)

    def _command(self, name: str, *options: str) -> Command:
        urls = {"MEMOBOOK_DATABASE_URL": self.urls.database_url, "MEMOBOOK_REDIS_URL": self.urls.redis_url}
        return Command(
            name=_NAMES[name],
            arguments=(*self._program, name, *options),
            environment={**os.environ, **self._environment, **urls},
        )

    async def _answers(self) -> bool:
        """Whether the API is ready; what the environment says about proxies is not for loopback."""
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
            try:
                return (await client.get(f"{self.url}/readyz")).status_code == httpx.codes.OK
            except httpx.TransportError:
                return False


async def _to_the_end(closing: Coroutine[object, object, None]) -> None:
    """Await `closing` whole, also if this task is cancelled meanwhile; that holds again afterwards."""
    task = asyncio.ensure_future(closing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
