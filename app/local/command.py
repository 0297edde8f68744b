"""What a child runs, and the one place where children are started."""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from app.local.account import Account, launcher, own_account

_MAX_LOG_BYTES = 4_000_000
_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program and how it is treated.

    Attributes:
        name: What people call it.
        arguments: Its path and what follows.
        environment: The whole of it.
        directory: Where it runs; None is here.
        log: Where its output goes; None is this process's own output.
        account: Who it runs as.
        stop_signals: Sent in turn, with seconds to wait after each; SIGKILL to the whole group comes last.
        death_signal: Sent by the kernel when this process is killed.

    """

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path | None = None
    log: Path | None = None
    account: Account = field(default_factory=own_account)
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 15.0),)
    death_signal: signal.Signals = signal.SIGKILL

    def last_words(self) -> str:
        """The last line in its log, after a colon; nothing if there is none."""
        if self.log is None or not self.log.exists():
            return ""
        lines = self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


async def spawn(command: Command) -> asyncio.subprocess.Process:
    """Start a child in a session of its own, so that the terminal's Ctrl-C does not reach it.

    Call it on the main thread: the death signal comes when the *thread* that started the child ends.
    """
    with _output(command.log) as output:
        return await asyncio.create_subprocess_exec(
            *launcher(command.account, command.death_signal),
            *command.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(command.environment),
            cwd=command.directory,
            start_new_session=True,
        )


async def run_to_end(command: Command) -> int:
    """Run a child until it ends by itself and return its code (−n: ended by signal n); cancelled, kill it."""
    process = await spawn(command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            kill_group(process.pid)
            await process.wait()


def kill_group(pid: int) -> None:
    """Kill a child that `spawn` started, with all that it started in turn."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


@contextmanager
def _output(log: Path | None) -> Iterator[IO[bytes] | None]:
    if log is None:
        yield None
        return
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(log.with_name(log.name + ".old"))
    with log.open("ab") as file:
        yield file
