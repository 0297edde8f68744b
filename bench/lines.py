"""How long a checkpoint, a restore and a fork take, and how much they slow appends to other chats down.

    python -m bench.lines [--quick]

Each of the three is one copy of a line. They are requested over HTTP, for chats whose memos are all made, so that the
worker is idle. Then appends go to other chats at a steady pace, in turn with and without copies of the longest chat,
one after the other without a pause.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx

from app.local.stack import Stack
from bench.chats import LONG, chat_id, copy_chat
from bench.load import Outcome, Plan
from bench.processes import Load, running_load, say
from bench.requests import write_requests
from bench.stage import connected, fill, serving

VERBS = ("checkpoint", "restore", "fork")
SIZES = (10_000, 100_000)
BARS_S = {10_000: 0.5, 100_000: 5.0}
"""The longest time that each of the three may take, in seconds, by the messages of the chat."""

APPENDS_PER_SECOND = 60
_CONNECTIONS = 16
_NUMBER = 1_000
"""The numbers of the chats that are copied, far from those of the chats that are appended to."""
_TIMEOUT_S = 60.0

IDLE = {"MEMOBOOK_SETTLE_S": "86400"}
"""Keeps the worker from processing appended messages: the floor has no worker, and both share the same cores."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The measured times.

    Attributes:
        seconds: The time of each run, by operation and size.
        alone: The appends without copies.
        beside: The same load while the longest chat is copied.

    """

    seconds: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    alone: list[Outcome] = field(default_factory=list)
    beside: list[Outcome] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Return the median of p95 beside copies as a multiple of p95 without them."""
        pairs = zip(self.alone, self.beside, strict=True)
        return median(beside.p95_ms / alone.p95_ms for alone, beside in pairs)


class Copier:
    """Requests copies of one chat, and deletes those that can be deleted.

    Args:
        client: A client of the service.
        name: The chat's id.

    """

    def __init__(self, client: httpx.AsyncClient, name: str) -> None:
        self._client = client
        self._url = f"/v1/chats/{name}"
        self._fork = f"{name}-fork"

    async def copy(self) -> dict[str, float]:
        """Make a checkpoint, restore it, and fork the chat; return the seconds of each."""
        took_s = {
            "checkpoint": await self._timed("POST", f"{self._url}/checkpoints", {"name": "bench"}),
            "restore": await self._timed("POST", f"{self._url}/checkpoints/bench/restore"),
            "fork": await self._timed("POST", f"{self._url}/fork", {"chat_id": self._fork}),
        }
        await self._timed("DELETE", f"{self._url}/checkpoints/bench")
        await self._timed("DELETE", f"/v1/chats/{self._fork}")
        return took_s

    async def _timed(self, method: str, url: str, body: dict[str, str] | None = None) -> float:
        began_at = time.perf_counter()
        (await self._client.request(method, url, json=body)).raise_for_status()
        return time.perf_counter() - began_at


async def measure_copies(
    stack: Stack, load: Load, *, sizes: Sequence[int], key: str, runs: int, measure_s: float
) -> Copies:
    """Measure on a stack with chats of `LONG` messages and an idle worker."""
    async with connected(stack) as connection:
        for size in sizes:
            await copy_chat(connection, size, _NUMBER)
        await connection.execute("VACUUM ANALYZE")
    copies = Copies()
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=stack.url, headers=headers, trust_env=False, timeout=_TIMEOUT_S) as client:
        for size in sizes:
            copier = Copier(client, chat_id(size, _NUMBER))
            for _ in range(runs):
                for verb, took_s in (await copier.copy()).items():
                    copies.seconds.setdefault((verb, size), []).append(took_s)
            told = ", ".join(f"{verb} {median(copies.seconds[verb, size]):.2f} s" for verb in VERBS)
            say(f"copies of {size:,} messages: {told}")
        await _measure_beside(copies, copier, load, _plan(stack, key, measure_s), runs)
    say(f"appends beside copies: {copies.ratio:.2f} times the p95 without")
    return copies


def _plan(stack: Stack, key: str, measure_s: float) -> Plan:
    return Plan(
        port=int(stack.url.rpartition(":")[2]),
        requests=write_requests("append", LONG, key),
        connections=_CONNECTIONS,
        warm_s=1.0,
        measure_s=measure_s,
        per_second=APPENDS_PER_SECOND,
    )


async def _measure_beside(copies: Copies, copier: Copier, load: Load, plan: Plan, runs: int) -> None:
    """Append without copies and beside copies, in turn."""
    for _ in range(runs):
        copies.alone.append(await load.run(plan))
        appending = asyncio.create_task(load.run(plan))
        while not appending.done():
            await copier.copy()
        copies.beside.append(await appending)


async def measure(data: Path, *, sizes: Sequence[int], runs: int, measure_s: float) -> Copies:
    """Measure on a separate stack below `data`; return the measured times."""
    say("Making chats …")
    key = await fill(data, (LONG,))
    async with running_load() as load, serving(data, IDLE) as stack:
        return await measure_copies(stack, load, sizes=sizes, key=key, runs=runs, measure_s=measure_s)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.lines", description="How long a copy of a line takes")
    parser.add_argument("--quick", action="store_true", help="one short run, without the longest chat")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        copies = asyncio.run(
            measure(
                Path(path) / "data",
                sizes=SIZES[:1] if quick else SIZES,
                runs=1 if quick else 5,
                measure_s=3.0 if quick else 8.0,
            )
        )
    for (verb, size), seconds in copies.seconds.items():
        print(f"{verb} of {size:,}: median {median(seconds):.2f} s, most {max(seconds):.2f} s, bar {BARS_S[size]} s")
    for name, outcomes in (("alone", copies.alone), ("beside copies", copies.beside)):
        p50_ms, p95_ms = median(o.p50_ms for o in outcomes), median(o.p95_ms for o in outcomes)
        print(f"append {name}: p50 {p50_ms:.2f} ms, p95 {p95_ms:.2f} ms")
    print(f"append p95, beside copies / alone: {copies.ratio:.2f}")


if __name__ == "__main__":
    main()
