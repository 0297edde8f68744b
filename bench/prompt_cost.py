"""What the contexts of a conversation cost at a provider with a prompt cache, for each preset and choice of `cache`.

    python -m bench.prompt_cost [--locomo locomo10.json]

The service's own functions play the demo's conversation and, with `--locomo`, conversations of that data set, with all
background work, by the extractive summariser. Each message of the user is a call with the context in the format
`anthropic`. `app/demo/bill.py` has the prices.

*With pauses* plays the pauses of the messages, in percent of the same contexts at the price without a cache. *Always
warm* plays a message every 20 seconds, in percent of uncached contexts with a history that slides: the last
`keep_messages` + `grow_messages` / 2 messages, behind the same prefix.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from app.bindings.rule import Target
from app.chats.chat_lock import ChatRef
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.chats.settings import effective
from app.context.schemas import ContextQuery
from app.context.service import assemble_context
from app.demo.bill import Bill, Call
from app.demo.run import CONVERSATION
from app.demo.tool_calls import ToolCall, take_calls
from app.diary.book import save_memory
from app.dispatcher import Dispatcher
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import SteppedClock, system_clock
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from app.local.stack import Stack
from app.messages.schemas import MessageIn
from app.messages.service import append_messages
from app.pipeline import open_database
from app.registry import LAYERS
from bench.locomo import Conversation, read_locomo
from bench.processes import say
from bench.stage import FILLING

PRESETS = ("memo", "diary", "scenes", "companion")
CHOICES = ("auto", "off", "5m", "1h")

_LARGER = (("memo", 24), ("diary", 16), ("scenes", 16))
"""Presets that are also measured with a larger `grow_messages`."""

_WARM_S = 20.0
_WARM_CONVERSATIONS = 3
_PERSONA_TOKENS = 3_000
"""The size of the persona in the conversations of LoCoMo, which have none: that of an elaborate character card."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: the fields of its chat, and its messages and tool calls in order."""

    name: str
    chat: Mapping[str, Any]
    moments: Sequence[dict[str, Any] | ToolCall]


@dataclass(slots=True)
class Costs:
    """What calls cost, in tokens at the normal price.

    Attributes:
        bill: What they cost.
        sliding: The cost of contexts with a history that slides, without a cache.

    """

    bill: Bill = field(default_factory=Bill)
    sliding: int = 0
    _last: Call | None = None

    def add(self, call: Call, sliding_tokens: int) -> None:
        """Add the next call of a chat; with a history that slides, it has `sliding_tokens`."""
        is_warm = self._last is not None and call.at <= self._last.expires_at
        self.bill = self.bill.add(call, self._last if is_warm else None)
        self.sliding += sliding_tokens
        self._last = call

    def end_chat(self) -> None:
        """Let the next call be the first of its chat."""
        self._last = None


class Player:
    """Plays conversations into new chats of a database and adds what their calls cost to `costs`."""

    def __init__(self, database_url: str, settings: Mapping[str, Any], costs: Costs) -> None:
        self._settings = settings
        self._costs = costs
        self._clock = SteppedClock(system_clock())
        self._database = open_database(
            database_url, LAYERS, clock=self._clock, settle_s=0, notify=lambda: None, pool_size=4
        )
        self._dispatcher = Dispatcher(JobContext(self._database, self._clock), LAYERS, slots=2, poll_s=30)

    async def close(self) -> None:
        """Close the database."""
        await self._database.close()

    async def play(self, talk: Talk, chat: str, *, every_s: float | None = None) -> None:
        """Play a conversation with the pauses of its messages, or with a message every `every_s` seconds."""
        ref = ChatRef(DEFAULT_TENANT, chat, chat_key(DEFAULT_TENANT, chat))
        async with self._database.unit_of_work() as db_session:
            body = ChatPut.model_validate({**talk.chat, "settings": self._settings})
            await put_chat(db_session, ref, body, now=self._clock())
        history = effective(self._settings).history
        window = history.keep_messages + history.grow_messages // 2
        said: list[int] = []
        last_at: datetime | None = None
        for moment in talk.moments:
            if isinstance(moment, ToolCall):
                await self._save_memory(ref, moment)
                continue
            at = datetime.fromisoformat(moment["sent_at"])
            self._clock.step(every_s or max(0.0, (at - (last_at or at)).total_seconds()))
            last_at = at
            await self._append(ref, moment)
            said.append(count_tokens(moment["content"]) + MESSAGE_OVERHEAD_TOKENS)
            if moment["role"] == "user":
                await self._call(ref, said, window)
            await self._dispatcher.drain()
        self._costs.end_chat()

    async def _append(self, ref: ChatRef, message: Mapping[str, Any]) -> None:
        async with self._database.unit_of_work() as db_session:
            await append_messages(db_session, ref, [MessageIn.model_validate(message)], now=self._clock())

    async def _save_memory(self, ref: ChatRef, call: ToolCall) -> None:
        async with self._database.unit_of_work() as db_session:
            await save_memory(
                db_session,
                ref,
                call.arguments["content"],
                tool="save_memory",
                character=call.character,
                target=Target(),
                now=self._clock(),
            )

    async def _call(self, ref: ChatRef, said: Sequence[int], window: int) -> None:
        answer = await assemble_context(
            self._database, ref, ContextQuery(format="anthropic"), LAYERS, now=self._clock()
        )
        context = orjson.loads(orjson.dumps(answer, default=str))
        sent = context["history"]["messages"]
        call = Call.of(context, self._clock())
        self._costs.add(call, call.tokens - sum(said[-sent:]) + sum(said[-window:]))


def read_demo() -> Talk:
    """Return the demo's conversation."""
    first, *rows = [orjson.loads(line) for line in CONVERSATION.read_bytes().splitlines()]
    return Talk("demo", first["chat"], take_calls(rows))


def as_talk(conversation: Conversation) -> Talk:
    """Return a conversation of LoCoMo; its second speaker is the character, with a persona of 3,000 tokens."""
    persona = " ".join(f"Note {number}: calm, attentive, dry." for number in range(_PERSONA_TOKENS))
    while (tokens := count_tokens(persona)) > _PERSONA_TOKENS:
        persona = persona[: len(persona) * _PERSONA_TOKENS // tokens]
    return Talk(
        conversation.id,
        {"characters": [{"name": conversation.speakers[1], "persona": persona}]},
        conversation.appendable(),
    )


async def measure_pauses(database_url: str, talk: Talk) -> list[str]:
    """Return the rows of a conversation with its pauses: each preset with each choice."""
    rows = []
    for preset in PRESETS:
        cells = []
        for choice in CHOICES:
            costs = Costs()
            player = Player(database_url, {"preset": preset, "cache": choice}, costs)
            await player.play(talk, f"{talk.name}-{preset}-{choice}")
            await player.close()
            cells.append(f"{100 * costs.bill.cost / costs.bill.tokens:.1f}")
        say(f"{talk.name} {preset}: {' '.join(cells)}")
        rows.append(f"| {talk.name} | `{preset}` | {' | '.join(cells)} |")
    return rows


async def measure_warm(database_url: str, talks: Sequence[Talk]) -> list[str]:
    """Return the rows of conversations without pauses: each preset, and two with a larger `grow_messages`."""
    rows = []
    for preset, grow in [*((preset, None) for preset in PRESETS), *_LARGER]:
        costs = Costs()
        history = {} if grow is None else {"history": {"grow_messages": grow}}
        player = Player(database_url, {"preset": preset, "cache": "5m", **history}, costs)
        for talk in talks:
            await player.play(talk, f"warm-{talk.name}-{preset}-{grow}", every_s=_WARM_S)
        await player.close()
        name = f"`{preset}`" + (f", `grow_messages: {grow}`" if grow else "")
        percents = [100 * costs.bill.cost / costs.sliding, 100 * costs.bill.cost / costs.bill.tokens]
        say(f"{name}: {percents[0]:.1f} {percents[1]:.1f}")
        rows.append(f"| {name} | {percents[0]:.1f} | {percents[1]:.1f} |")
    return rows


async def measure(data: Path, conversations: Sequence[Conversation]) -> None:
    """Measure everything on a stack below `data` and print the tables."""
    demo, talks = read_demo(), [as_talk(conversation) for conversation in conversations[:_WARM_CONVERSATIONS]]
    async with Stack(data, serve=False, postgres_settings=FILLING, say=say) as stack:
        url = stack.urls.database_url
        print(f"| conversation | preset | {' | '.join(CHOICES)} |")
        print(f"| --- | --- {'| ---: ' * len(CHOICES)}|")
        for talk in [demo, *talks[:1]]:
            print(*await measure_pauses(url, talk), sep="\n", flush=True)
        print(f"\n| always warm: {', '.join(talk.name for talk in talks or [demo])} | of sliding | of uncached |")
        print("| --- | ---: | ---: |")
        print(*await measure_warm(url, talks or [demo]), sep="\n", flush=True)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.prompt_cost", description="Measure the cost of prompts")
    parser.add_argument("--locomo", type=Path, default=os.environ.get("LOCOMO"), metavar="PATH")
    locomo = parser.parse_args().locomo
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        asyncio.run(measure(Path(path) / "data", read_locomo(Path(locomo)) if locomo else []))


if __name__ == "__main__":
    main()
