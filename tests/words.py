"""Messages with a unique word each, so that the words of a text show which messages it covers."""

import re

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.talk import Json, context, said


def words(first: int, last: int) -> list[Json]:
    """The messages `first…last`."""
    return [said(n, content=f"lamp w{n}w") for n in range(first, last + 1)]


async def wait(sweep: Dispatcher, clock: SteppedClock, times: int = 4) -> None:
    """Let time pass until all is made that can be."""
    for _ in range(times):
        clock.step(40)
        await sweep.drain()


async def told(api: httpx.AsyncClient, name: str) -> list[str]:
    """The words of a segment."""
    found = [one["text"] for one in (await context(api))["segments"] if one["name"] == name]
    return re.findall(r"w\d+w", " ".join(found))
