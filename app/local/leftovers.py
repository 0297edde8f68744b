"""Ends child processes that a killed run left behind; they are found by their pid files.

A pid file is used only if the start time of the process is the one in the file, and if the file was written for this
data directory. The pid files in a copy of DATA name the processes of the original, so they are not used.
"""

import asyncio
import json
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from app.local.directory import DataDirectory, write_private
from app.local.errors import LocalError
from app.local.processes import Process, find_process

_GRACE_S = 20.0
_KILLED_S = 5.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class PidFile:
    """The pid file of a child, `DATA/run/<name>.pid`.

    Attributes:
        path: The file.
        data: The data directory it is written for.

    """

    path: Path
    data: Path

    @classmethod
    def of(cls, directory: DataDirectory, name: str) -> Self:
        """Return the pid file of the child `name`."""
        return cls(directory.run / f"{name}.pid", directory.path)

    def write(self, pid: int, stop_signal: signal.Signals) -> None:
        """Record a child that has just started, and the signal that stops it cleanly."""
        process = find_process(pid)
        if process is None:  # it has already ended
            return self.remove()
        fields = {
            "data": str(self.data),
            "pid": pid,
            "started": process.started,
            "stop_signal": int(stop_signal),
        }
        return write_private(self.path, json.dumps(fields))

    def remove(self) -> None:
        """Remove the file after the child has ended."""
        self.path.unlink(missing_ok=True)

    def find(self) -> tuple[Process, int] | None:
        """Return the child and the signal that stops it cleanly, or None if it no longer runs."""
        try:
            fields = json.loads(self.path.read_text(encoding="utf-8"))
            process = Process(int(fields["pid"]), str(fields["started"]))
            data, stop_signal = fields["data"], int(fields["stop_signal"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return (process, stop_signal) if data == str(self.data) and process.lives() else None


async def end_leftovers(files: Iterable[PidFile], say: Callable[[str], None]) -> None:
    """Stop the children in `files` that still run, one after the other, and remove the files.

    Raises LocalError if one of them does not end.
    """
    for file in files:
        found = file.find()
        if found:
            process, stop_signal = found
            say(f"Ending process {process.pid} ({file.path.stem}), left over from a run that was killed.")
            if not await _end(process, stop_signal):
                raise LocalError(f"process {process.pid}, left over from an earlier run, cannot be stopped")
        file.remove()


async def _end(process: Process, stop_signal: int) -> bool:
    for number, grace_s in ((stop_signal, _GRACE_S), (signal.SIGKILL, _KILLED_S)):
        process.signal(number)
        for _ in range(int(grace_s / _POLL_S)):
            if not process.lives():
                return True
            await asyncio.sleep(_POLL_S)
    return False
