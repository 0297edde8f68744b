"""A proxy before PostgreSQL that can freeze: it then takes connections and bytes, and passes nothing on."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit


class FreezingProxy:
    """Listens on a socket in a folder while it is entered, and passes connections on to a server.

    Args:
        database_url: A database of the server, which listens on a socket.
        folder: Where the proxy listens; its path has to be short.

    """

    def __init__(self, database_url: str, folder: Path) -> None:
        there = parse_qs(urlsplit(database_url).query)["host"][0]
        self.url = database_url.replace(there, str(folder))
        self.connected = asyncio.Event()
        self._there = f"{there}/.s.PGSQL.5432"
        self._here = folder / ".s.PGSQL.5432"
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._pipes: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._pass_on, self._here)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def freeze(self) -> None:
        """Pass nothing on until `thaw`."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Pass on what has arrived, and what follows."""
        self._thawed.set()

    def cut_all(self) -> None:
        """Cut all connections."""
        for pipe in list(self._pipes):
            pipe.cancel()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected.set()
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self._there)
        except OSError:  # no server: the client is refused, too
            writer.close()
            return
        for source, target in ((reader, server_writer), (server_reader, writer)):
            pipe = asyncio.create_task(self._pipe(source, target))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                while data := await source.read(65_536):
                    await self._thawed.wait()
                    target.write(data)
                    await target.drain()
            finally:
                target.close()
