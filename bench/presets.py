"""The cost of the presets in short and long chats: contexts, appends, an early edit.

    python -m bench.presets [--quick] [--presets memo agent …] [--sizes 200 1000 …]

The service's own functions build each chat, message by message, with all background work of its preset, by the
extractive summariser. A character writes into its diary after every eighth message, and a scene ends after every 24th.
Then contexts are read and messages appended over HTTP, one after the other, and message 10 is edited, which makes
everything that was derived from it stale. The sizes of a preset are measured in turn, so that other load on the machine
affects them equally. As in `bench/lines.py`, the worker does not process the appended messages. In `agent` and `decay`,
contexts recall, which is a second statement.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median

import httpx
import orjson

from app.bindings.rule import Target
from app.chats.chat_lock import ChatRef
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.demo.run import CONVERSATION
from app.diary.book import save_memory
from app.dispatcher import Dispatcher
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import SteppedClock, system_clock
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.local.stack import Stack
from app.messages.schemas import MessageIn
from app.messages.service import append_messages
from app.pipeline import open_database
from app.registry import LAYERS
from app.scenes.book import set_break
from bench import statements
from bench.chats import LONG, MESSAGE_TOKENS, pair_of
from bench.lines import IDLE
from bench.load import Outcome, Plan
from bench.processes import Load, running_load, say
from bench.requests import http
from bench.stage import FILLING, connected, make_key, serving, superuser

PRESETS = ("memo", "diary", "scenes", "agent", "decay", "companion")
SIZES = (200, 10_000)

_STEP_S = 20.0
"""The time between two messages of the user: long enough for all work that waits for the settle time."""
_ENTRY_EVERY, _SCENE_EVERY = 8, 24
_EDITED = 10
_POSTGRES_SETTINGS = FILLING | statements.SETTINGS | {"autovacuum": "on", "autovacuum_naptime": "5"}
"""Settings of PostgreSQL while the chats are built, which leaves as many dead rows to clean up as real use."""
_COUNTED = 40
"""Requests over which statements are counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """The measurements of a chat.

    Attributes:
        preset: The preset of the chat.
        size: The number of messages before the appends.
        contexts: Runs of the load that reads.
        appends: Runs of the load that writes; each message is a separate append.
        context_statements: Statements of a context.
        append_statements: Statements of an append, on average.
        edits_ms: The times of edits of message 10, each to another text.

    """

    preset: str
    size: int
    contexts: list[Outcome] = field(default_factory=list)
    appends: list[Outcome] = field(default_factory=list)
    context_statements: list[float] = field(default_factory=list)
    append_statements: list[float] = field(default_factory=list)
    edits_ms: list[float] = field(default_factory=list)

    @property
    def context_ms(self) -> float:
        """The median time of a context."""
        return median(run.p50_ms for run in self.contexts)

    @property
    def append_ms(self) -> float:
        """The median time of an append."""
        return median(run.p50_ms for run in self.appends)

    @property
    def edit_ms(self) -> float:
        """The median time of an edit."""
        return median(self.edits_ms)


async def fill(data: Path, presets: Sequence[str], sizes: Sequence[int]) -> str:
    """Build a chat of each preset and size below `data`; return a key of the service."""
    async with Stack(data, serve=False, postgres_settings=_POSTGRES_SETTINGS, say=say) as stack:
        async with superuser(stack) as connection:
            await statements.install(connection)
        for preset in presets:
            for size in sizes:
                began_at = time.perf_counter()
                await _tell(stack.urls.database_url, preset, size)
                say(f"{preset}: {size:,} messages told in {time.perf_counter() - began_at:.0f} s")
        async with connected(stack) as connection:
            await connection.execute("VACUUM ANALYZE")
        return await make_key(stack)


async def _tell(database_url: str, preset: str, size: int) -> None:
    """Build a chat of `size` messages that ends about now."""
    clock = SteppedClock(system_clock() - timedelta(seconds=_STEP_S * size / 2))
    database = open_database(database_url, LAYERS, clock=clock, settle_s=0, notify=lambda: None, pool_size=4)
    dispatcher = Dispatcher(JobContext(database, clock), LAYERS, slots=2, poll_s=30)
    ref = ChatRef(DEFAULT_TENANT, _name(preset, size), chat_key(DEFAULT_TENANT, _name(preset, size)))
    rng = random.Random(size)
    given = orjson.loads(CONVERSATION.read_bytes().splitlines()[0])["chat"] | {"settings": {"preset": preset}}
    try:
        async with database.unit_of_work() as db_session:
            await put_chat(db_session, ref, ChatPut.model_validate(given), now=clock())
        for seq in range(2, size + 1, 2):
            pair = pair_of(rng, MESSAGE_TOKENS[LONG], mark=f"({seq})")
            async with database.unit_of_work() as db_session:
                messages = [MessageIn.model_validate(message) for message in pair]
                await append_messages(db_session, ref, messages, now=clock())
            await _write(database, ref, preset, seq, clock)
            clock.step(_STEP_S)
            await dispatcher.drain()
    finally:
        await database.close()


async def _write(database: Database, ref: ChatRef, preset: str, seq: int, clock: SteppedClock) -> None:
    """Do what the character and the person do after message `seq`: write into the diary, end a scene."""
    async with database.unit_of_work() as db_session:
        if preset in ("diary", "companion") and seq % _ENTRY_EVERY == 0:
            entry = f"At {seq} they spoke of the sea again."
            await save_memory(db_session, ref, entry, tool="save_memory", character=None, target=Target(), now=clock())
        if preset == "scenes" and seq % _SCENE_EVERY == 0:
            await set_break(db_session, ref, seq, now=clock())


async def measure(
    data: Path, *, presets: Sequence[str], sizes: Sequence[int], runs: int, measure_s: float
) -> list[Row]:
    """Measure on a separate stack below `data`; return the rows of the table."""
    key = await fill(data, presets, sizes)
    rows = [Row(preset, size) for preset in presets for size in sizes]
    async with running_load() as load, serving(data, IDLE) as stack, connected(stack) as connection:
        for preset in presets:
            of_preset = [row for row in rows if row.preset == preset]
            for _ in range(runs):
                for row in of_preset:
                    await _measure_row(row, stack, load, connection, key, measure_s)
            for row in of_preset:
                say(f"{preset}, {row.size:,} messages: context {row.context_ms:.1f} ms, append {row.append_ms:.1f} ms")
    return rows


async def _measure_row(row: Row, stack: Stack, load: Load, connection: Connection, key: str, measure_s: float) -> None:
    port, name = int(stack.url.rpartition(":")[2]), _name(row.preset, row.size)
    message = orjson.dumps({"messages": pair_of(random.Random(row.size), MESSAGE_TOKENS[LONG])[:1]}).decode()
    read = http("GET", f"{name}/context?format=openai", key)
    write = http("POST", f"{name}/messages", key, message)
    for request, outcomes, sent in (
        (read, row.contexts, row.context_statements),
        (write, row.appends, row.append_statements),
    ):
        plan = Plan(port=port, requests=[request], limit=_COUNTED)
        await load.run(plan)  # statements that a connection runs only once must not count
        before = await statements.read_calls(connection)
        await load.run(plan)
        sent.append(statements.sent_between(before, await statements.read_calls(connection)).per(_COUNTED).own)
        outcomes.append(await load.run(Plan(port=port, requests=[request], warm_s=0.3, measure_s=measure_s)))
    url = f"{stack.url}/v1/chats/{name}/messages"
    async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:
        items = (
            (await client.get(url, params={"after_seq": _EDITED - 1, "limit": 1})).raise_for_status().json()["items"]
        )
        for nth in range(3):
            content = f"Another text, the {len(row.edits_ms)}th, number {nth}."
            began_at = time.perf_counter()
            (await client.patch(f"{url}/{items[0]['id']}", json={"content": content})).raise_for_status()
            row.edits_ms.append(1000 * (time.perf_counter() - began_at))


def _name(preset: str, size: int) -> str:
    return f"{preset}-{size}"


def write_table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| preset | messages | context p50 | p95 | statements | append p50 | p95 | statements | edit of message 10 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        context_p95, append_p95 = (median(run.p95_ms for run in runs) for runs in (row.contexts, row.appends))
        lines.append(
            f"| `{row.preset}` | {row.size:,} | {row.context_ms:.2f} ms | {context_p95:.2f} ms "
            f"| {median(row.context_statements):.2f} | {row.append_ms:.2f} ms | {append_p95:.2f} ms "
            f"| {median(row.append_statements):.2f} | {row.edit_ms:.0f} ms |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.presets", description="Measure the cost of the presets")
    parser.add_argument("--quick", action="store_true", help="one short run, of shorter chats")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=PRESETS, help="the presets; by default all")
    parser.add_argument("--sizes", nargs="+", type=int, help="the lengths of the chats, in messages")
    given = parser.parse_args()
    if any(size < _EDITED or size % 2 for size in given.sizes or ()):
        parser.error(f"--sizes: even numbers, at least {_EDITED}")
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        rows = asyncio.run(
            measure(
                Path(path) / "data",
                presets=given.presets,
                sizes=given.sizes or ((200, 1_000) if given.quick else SIZES),
                runs=1 if given.quick else 5,
                measure_s=0.7 if given.quick else 2.0,
            )
        )
    print(write_table(rows))


if __name__ == "__main__":
    main()
