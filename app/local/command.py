"""Commands and their start as child processes."""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from app.local.account import Account, launcher, own_account

StopSignals: TypeAlias = tuple[tuple[signal.Signals, float], ...]
"""Signals in order, each with the seconds to wait after it."""

STOP_SIGNALS: StopSignals = ((signal.SIGTERM, 15.0),)

_MAX_LOG_BYTES = 4_000_000
_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and how to run and stop it.

    Attributes:
        name: The name in messages.
        arguments: The path of the program and its arguments.
        environment: The complete environment.
        directory: The working directory; None for that of this process.
        log: The file that the output is appended to; None for the output of this process.
        account: The account that runs it.
        stop_signals: The signals that stop it. If it still runs after them, SIGKILL is sent to its process group.
        death_signal: The signal that the kernel sends to the child when this process dies.

    """

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path | None = None
    log: Path | None = None
    account: Account = field(default_factory=own_account)
    stop_signals: StopSignals = STOP_SIGNALS
    death_signal: signal.Signals = signal.SIGKILL

    def last_words(self) -> str:
        """Return a colon and the last line of the log, to end a message with; an empty string if there is none."""
        if self.log is None or not self.log.exists():
            return ""
        lines = self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


async def spawn(command: Command) -> asyncio.subprocess.Process:
    """Start a child in its own session, so that the terminal's Ctrl-C does not reach it.

    Call this on the main thread: the death signal is sent when the *thread* that started the child ends.
    """
    with _output(command.log) as output:
        return await _start(command, asyncio.subprocess.DEVNULL, output, output)


async def run_to_end(command: Command) -> int:
    """Run a child to its end and return its exit code (−n: killed by signal n). Kills it if this task is cancelled."""
    process = await spawn(command)
    try:
        return await process.wait()
    finally:
        await _end(process)


async def run_pipe(source: Command, sink: Command) -> tuple[int, int]:
    """Run `source` with its output as the input of `sink`, and return both exit codes.

    What they write to stderr is dropped. Kills both if this task is cancelled.
    """
    nothing = asyncio.subprocess.DEVNULL
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb") as writer:
        sent = await _start(source, nothing, writer, nothing)
        try:
            received = await _start(sink, reader, nothing, nothing)
        except BaseException:
            await _end(sent)
            raise
    # This process has closed its ends of the pipe, so each child notices when the other one ends.
    try:
        return await sent.wait(), await received.wait()
    finally:
        await _end(sent)
        await _end(received)


async def _start(
    command: Command, stdin: IO[bytes] | int, stdout: IO[bytes] | int | None, stderr: IO[bytes] | int | None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *launcher(command.account, command.death_signal),
        *command.arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(command.environment),
        cwd=command.directory,
        start_new_session=True,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a child that still runs."""
    if process.returncode is None:
        kill_group(process.pid)
        await process.wait()


def kill_group(pid: int) -> None:
    """Kill a child that this module started, and all other processes in its process group."""
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
