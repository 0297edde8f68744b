"""The embedded Valkey.

It only says when to look for work, so it keeps nothing on disk and little in memory.
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
    "maxmemory-policy": "allkeys-lru",  # all of it may be lost
    "daemonize": "no",
}


class Valkey:
    """One Valkey on a socket in `sockets`.

    Args:
        directory: DATA, for the log.
        sockets: The directory of its socket.

    """

    def __init__(self, directory: DataDirectory, sockets: Path) -> None:
        self._directory = directory
        self._socket = sockets / "valkey.sock"

    @property
    def url(self) -> str:
        """As Redis clients take it."""
        return f"unix://{self._socket}"

    @property
    def command(self) -> Command:
        """The server."""
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
        """Whether the server answers yet."""
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
