"""A proxy before an API process that can cut connections in the middle of a request or of an answer."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

Cut = Callable[[int], int | None]
"""How many bytes of a chunk, whose length is given, pass before the connection is cut; None: all, and no cut."""


def pass_all(_length: int) -> None:
    """Cut nothing."""


class CuttingProxy:
    """Listens on loopback while it is entered, and passes connections on to a port.

    Attributes:
        port: Where it listens.
        cut_requests: Applied to each chunk from a client.
        cut_answers: Applied to each chunk from the server.

    """

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.cut_requests: Cut = pass_all
        self.cut_answers: Cut = pass_all
        self._target_port = target_port
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
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

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on both directions until one of them ends, then cut the connection."""
        writers = [writer]
        try:
            with suppress(OSError):
                server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
                writers.append(server_writer)
                pipes = [
                    asyncio.create_task(_pipe(reader, server_writer, lambda length: self.cut_requests(length))),
                    asyncio.create_task(_pipe(server_reader, writer, lambda length: self.cut_answers(length))),
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


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter, cut: Cut) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            passing = cut(len(data))
            target.write(data[:passing])
            await target.drain()
            if passing is not None:
                return
