"""A hostile client: one of several floods, at full speed, from a process of its own.

    python -m bench.flood NAME PORT SECONDS ASSET

ASSET is the path of a file of `/docs`. It prints what it has sent, as JSON. `bench/floods.py` measures what it does to
other clients.
"""

import asyncio
import json
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import uvloop

_HOST = "127.0.0.1"
_KIB = 1024
ASSET = "ASSET"
"""Replaced by the path of a file of `/docs`, which has the version of the files in it."""

_GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
_AGAIN_S = 0.01
"""The pause before a connection that could not be opened is tried again."""


@dataclass(frozen=True, slots=True)
class Flood:
    """What one connection sends, and how many there are; a connection that is closed is opened again at once.

    Attributes:
        label: What it is, for the table.
        start: The first bytes of a connection.
        piece: Sent again and again after `start`; empty if nothing follows.
        connections: How many connections are open at the same time.
        reads: Whether the client reads what the server answers.

    """

    label: str
    start: bytes
    piece: bytes = b""
    connections: int = 8
    reads: bool = True


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


FLOODS = {
    "header": Flood("endless header", _GET + b"A: ", b"a" * 64 * _KIB),
    "fields": Flood("endless fields", _GET, b"A: b\r\n" * 8 * _KIB),
    "url": Flood("endless URL", b"GET /", b"a" * 64 * _KIB),
    "trailers": Flood(
        "endless trailers",
        b"POST /v1/chats HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"A: b\r\n" * 8 * _KIB,
    ),
    "body": Flood(
        "endless body without a key",
        b"POST /v1/chats/c/messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + b" " * 64 * _KIB + b"\r\n",
    ),
    "pipelined": Flood("pipelined requests", b"", _get("/healthz") * 500),
    "half": Flood("6,000 half requests", _GET + b"A: b", connections=6_000),
    "half-long": Flood("1,500 half requests of 60 KiB", _GET + b"A: " + b"a" * 60 * _KIB, connections=1_500),
    "silent": Flood("6,000 silent connections", b"", connections=6_000),
    "schema": Flood(
        "200 clients that do not read `/openapi.json`", _get("/openapi.json"), connections=200, reads=False
    ),
    "assets": Flood(
        "500 clients that do not read an asset of `/docs`",
        _get(ASSET),
        connections=500,
        reads=False,
    ),
}


class Sender(asyncio.Protocol):
    """One connection of a flood."""

    def __init__(self, flood: Flood, counts: dict[str, int]) -> None:
        self._flood, self._counts = flood, counts
        self._may_write = True
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the start, and then the pieces."""
        self._transport = cast("asyncio.Transport", transport)
        self._counts["connections"] += 1
        if not self._flood.reads:
            self._transport.pause_reading()
        if self._flood.start:
            self._send(self._flood.start)
        if self._flood.piece:
            self._pump()

    def pause_writing(self) -> None:
        """Wait until the server has read."""
        self._may_write = False

    def resume_writing(self) -> None:
        """Go on."""
        self._may_write = True
        self._pump()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Let another connection take its place."""
        if not self.closed.done():
            self.closed.set_result(None)

    def _pump(self) -> None:
        if self._transport.is_closing():
            return
        if self._flood.piece and self._may_write:
            self._send(self._flood.piece)
            asyncio.get_running_loop().call_soon(self._pump)

    def _send(self, data: bytes) -> None:
        self._counts["bytes"] += len(data)
        self._transport.write(data)


async def _keep_open(flood: Flood, port: int, counts: dict[str, int]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            _, sender = await loop.create_connection(lambda: Sender(flood, counts), _HOST, port)
        except OSError:
            await asyncio.sleep(_AGAIN_S)
        else:
            await sender.closed


async def run(flood: Flood, port: int, seconds: float) -> dict[str, int]:
    """Keep all connections of a flood open for a time; return the bytes and the connections."""
    counts = {"bytes": 0, "connections": 0}
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for _ in range(flood.connections):
                group.create_task(_keep_open(flood, port, counts))
    return counts


def main(name: str, port: str, seconds: str, asset: str) -> None:
    """Run a flood, with as many open files as the system permits."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    flood = FLOODS[name]
    flood = replace(flood, start=flood.start.replace(ASSET.encode(), asset.encode()))
    print(json.dumps(uvloop.run(run(flood, int(port), float(seconds)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
