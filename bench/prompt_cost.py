"""What the contexts of a conversation cost at a provider with a prompt cache, for each preset and choice of `cache`.

    python -m bench.prompt_cost [--locomo locomo10.json] [--conversations 10] [--presets agent decay]

The service's own functions play the demo's conversation and, with `--locomo`, conversations of that data set, with all
background work, by the extractive summariser. Each message of the user is a call with the context in the format
`anthropic`. `app/demo/bill.py` has the prices.

*With pauses* plays the pauses of the messages, in percent of the same contexts at the price without a cache, so `off`
is always 100. The conversations of LoCoMo, in the order of the file, are summed up: in the table, `highest` is the
largest figure of `auto` in any of them, and `gap` is by how many points `auto` is at most above the best other choice
(`off`, `5m` or `1h`) in any of them. If no pause is between five minutes and an hour, as in LoCoMo, a cut is cold with
each choice or with none, so all choices have the same contexts; they are made once.
*Always warm* plays a message every 20 seconds, in percent of uncached contexts with a history that slides: the last
`keep_messages` + `grow_messages` / 2 messages, behind the same prefix.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from app.bindings.rule import Target
from app.chats.chat_lock import ChatRef
from app.chats.prompt_cache import LONGEST_S, MOST_PAUSES, TTL_S, CacheChoice, choose, find_new_share
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.chats.settings import effective
from app.context.schemas import ContextQuery
from app.context.service import assemble_context
from app.demo.bill import Bill, Call
from app.demo.run import CONVERSATION
from app.demo.tool_calls import DIARY_TOOL, ToolCall, take_calls
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

PRESETS = ("memo", "diary", "scenes", "agent", "decay", "companion")
CHOICES = ("auto", "5m", "1h")

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
        calls: The calls.

    """

    bill: Bill = field(default_factory=Bill)
    sliding: int = 0
    calls: list[Call] = field(default_factory=list)
    _last: Call | None = None

    def add(self, call: Call, sliding_tokens: int) -> None:
        """Add the next call of a chat; with a history that slides, it has `sliding_tokens`."""
        is_warm = self._last is not None and call.at <= self._last.expires_at
        self.bill = self.bill.add(call, self._last if is_warm else None)
        self.sliding += sliding_tokens
        self.calls.append(call)
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
    """Return the demo's conversation, with the calls of the diary's tool, but not of those of facts and blocks."""
    first, *rows = [orjson.loads(line) for line in CONVERSATION.read_bytes().splitlines()]
    moments = [one for one in take_calls(rows) if not isinstance(one, ToolCall) or one.tool == DIARY_TOOL]
    return Talk("demo", first["chat"], moments)


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


async def measure_pauses(database_url: str, talk: Talk, preset: str) -> list[Bill]:
    """Return the bills of a conversation with its pauses, one for each of CHOICES."""
    if _are_contexts_same(talk):
        calls = (await _play(database_url, talk, preset, "1h")).calls
        bills = [price(calls, choices) for choices in list_choices(calls, preset)]
    else:
        bills = [(await _play(database_url, talk, preset, choice)).bill for choice in CHOICES]
    say(f"{talk.name} {preset}: {' '.join(f'{percent:.1f}' for percent in list_percents(bills))}")
    return bills


async def _play(database_url: str, talk: Talk, preset: str, choice: str) -> Costs:
    costs = Costs()
    player = Player(database_url, {"preset": preset, "cache": choice}, costs)
    await player.play(talk, f"{talk.name}-{preset}-{choice}")
    await player.close()
    return costs


def _are_contexts_same(talk: Talk) -> bool:
    """Return whether the contexts of a conversation do not depend on the choice: no pause is cold with only one."""
    times = [datetime.fromisoformat(one["sent_at"]) for one in talk.moments if not isinstance(one, ToolCall)]
    return not any(TTL_S["5m"] < (after - before).total_seconds() <= TTL_S["1h"] for before, after in pairwise(times))


def list_choices(calls: Sequence[Call], preset: str) -> list[list[CacheChoice]]:
    """Return the choice of each call, in a chat with each of CHOICES; `auto` chooses by the pauses before a call."""
    new_share = find_new_share(effective({"preset": preset}).history)
    pauses_s = [min(round((one.at - former.at).total_seconds()), LONGEST_S) for former, one in pairwise(calls)]
    auto = [choose(pauses_s[max(0, at - MOST_PAUSES) : at], new_share) for at in range(len(calls))]
    return [auto, ["5m"] * len(calls), ["1h"] * len(calls)]


def price(calls: Sequence[Call], choices: Sequence[CacheChoice]) -> Bill:
    """Return the bill of the calls of a chat, with marks, if each is sent with another choice."""
    costs = Costs()
    for call, choice in zip(calls, choices, strict=True):
        costs.add(replace(call, cache=choice, marks=() if choice == "off" else call.marks), 0)
    return costs.bill


def list_percents(bills: Sequence[Bill]) -> list[float]:
    """Return the cost of each bill in percent of the same prompts without a cache."""
    return [100 * bill.cost / bill.tokens for bill in bills]


def word_pauses(name: str, preset: str, conversations: Sequence[Sequence[Bill]]) -> str:
    """Return the row of a preset for the sum of some conversations, given as the bills of the choices of each."""
    totals = [reduce(Bill.plus, bills) for bills in zip(*conversations, strict=True)]
    each = [list_percents(bills) for bills in conversations]
    highest = max(percents[0] for percents in each)
    gap = max(percents[0] - min(100, *percents[1:]) for percents in each)
    cells = [f"{percent:.1f}" for percent in [*list_percents(totals), highest, gap]]
    return f"| {name} | `{preset}` | {' | '.join(cells)} |"


async def measure_warm(database_url: str, talks: Sequence[Talk], presets: Sequence[str]) -> list[str]:
    """Return the rows of conversations without pauses: each preset, and some with a larger `grow_messages`."""
    rows = []
    larger = [(preset, grow) for preset, grow in _LARGER if preset in presets]
    for preset, grow in [*((preset, None) for preset in presets), *larger]:
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


async def measure(data: Path, conversations: Sequence[Conversation], presets: Sequence[str]) -> None:
    """Measure everything on a stack below `data` and print the tables."""
    demo, talks = read_demo(), [as_talk(conversation) for conversation in conversations]
    warm = talks[:_WARM_CONVERSATIONS] or [demo]
    async with Stack(data, serve=False, postgres_settings=FILLING, say=say) as stack:
        url = stack.urls.database_url
        print(f"| conversation | preset | {' | '.join(CHOICES)} | highest | gap |")
        print(f"| --- | --- {'| ---: ' * (len(CHOICES) + 2)}|")
        for name, played in (("demo", [demo]), (f"LoCoMo, {len(talks)}", talks)):
            for preset in presets if played else ():
                bills = [await measure_pauses(url, talk, preset) for talk in played]
                print(word_pauses(name, preset, bills), flush=True)
        print(f"\n| always warm: {', '.join(talk.name for talk in warm)} | of sliding | of uncached |")
        print("| --- | ---: | ---: |")
        print(*await measure_warm(url, warm, presets), sep="\n", flush=True)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.prompt_cost", description="Measure the cost of prompts")
    parser.add_argument("--locomo", type=Path, default=os.environ.get("LOCOMO"), metavar="PATH")
    parser.add_argument("--conversations", type=int, metavar="N", help="play only the first N conversations")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=PRESETS, metavar="PRESET")
    arguments = parser.parse_args()
    conversations = read_locomo(Path(arguments.locomo))[: arguments.conversations] if arguments.locomo else []
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        asyncio.run(measure(Path(path) / "data", conversations, arguments.presets))


if __name__ == "__main__":
    main()
