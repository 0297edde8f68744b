"""Which process a pid means.

A pid is given again to another process; the time a process began is not. Linux tells it in /proc (clock ticks
since boot), other systems through `ps`.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process, for all time.

    Attributes:
        pid: Its number.
        started: When it began; only good for comparing.

    """

    pid: int
    started: str

    def lives(self) -> bool:
        """Whether it still runs."""
        return find_process(self.pid) == self

    def signal(self, number: int) -> None:
        """Send it a signal if it still runs; nobody else gets it."""
        if self.lives():
            os.kill(self.pid, number)


def find_process(pid: int) -> Process | None:
    """The process that has this pid now; one that ended and was not yet waited for counts as gone."""
    started = _started_by_proc(pid) if (_PROC / "self/stat").exists() else started_by_ps(pid)
    return Process(pid, started) if started else None


def working_directory(pid: int) -> Path | None:
    """The working directory of a process; None if it is gone, another user's, or the system does not tell."""
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
    # The second field is the name in parentheses and may itself hold blanks and parentheses.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot} {rest[18]}"


def started_by_ps(pid: int) -> str | None:
    """As `find_process`, where there is no /proc; exact to the second."""
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
