"""A uvicorn server with bounded connections on loopback, in a thread with its own event loop, and clients of it."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn
import uvloop

from app.web.connections import ConnectionLimits
from app.web.protocol import BoundedProtocol, bounded_protocol
from tests.slowness import SLOWNESS

PATIENCE_S = 20.0 * SLOWNESS
BIG_BYTES = 32 * 1024 * 1024
"""The length of the answer at `/big`: more than the buffers of the system hold."""


@dataclass
class Answer:
    """An answer of the server.

    Attributes:
        status: The status code.
        headers: By name in lower case.
        body: Its body.

    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        """The body as a problem document."""
        assert self.headers["content-type"] == "application/problem+json"
        document: dict[str, Any] = orjson.loads(self.body)
        return document


@dataclass
class Client:
    """One connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send bytes; the server may have closed the connection already."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self) -> Answer:
        """Read one answer with a Content-Length."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(head[0].split()[1]), headers, body)

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        read = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                while part := await self.reader.read(1 << 16):
                    read += part
        return read

    async def is_open(self) -> bool:
        """Whether a request on this connection is answered."""
        await self.send(get("/"))
        try:
            return (await self.answer()).status == 200
        except (ConnectionError, asyncio.IncompleteReadError):
            return False


@dataclass
class Served:
    """A running server.

    Attributes:
        port: Its port.
        requests: The path and the body of each request that the application has read to its end.
        headers: The headers of the last request, after its body was read.
        gone: How many requests ended because the client was gone.

    """

    port: int
    loop: asyncio.AbstractEventLoop
    server: uvicorn.Server
    requests: list[tuple[str, int]] = field(default_factory=list)
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    gone: int = 0
    clients: list[Client] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> Client:
        """Open a connection, which ends with the server."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20))
        self.clients.append(client)
        return client

    @property
    def connections(self) -> int:
        """How many connections the server has."""
        return len(self.server.server_state.connections)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition of the server holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                await asyncio.to_thread(self._turn)

    async def received(self, overhead_bytes: int) -> None:
        """Wait until the only connection has read that many bytes of a request, its body not counted."""
        protocols = self.server.server_state.connections
        await self.until(
            lambda: [one._overhead_bytes for one in protocols if isinstance(one, BoundedProtocol)] == [overhead_bytes]
        )

    async def closed(self) -> None:
        """Wait until the server has no connection."""
        await self.until(lambda: self.connections == 0)

    def release(self) -> None:
        """Let the requests for `/wait` go on."""
        self.loop.call_soon_threadsafe(self.released.set)

    def _turn(self) -> None:
        """Wait for the next turns of the server's loop."""
        asyncio.run_coroutine_threadsafe(_timers(), self.loop).result(PATIENCE_S)

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with the length of the body; `/early` answers before it, `/wait` waits, `/big` answers at length."""
        path = scope["path"]
        if path == "/wait":
            await self.released.wait()
        size = 0
        while path != "/early":
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        self.requests.append((path, size))
        self.headers = list(scope["headers"])
        body = b"x" * BIG_BYTES if path == "/big" else b"%d" % size
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _timers() -> None:
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(0.005, passed.set_result, None)
    await passed


def get(path: str, *headers: str) -> bytes:
    """A request without a body."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def post(path: str, *headers: str) -> bytes:
    """The head of a request with a body."""
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


@asynccontextmanager
async def serving(keep_alive_s: int = 5, linger_s: float = 0.2, **limits: Any) -> AsyncIterator[Served]:
    """Serve with the given limits."""
    listening = socket.create_server(("127.0.0.1", 0))
    loop = uvloop.new_event_loop()
    served: Served

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await served.application(scope, receive, send)

    config = uvicorn.Config(
        application,
        http=bounded_protocol(ConnectionLimits(linger_s=linger_s, **limits)),
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    served = Served(listening.getsockname()[1], loop, server)
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listening])))
    thread.start()
    try:
        yield served
    finally:
        for client in served.clients:
            client.writer.transport.abort()
            with suppress(ConnectionError):
                await client.writer.wait_closed()
        served.release()
        server.force_exit = True
        server.should_exit = True
        await asyncio.to_thread(thread.join, PATIENCE_S)
        loop.close()
