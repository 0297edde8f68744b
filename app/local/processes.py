"""Identification of processes by pid and start time.

A pid can be reused by another process, but not together with the start time. On Linux, the start time comes from /proc
(the id of the boot, and clock ticks since the boot). On other systems it comes from `ps`.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A unique identification of a process.

    Attributes:
        pid: The process id.
        started: The start time, in a form that can only be compared.

    """

    pid: int
    started: str

    def lives(self) -> bool:
        """Return whether the process still runs."""
        return find_process(self.pid) == self

    def signal(self, number: int) -> None:
        """Send the process a signal if it still runs."""
        if self.lives():
            os.kill(self.pid, number)


def find_process(pid: int) -> Process | None:
    """Return the process that has this pid now, or None. A zombie counts as ended."""
    started = _started_by_proc(pid) if (_PROC / "self/stat").exists() else started_by_ps(pid)
    return Process(pid, started) if started else None


def working_directory(pid: int) -> Path | None:
    """Return the working directory of a process.

    Returns None if the process has ended, belongs to another user, or the system does not provide it.
    """
    try:
        return (_PROC / str(pid) / "cwd").readlink()
    except OSError:
        return None


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The second field is the name in parentheses, which may itself contain spaces and parentheses.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot} {rest[18]}"


def started_by_ps(pid: int) -> str | None:
    """Return the start time of a process, to the second, or None if it has ended. For systems without /proc."""
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
