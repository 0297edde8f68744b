"""What facts cost a context: the same chat without facts, and with 200 facts of its user.

    python -m bench.facts [--rounds 200]

Both chats of a size have the same messages. Contexts of the two are assembled in this process in turn, each after the
other, so that the load of the machine affects both alike. Ratios are computed within a pair; the table has their
median. `statements` is the number of SQL statements of one context.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from app.chats.chat_lock import ChatRef
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.context.schemas import ContextQuery
from app.context.service import assemble_context
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
from bench.processes import say
from bench.stage import serving

TENANT = "default"
SIZES = (200, 10_000)
PRESETS = ("memo", "agent")
FACTS = 200
_BATCH = 500


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


async def _time(database: Database, ref: ChatRef) -> float:
    begin = time.perf_counter()
    await assemble_context(database, ref, ContextQuery(), LAYERS, now=system_clock())
    return time.perf_counter() - begin


async def measure(rounds: int) -> str:
    """Return the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        async with serving(Path(path), IDLE) as stack:
            database = _open(stack)
            await _fill(database)
            for preset in PRESETS:
                for size in SIZES:
                    say(f"{preset}, {size:,} messages …")
                    refs = [_chat(user, preset, size) for user in ("without", "with")]
                    pairs = [[await _time(database, ref) for ref in refs] for _ in range(rounds)][rounds // 10 :]
                    low, _, high = quantiles([b / a for a, b in pairs], n=4)
                    middle = median(b / a for a, b in pairs)
                    times = [median(column) * 1_000 for column in zip(*pairs, strict=True)]
                    ratios = f"{middle:.2f} | {low:.2f}–{high:.2f}"
                    rows.append(f"| `{preset}` | {size:,} | {times[0]:.2f} | {times[1]:.2f} | {ratios} |")
            await database.close()
    head = f"| preset | messages | ms without | ms with {FACTS} facts | ratio | quartiles |\n|---|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _open(stack: Stack) -> Database:
    url = "postgresql+asyncpg://" + stack.urls.database_url.split("://", 1)[1]
    return open_database(url, LAYERS, clock=system_clock, settle_s=3_600, notify=lambda: None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    print(asyncio.run(measure(parser.parse_args().rounds)))
