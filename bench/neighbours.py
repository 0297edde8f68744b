"""How much one tenant slows the contexts of another one down, in this checkout and in another.

    python -m bench.neighbours --against DIR [--rounds 3]

Contexts of one tenant are requested at a steady pace: alone, beside 80 appends of another tenant to a chat whose row is
locked, and beside an importer that appends 1,000 messages per request to another chat. Then 32 connections request
contexts as fast as they can, which shows whether requests overtake each other at the pool. Both checkouts run at once
and are measured in turn, with pools of 20 and of 4 connections.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import asyncpg
import httpx

from app.kit.ids import chat_key
from bench.load import Outcome, Plan
from bench.paired import HERE, start_checkout
from bench.processes import Load, Refused, running_load, say
from bench.requests import http

POOLS = (20, 4)
CHATS, MESSAGES = 32, 60
PER_SECOND, CONNECTIONS = 40.0, 8
WARM_S, MEASURE_S = 0.5, 4.0
APPENDS, BATCH, IMPORTS = 80, 1_000, 4
PAUSE_S = 1.0
_TIMEOUT_S = 60.0
_TEXT = "The keeper climbs the stairs and trims the wick of the lamp before the ships come in. " * 3
_LOCK = "SELECT 1 FROM chats WHERE chat_key = $1 FOR UPDATE"

_SERVE = """
import asyncio, json, sys
from pathlib import Path
from app.keys.service import create_key
from app.kit.clock import system_clock
from app.kit.db import Database
from bench.lines import IDLE
from bench.stage import serving

async def main():
    async with serving(Path(sys.argv[1]), IDLE | {"MEMOBOOK_DATABASE_POOL": sys.argv[2]}) as stack:
        database = Database(stack.urls.database_url, pool_size=2)
        keys = []
        for tenant in ("kept", "other"):
            async with database.unit_of_work() as db_session:
                keys.append((await create_key(db_session, tenant, ("read", "write"), system_clock())).text)
        await database.close()
        print(json.dumps([stack.url, stack.urls.database_url, *keys]), flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Side:
    """A checkout that is being served.

    Attributes:
        url: The URL of the service.
        database_url: The URL of its database.
        key: The key of the tenant whose contexts are measured.
        other_key: The key of the tenant that disturbs.

    """

    url: str
    database_url: str
    key: str
    other_key: str

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Do nothing else."""
        yield

    @asynccontextmanager
    async def locked(self) -> AsyncGenerator[None]:
        """Append to a chat whose row is locked, 80 times at once, again and again."""
        body = _messages(1)
        async with self._client(self.other_key, 1) as client:
            (await client.post("/v1/chats/locked/messages", json=body)).raise_for_status()
        connection = await asyncpg.connect(self.database_url.replace("+asyncpg", ""))
        try:
            async with connection.transaction():
                await connection.execute(_LOCK, chat_key("other", "locked"))
                async with self._sending("locked", body, APPENDS):
                    yield
        finally:
            await connection.close()

    @asynccontextmanager
    async def importing(self) -> AsyncGenerator[None]:
        """Append 1,000 messages per request to a chat, four requests at once."""
        async with self._sending("imported", _messages(BATCH), IMPORTS):
            yield

    async def fill(self) -> None:
        """Create the chats whose contexts are measured."""
        async with self._client(self.key, 4) as client:
            for number in range(CHATS):
                answer = await client.post(f"/v1/chats/{number}/messages", json=_messages(MESSAGES))
                answer.raise_for_status()

    @asynccontextmanager
    async def _sending(self, chat: str, body: object, count: int) -> AsyncGenerator[None]:
        content = json.dumps(body).encode()

        async def send(client: httpx.AsyncClient) -> None:
            while True:
                answer = await client.post(f"/v1/chats/{chat}/messages", content=content)
                if answer.status_code >= httpx.codes.BAD_REQUEST:
                    await asyncio.sleep(PAUSE_S)

        async with self._client(self.other_key, count) as client:
            sending = [asyncio.create_task(send(client)) for _ in range(count)]
            try:
                yield
            finally:
                for task in sending:
                    task.cancel()
                await asyncio.gather(*sending, return_exceptions=True)

    def _client(self, key: str, connections: int) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        return httpx.AsyncClient(base_url=self.url, headers=headers, limits=limits, timeout=_TIMEOUT_S, trust_env=False)


def _messages(count: int) -> dict[str, object]:
    return {"messages": [{"role": ("user", "assistant")[n % 2], "content": f"{n} {_TEXT}"} for n in range(count)]}


SCENES: dict[str, Callable[[Side], AbstractAsyncContextManager[None]]] = {
    "alone": Side.alone,
    "beside 80 appends to a locked chat": Side.locked,
    "beside an importer": Side.importing,
}
FLOOD = "32 connections"
Found = dict[tuple[int, str], list[list[Outcome | None]]]


@asynccontextmanager
async def served(checkout: Path, data: Path, pool: int) -> AsyncGenerator[Side]:
    """Run the service of a checkout with a pool of connections. Raises EOFError if it does not start."""
    async with start_checkout(checkout, _SERVE, data, pool) as line:
        side = Side(*json.loads(line))
        await side.fill()
        yield side


async def measure(sides: Sequence[Side], load: Load, pool: int, rounds: int, found: Found) -> None:
    """Add the outcomes of every round to `found`, in the order of `sides`; None where contexts were refused."""
    for number in range(rounds):
        for name in (*SCENES, FLOOD):
            order = list(enumerate(sides))
            outcomes = {at: await _run(load, side, name) for at, side in (order[::-1] if number % 2 else order)}
            found.setdefault((pool, name), []).append([outcomes[at] for at in range(len(sides))])
            say(f"pool {pool}, {name}: " + " / ".join(_p95(outcome) for outcome in found[pool, name][-1]))


async def _run(load: Load, side: Side, name: str) -> Outcome | None:
    plan = Plan(
        port=int(side.url.rpartition(":")[2]),
        requests=[http("GET", f"{number}/context?format=openai", side.key) for number in range(CHATS)],
        connections=32 if name == FLOOD else CONNECTIONS,
        warm_s=WARM_S,
        measure_s=MEASURE_S,
        per_second=0.0 if name == FLOOD else PER_SECOND,
    )
    async with SCENES[name](side) if name in SCENES else nullcontext():
        try:
            return await load.run(plan)
        except Refused:
            return None


def _p95(outcome: Outcome | None) -> str:
    return f"{outcome.p95_ms:.1f} ms" if outcome else "refused"


def write_table(found: Found) -> str:
    """Return the latencies as Markdown, with p95 as a multiple of p95 alone in the same round."""
    lines = [
        "| pool | contexts | before/s | p95 | p99 | × alone | now/s | p95 | p99 | × alone |",
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (pool, name), rounds in found.items():
        cells = []
        for at in (1, 0):
            outcomes = [outcomes[at] for outcomes in rounds]
            pairs = list(zip(outcomes, (alone[at] for alone in found[pool, "alone"]), strict=True))
            kept = [outcome for outcome in outcomes if outcome]
            ratios = [one.p95_ms / alone.p95_ms for one, alone in pairs if one and alone]
            if len(kept) < len(outcomes):
                cells.append(f"{len(outcomes) - len(kept)} of {len(outcomes)} refused | | |")
            else:
                p95, p99 = median(one.p95_ms for one in kept), median(one.p99_ms for one in kept)
                ratio = "" if name == FLOOD else f"**{median(ratios):.1f}**"
                speed = median(one.per_second for one in kept)
                cells.append(f"{speed:,.0f} | {p95:.1f} ms | {p99:.1f} ms | {ratio}")
        lines.append(f"| {pool} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


async def compare(against: Path, data: Path, rounds: int) -> str:
    """Return the table of this checkout beside another one."""
    found: Found = {}
    for pool in POOLS:
        async with (
            served(HERE, data / f"here-{pool}", pool) as here,
            served(against, data / f"there-{pool}", pool) as there,
            running_load() as load,
        ):
            await measure((here, there), load, pool, rounds, found)
    return write_table(found)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours", description="One tenant beside another one")
    parser.add_argument("--against", type=Path, required=True, metavar="DIR", help="the other checkout")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often everything is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        sys.stdout.write(asyncio.run(compare(options.against.resolve(), Path(path), options.rounds)) + "\n")


if __name__ == "__main__":
    main()
