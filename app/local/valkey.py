"""The embedded Valkey. It stores nothing on disk and little in memory, because none of its data has to be kept.

It wakes workers, counts requests for the rate limits, and keeps what contexts have recalled lately.
"""

import asyncio
from pathlib import Path

from app.local.binaries import valkey_program
from app.local.command import Command
from app.local.directory import DataDirectory

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "no",
    "maxmemory": "64mb",
    "maxmemory-policy": "allkeys-lru",  # any key may be evicted
    "daemonize": "no",
}


class Valkey:
    """A Valkey server that listens on a socket in `sockets`.

    Args:
        directory: The data directory of the embedded stack. The server works and logs in it.
        sockets: The directory of its socket.

    """

    def __init__(self, directory: DataDirectory, sockets: Path) -> None:
        self._directory = directory
        self._socket = sockets / "valkey.sock"

    @property
    def url(self) -> str:
        """The URL for Redis clients."""
        return f"unix://{self._socket}"

    @property
    def command(self) -> Command:
        """The command of the server."""
        settings = {**_SETTINGS, "unixsocket": str(self._socket), "dir": str(self._directory.run)}
        options = (part for name, value in settings.items() for part in (f"--{name}", value))
        return Command(
            name="Valkey",
            arguments=(str(valkey_program()), *options),
            environment=_ENVIRONMENT,
            directory=Path("/"),
            log=self._directory.logs / "valkey.log",
        )

    async def accepts(self) -> bool:
        """Return whether the server responds."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return (await reader.readline()).startswith(b"+PONG")
        finally:
            writer.close()
            await writer.wait_closed()
