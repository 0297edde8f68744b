"""What knowing things costs a context: facts, core blocks, memories and recall, empty and full.

    python -m bench.knowledge                    chats of a user with 200 facts and 1,000 memories, and of one without
    python -m bench.knowledge --against DIR      chats without any, in this checkout and in another one

Contexts are read over HTTP on one connection, one second each, in turn in alternating order, so that the load of the
machine affects both sides alike. The time of a context, as a multiple of that of the other side, is computed within
each pair; the table has the median. Above 1, the chat of a user with facts, or this checkout, is slower.

The chats of the first command have all their memories, which are made without a model before the measurement begins.
Those of the second one have none.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import httpx
import psutil

from bench.load import Plan
from bench.paired import HERE, start_checkout
from bench.processes import Load, running_load, say
from bench.requests import http

SIZES = (200, 10_000)
PRESETS = ("memo", "scenes", "companion", "agent")
MODES = ("off", "auto")
USERS = ("without", "with")
FACTS, MEMORIES = 200, 1_000
MEASURE_S = 1.0
_BATCH = 500
_NEVER_S = 86_400.0
"""A settle time with which the worker processes nothing during the measurement."""
_WORK_S = 3_600.0
"""Seconds after which the work of a chat must have ended."""

# Each checkout's own interpreter runs this in its own folder, so it imports the modules of that checkout.
_SERVE = """
import asyncio, os, sys
from pathlib import Path
from bench.stage import make_key, serving

async def main():
    async with serving(Path(sys.argv[1]), {"MEMOBOOK_SETTLE_S": sys.argv[2]}) as stack:
        print(stack.url, await make_key(stack), os.getpid(), flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""

_THINGS = ("lamp", "harbour", "violin", "kettle", "orchard", "ledger", "compass", "ferry", "quarry", "bridge")
_DEEDS = ("burns", "waits", "was sold", "is broken", "belongs to Mara", "stays locked", "came from Lisbon")


class Server(NamedTuple):
    """A checkout that is being served: its URL, a key, and the process of which all of its processes are children."""

    url: str
    key: str
    pid: int

    def cpu_s(self) -> float:
        """Return the processor time that the API, the worker, PostgreSQL and Valkey have used."""
        times = [one.cpu_times() for one in psutil.Process(self.pid).children(recursive=True)]
        return sum(one.user + one.system for one in times)


class Cost(NamedTuple):
    """What a context took, in milliseconds: by the clock, and of the processors."""

    ms: float
    cpu_ms: float


class Row(NamedTuple):
    """A measurement: what is compared, and the costs of both sides in each round."""

    name: Sequence[str]
    pairs: Sequence[tuple[Cost, Cost]]


def write_sentence(n: int) -> str:
    """Return the n-th of many sentences, which share some words."""
    thing, other = _THINGS[n % len(_THINGS)], _THINGS[(n // 7) % len(_THINGS)]
    return f"The {thing} number {n} {_DEEDS[n % len(_DEEDS)]}, and near pier {n % 97} there is a {other} for Nell."


async def put_chat(client: httpx.AsyncClient, name: str, user: str, settings: Mapping[str, Any], size: int) -> None:
    """Create a chat with `size` messages."""
    given = {"user_id": user, "characters": [{"name": "Kai"}], "settings": settings}
    (await client.put(f"/v1/chats/{name}", json=given)).raise_for_status()
    for first in range(0, size, _BATCH):
        numbers = range(first, min(first + _BATCH, size))
        said = [{"role": ("assistant", "user")[n % 2], "content": f"{write_sentence(n)} " * 3} for n in numbers]
        (await client.post(f"/v1/chats/{name}/messages", json={"messages": said})).raise_for_status()


async def teach(client: httpx.AsyncClient, user: str) -> None:
    """Give a user the facts and the memories."""
    url = f"/v1/users/{user}"
    for n in range(FACTS):
        (await client.put(f"{url}/facts/lamp_{n}", json={"value": f"It hangs at pier {n}."})).raise_for_status()
    for n in range(MEMORIES):
        given = {"content": write_sentence(10_000 + n), "importance": (n % 10) / 10}
        (await client.post(f"{url}/memories", json=given)).raise_for_status()


async def measure(
    load: Load, sides: Sequence[tuple[Server, str]], rounds: int, *, query: str = ""
) -> list[tuple[Cost, Cost]]:
    """Return what contexts of two sides cost, each a server and the name of a chat, in each round."""
    pairs = []
    for number in range(rounds):
        costs = {at: await _measure(load, *sides[at], query) for at in ((0, 1) if number % 2 else (1, 0))}
        pairs.append((costs[0], costs[1]))
    return pairs


async def _measure(load: Load, server: Server, name: str, query: str) -> Cost:
    plan = Plan(
        port=int(server.url.rpartition(":")[2]),
        requests=[http("GET", f"{name}/context?format=openai{query}", server.key)],
        measure_s=MEASURE_S,
    )
    before = server.cpu_s()
    outcome = await load.run(plan)
    return Cost(1000 / outcome.per_second, 1000 * (server.cpu_s() - before) / outcome.sent)


def write_table(head: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the rows as Markdown. The ratios are those of the second side over the first."""
    lines = [
        f"| {' | '.join(head)} | time | quartiles | CPU of {' | of '.join(head[-2:])} | CPU | quartiles |",
        f"|{'---|' * len(head)}--:|---|--:|--:|--:|---|",
    ]
    for name, pairs in rows:
        cells = [*name]
        for at in (0, 1):
            values = [(first[at], second[at]) for first, second in pairs]
            ratios = [second / first for first, second in values]
            low, _, high = quantiles(ratios, n=4)
            cells += [f"{median(column):.2f} ms" for column in zip(*values, strict=True)]
            cells += [f"**{median(ratios):.2f}**", f"{low:.2f}–{high:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


async def wait_for_work(client: httpx.AsyncClient, name: str) -> None:
    """Wait until a chat has no background work left. Raises TimeoutError, and ValueError if some of it has failed."""
    async with asyncio.timeout(_WORK_S):
        while True:
            work = (await client.get(f"/v1/chats/{name}")).raise_for_status().json()["work"]
            if work["failed"]:
                raise ValueError(f"{work['failed']} work items of {name} have failed")
            if not work["due"]:
                return
            await asyncio.sleep(1)


async def _serve(
    stack: AsyncExitStack, checkout: Path, data: Path, *, settle_s: float
) -> tuple[Server, httpx.AsyncClient]:
    line = await stack.enter_async_context(start_checkout(checkout, _SERVE, data, settle_s))
    url, key, pid = line.split()
    server = Server(url, key, int(pid))
    client = httpx.AsyncClient(
        base_url=server.url, headers={"authorization": f"Bearer {server.key}"}, timeout=120, trust_env=False
    )
    return server, await stack.enter_async_context(client)


async def measure_full(data: Path, rounds: int, presets: Sequence[str]) -> str:
    """Return the table of chats of a user with facts and memories beside those of one without."""
    rows = []
    async with AsyncExitStack() as stack:
        load = await stack.enter_async_context(running_load())
        server, client = await _serve(stack, HERE, data, settle_s=0)
        await teach(client, USERS[1])
        for preset in presets:
            for size in SIZES:
                for user in USERS:
                    await put_chat(client, f"{user}-{preset}-{size}", user, {"preset": preset}, size)
                    say(f"{preset}, {size:,} messages, {user} …")
                    await wait_for_work(client, f"{user}-{preset}-{size}")
        for preset in presets:
            for size in SIZES:
                for mode in MODES:
                    say(f"{preset}, {size:,} messages, recall {mode} …")
                    sides = [(server, f"{user}-{preset}-{size}") for user in USERS]
                    pairs = await measure(load, sides, rounds, query=f"&recall={mode}")
                    rows.append(Row((f"`{preset}`", f"{size:,}", f"`{mode}`"), pairs))
    return write_table(("preset", "messages", "recall", "without", "with"), rows)


async def measure_empty(data: Path, rounds: int, presets: Sequence[str], against: Path) -> str:
    """Return the table of chats in another checkout beside the same chats in this one."""
    rows = []
    async with AsyncExitStack() as stack:
        load = await stack.enter_async_context(running_load())
        before, its_client = await _serve(stack, against, data / "there", settle_s=_NEVER_S)
        now, client = await _serve(stack, HERE, data / "here", settle_s=_NEVER_S)
        for preset in presets:
            for one in (its_client, client):
                await put_chat(one, preset, "nobody", {"preset": preset, "recall": {"mode": "off"}}, SIZES[0])
        for preset in presets:
            say(f"{preset} …")
            pairs = await measure(load, [(before, preset), (now, preset)], rounds)
            rows.append(Row((f"`{preset}`",), pairs))
    return write_table(("preset", "before", "now"), rows)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout, with its own .venv")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="how often each pair is measured")
    parser.add_argument("--presets", nargs="+", default=PRESETS, metavar="NAME", help="only these presets")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        if options.against is None:
            table = asyncio.run(measure_full(Path(path), options.rounds, options.presets))
        else:
            table = asyncio.run(measure_empty(Path(path), options.rounds, options.presets, options.against.resolve()))
    print(table)


if __name__ == "__main__":
    main()
