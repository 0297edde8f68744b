"""`memobook up`: runs the stack in the foreground until it is stopped."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.local.errors import LocalError
from app.local.stack import Stack

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_up(stack: Stack, say: Callable[[str], None]) -> int:
    """Run `stack` until a signal arrives and return the exit code. Errors are written to stderr as one line."""
    try:
        with until_signal(say):
            async with stack:
                say(f"Memobook is running. The API documentation is at {stack.url}/docs")
                say(f"The data directory is {stack.directory.path}")
                say("Press Ctrl-C to stop.")
                await asyncio.Event().wait()
    except LocalError as error:
        sys.stderr.write(f"memobook: {error}\n")
        return 1
    return 0


@contextmanager
def until_signal(say: Callable[[str], None]) -> Iterator[None]:
    """Run the block until it ends or is cancelled by SIGINT, SIGTERM or SIGHUP.

    Further signals have no effect, so that the block can clean up.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    came = False

    def stop() -> None:
        nonlocal came
        if not came:
            came = True
            say("Stopping …")
            task.cancel()

    # Ignored signals stay ignored: `nohup`, and shells that start background jobs, ignore them on purpose.
    signals = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield
    except asyncio.CancelledError:
        if not came or task.uncancel() > 0:
            raise
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
