"""A server that answers every request with the same bytes. It shows how many requests the load can send at most.

python -m bench.ceiling PORT BODY_BYTES
"""

import asyncio
import sys
from typing import cast

import uvloop


class Answering(asyncio.Protocol):
    """A connection. The load sends one small request at a time, so each piece of data is one request."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - what was asked does not matter
        """Send the answer."""
        self._transport.write(self._answer)


async def serve(port: int, body_bytes: int) -> None:
    """Listen on loopback until cancelled."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {body_bytes}\r\n\r\n"
    answer = head.encode() + b" " * body_bytes
    server = await asyncio.get_running_loop().create_server(lambda: Answering(answer), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
