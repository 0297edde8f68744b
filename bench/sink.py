"""A server that answers nothing: it drops 64 KiB of each connection, then closes it.

    python -m bench.sink PORT

A flood that is sent to it shows what the flood's own process costs the machine (`bench/floods.py`).
"""

import asyncio
import sys
from typing import cast

import uvloop

_CLOSE_AFTER_BYTES = 64 * 1024
_BACKLOG = 2_048


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Count what arrives, and close."""
        self._received += len(data)
        if self._received >= _CLOSE_AFTER_BYTES:
            self._transport.abort()


async def serve(port: int) -> None:
    """Serve until the process ends."""
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", port, backlog=_BACKLOG)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
