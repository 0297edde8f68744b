"""Supervision of child processes.

A child that ends before it has been ready for the first time is an error, because a retry would fail again. A child
that ends later is restarted, with a delay that grows while it keeps ending.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from app.local.command import Command, kill_group, spawn
from app.local.errors import LocalError
from app.local.leftovers import PidFile

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_GOOD_RUN_S = 60.0
_POLL_S = 0.02

Probe = Callable[[], Awaitable[bool]]


def next_wait_s(last_wait_s: float, ran_s: float) -> float:
    """Return the delay before restarting a child that ran for `ran_s`. `last_wait_s` is 0 for the first restart."""
    if ran_s >= _GOOD_RUN_S:
        return _FIRST_WAIT_S
    return min(max(2 * last_wait_s, _FIRST_WAIT_S), _LONGEST_WAIT_S)


def how_it_ended(code: int) -> str:
    """Return a description of a child's exit code; −n is signal n."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class Child:
    """A supervised child process.

    Args:
        command: The command to run.
        pid_file: The file that records the process while it runs.
        say: Called with a line of text when the process has ended by itself.
        before_start: Called before each start.

    """

    def __init__(
        self,
        command: Command,
        *,
        pid_file: PidFile,
        say: Callable[[str], None],
        before_start: Callable[[], None] = lambda: None,
    ) -> None:
        self._command = command
        self._pid_file = pid_file
        self._say = say
        self._before_start = before_start
        self._process: asyncio.subprocess.Process | None = None

    @asynccontextmanager
    async def running(self, ready: Probe | None = None, *, timeout_s: float = 60.0) -> AsyncGenerator[None]:
        """Start the child, wait until `ready` returns True, keep it running during the block, then stop it.

        Raises LocalError if the child ends or `timeout_s` passes before it is ready.
        """
        try:
            process = await self._spawn()
            if ready:
                await self._wait_until(ready, process, timeout_s)
            keeper = asyncio.create_task(self._keep())
            try:
                yield
            finally:
                keeper.cancel()
                await asyncio.wait([keeper])
        finally:
            await self._stop()

    async def _spawn(self) -> asyncio.subprocess.Process:
        self._before_start()
        process = self._process = await spawn(self._command)
        self._pid_file.write(process.pid, self._command.stop_signals[0][0])
        return process

    async def _wait_until(self, ready: Probe, process: asyncio.subprocess.Process, timeout_s: float) -> None:
        name = self._command.name
        try:
            async with asyncio.timeout(timeout_s):
                while not await ready():
                    if process.returncode is not None:
                        ended = how_it_ended(process.returncode)
                        raise LocalError(f"{name} did not start ({ended}){self._command.last_words()}")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise LocalError(f"{name} was not ready within {timeout_s:g} s{self._command.last_words()}") from None

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        wait_s, began_s = 0.0, clock()
        # `_spawn` sets `_process` before it writes the pid file, so this is the newest process even if writing failed.
        while self._process:
            code = await self._process.wait()
            wait_s = next_wait_s(wait_s, clock() - began_s)
            self._say(f"{self._command.name} ended ({how_it_ended(code)}); it starts again in {wait_s:g} s.")
            await asyncio.sleep(wait_s)
            began_s = clock()
            with suppress(OSError):  # no memory, no descriptors, a full disk: retry after a longer delay
                await self._spawn()

    async def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        for number, grace_s in self._command.stop_signals:
            if process.returncode is not None:
                break
            with suppress(ProcessLookupError):
                process.send_signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await process.wait()
        if process.returncode is None:
            kill_group(process.pid)
            await process.wait()
        self._pid_file.remove()
