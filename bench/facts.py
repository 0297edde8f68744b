"""What facts cost a context: the same chat without facts, and with 200 facts of its user.

    python -m bench.facts [--rounds 20]

Both chats of a size have the same messages. Contexts of the two are read over HTTP on one connection, half a second
each, in turn, so that the load of the machine affects both alike. The time of a context with facts, as a multiple of
that of one without, is computed within each pair; the table has the median.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from app.chats.chat_lock import ChatRef
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.facts.book import set_in_scope
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.knowledge.scopes import ScopeKey
from app.local.stack import Stack
from app.messages.schemas import MessageIn
from app.messages.service import append_messages
from app.pipeline import open_database
from app.registry import LAYERS
from bench.lines import IDLE
from bench.load import Plan
from bench.processes import running_load, say
from bench.requests import http
from bench.stage import make_key, serving

TENANT = "default"
SIZES = (200, 10_000)
PRESETS = ("memo", "agent")
FACTS = 200
_BATCH = 500
_RUN: dict[str, Any] = {"warm_s": 0.1, "measure_s": 0.5}


def _chat(user: str, preset: str, size: int) -> ChatRef:
    chat_id = f"{user}-{preset}-{size}"
    return ChatRef(TENANT, chat_id, chat_key(TENANT, chat_id))


async def _fill(database: Database) -> None:
    for preset in PRESETS:
        for size in SIZES:
            for user in ("without", "with"):
                ref = _chat(user, preset, size)
                async with database.unit_of_work() as db_session:
                    given = ChatPut.model_validate(
                        {"user_id": user, "characters": [{"name": "Kai"}], "settings": {"preset": preset}}
                    )
                    await put_chat(db_session, ref, given, now=system_clock())
                for first in range(0, size, _BATCH):
                    said = [
                        MessageIn(
                            role=("user", "assistant")[n % 2], content=f"Lamp number {n} burns in the tower. " * 4
                        )
                        for n in range(first, min(first + _BATCH, size))
                    ]
                    async with database.unit_of_work() as db_session:
                        await append_messages(db_session, ref, said, now=system_clock())
    async with database.unit_of_work() as db_session:
        scope = ScopeKey.of_user(TENANT, "with")
        for n in range(FACTS):
            await set_in_scope(db_session, scope, f"lamp_{n}", f"It hangs at pier {n}.", now=system_clock())


async def measure(rounds: int) -> str:
    """Return the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        async with running_load() as load, serving(Path(path), IDLE) as stack:
            database = _open(stack)
            await _fill(database)
            await database.close()
            key = await make_key(stack)
            port = int(stack.url.rpartition(":")[2])
            for preset in PRESETS:
                for size in SIZES:
                    say(f"{preset}, {size:,} messages …")
                    names = [_chat(user, preset, size).chat_id for user in ("without", "with")]
                    plans = [Plan(port=port, requests=[http("GET", f"{name}/context", key)], **_RUN) for name in names]
                    pairs = [[(await load.run(plan)).per_second for plan in plans] for _ in range(rounds)]
                    ratios = [without / with_facts for without, with_facts in pairs]
                    low, _, high = quantiles(ratios, n=4)
                    speeds = [f"{median(column):.0f}" for column in zip(*pairs, strict=True)]
                    columns = [
                        f"`{preset}`",
                        f"{size:,}",
                        *speeds,
                        f"**{median(ratios):.2f}**",
                        f"{low:.2f}–{high:.2f}",
                    ]
                    rows.append(f"| {' | '.join(columns)} |")
    head = f"| preset | messages | per s | per s with {FACTS} facts | time | quartiles |\n|---|--:|--:|--:|--:|---|"
    return "\n".join([head, *rows])


def _open(stack: Stack) -> Database:
    url = "postgresql+asyncpg://" + stack.urls.database_url.split("://", 1)[1]
    return open_database(url, LAYERS, clock=system_clock, settle_s=3_600, notify=lambda: None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    print(asyncio.run(measure(parser.parse_args().rounds)))
