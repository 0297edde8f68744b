"""`memobook up`: the stack in the foreground, until somebody stops it."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.local.errors import LocalError
from app.local.stack import Stack

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_up(stack: Stack, say: Callable[[str], None]) -> int:
    """Run `stack` until a signal comes. Returns the exit code; what is wrong goes to stderr in one line."""
    try:
        with until_signal(say):
            async with stack:
                say(f"Memobook is up. Its API explains itself at {stack.url}/docs")
                say(f"What it remembers is in {stack.directory.path}")
                say("Ctrl-C stops it.")
                await asyncio.Event().wait()
    except LocalError as error:
        sys.stderr.write(f"memobook: {error}\n")
        return 1
    return 0


@contextmanager
def until_signal(say: Callable[[str], None]) -> Iterator[None]:
    """Run the block of this task until it ends or SIGINT, SIGTERM or SIGHUP comes, which cancels it.

    Further signals change nothing, so that the block can end what it began.
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

    # What is ignored stays so: `nohup` and shells that start a job in the background mean it.
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
