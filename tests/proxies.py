"""Proxies before the servers that a test talks to: they make a server hang, or break connections off."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

Cut = Callable[[int], int | None]
"""How many bytes of a chunk, whose length is given, pass before the connection is cut; None: all, and no cut."""


AsyncCut = Callable[[int], Awaitable[int | None]]


def pass_all(_length: int) -> None:
    """Cut nothing."""


class Proxy:
    """Listens while it is entered, and passes each connection on to a server until one of its two ends closes it.

    A subclass defines where it listens, how it connects to the server, and what it does with each chunk.
    """

    def __init__(self) -> None:
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await self._listen()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut_all(self) -> None:
        """Cut all connections."""
        for connection in self._connections:
            connection.cancel()

    async def _listen(self) -> asyncio.Server:
        raise NotImplementedError

    async def _connect(self) -> Streams:
        raise NotImplementedError

    async def _cut_request(self, length: int) -> int | None:
        """Return how many bytes of a chunk from the client pass, as a `Cut` does."""
        raise NotImplementedError

    async def _cut_answer(self, length: int) -> int | None:
        """Return how many bytes of a chunk from the server pass, as a `Cut` does."""
        raise NotImplementedError

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._pass_on(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on both directions until one of them ends; then close both. Without a server, close at once."""
        writers = [writer]
        try:
            with suppress(OSError):
                server_reader, server_writer = await self._connect()
                writers.append(server_writer)
                pipes = [
                    asyncio.create_task(self._pipe(reader, server_writer, self._cut_request)),
                    asyncio.create_task(self._pipe(server_reader, writer, self._cut_answer)),
                ]
                try:
                    await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pipe in pipes:
                        pipe.cancel()
                    await asyncio.gather(*pipes, return_exceptions=True)
        finally:
            for each in writers:
                each.close()

    @staticmethod
    async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter, cut: AsyncCut) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                passing = await cut(len(data))
                target.write(data[:passing])
                await target.drain()
                if passing is not None:
                    return


class CuttingProxy(Proxy):
    """A proxy on a port of loopback that can cut connections in the middle of a request or of an answer.

    Attributes:
        port: Where it listens.
        cut_requests: Applied to each chunk from a client.
        cut_answers: Applied to each chunk from the server.

    """

    def __init__(self, target_port: int) -> None:
        super().__init__()
        self.port = 0
        self.cut_requests: Cut = pass_all
        self.cut_answers: Cut = pass_all
        self._target_port = target_port

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self._target_port)

    async def _cut_request(self, length: int) -> int | None:
        return self.cut_requests(length)

    async def _cut_answer(self, length: int) -> int | None:
        return self.cut_answers(length)


class FreezingProxy(Proxy):
    """A proxy before PostgreSQL that can freeze: it then takes connections and bytes, and passes nothing on.

    Args:
        database_url: A database of the server, which listens on a socket.
        folder: Where the proxy listens; its path has to be short.

    Attributes:
        url: The database's URL by way of the proxy.
        connected: Set once a client has connected.

    """

    def __init__(self, database_url: str, folder: Path) -> None:
        super().__init__()
        there = parse_qs(urlsplit(database_url).query)["host"][0]
        self.url = database_url.replace(there, str(folder))
        self.connected = asyncio.Event()
        self._there = f"{there}/.s.PGSQL.5432"
        self._here = folder / ".s.PGSQL.5432"
        self._thawed = asyncio.Event()
        self._thawed.set()

    def freeze(self) -> None:
        """Pass nothing on until `thaw`."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Pass on what has arrived, and what follows."""
        self._thawed.set()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._accept, self._here)

    async def _connect(self) -> Streams:
        self.connected.set()
        return await asyncio.open_unix_connection(self._there)

    async def _cut_request(self, _length: int) -> None:
        await self._thawed.wait()

    async def _cut_answer(self, _length: int) -> None:
        await self._thawed.wait()
