"""The goals for the cost of prompts at a provider with a prompt cache, on a scripted conversation. Pure.

`bench/prompt_cost.py` measures the same with the whole service.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, get_args

import pytest

from app.chats.head import Sent
from app.chats.prompt_cache import LONGEST_S, MOST_PAUSES, CacheChoice, choose, find_new_share, price
from app.chats.settings import PresetName, effective
from app.context.formats import render, word
from app.context.order import arrange
from app.context.segments import HistoryMessage, Segment
from app.context.tables import SegmentTables
from app.demo.bill import Bill, Call
from app.history.cut import Cut, CutRules, History, decide_full, is_full
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS
from app.registry import LAYERS
from tests.context.arrangements import SENT_AT, entry, render_options, segment

TABLES = SegmentTables.of(spec for layer in LAYERS for spec in layer.segments)
CALLS = 200
PERSONA = " ".join(f"Note {number}: calm, dry." for number in range(400))
LINE = "The lamp on the north pier burned all night, and I kept count of every ship that passed it, as you asked me."
MEMO = f"{LINE} {LINE} Mira kept the green glass that Kai had found."
DIARY_EVERY = 16

PAUSES_S = (300, 360, 600, 9_240, 240, 211_020, 420, 540, 300, 360, 296_400, 300, 420, 360, 300, 480, 165_180) * 5
"""Pauses between calls, in seconds, like those of the demo: a few minutes in a sitting, and days between two."""


def list_contexts(preset: str) -> Iterator[tuple[list[Segment], list[HistoryMessage]]]:
    """Yield the segments and the history of each call; the memories of all messages are made at once."""
    settings = effective({"preset": preset})
    keep, grow = settings.history.keep_messages, settings.history.grow_messages
    rules = CutRules(keep, settings.max_messages, layers_add_edges=False)
    said: list[HistoryMessage] = []
    anchor = 1
    for seq in range(1, 2 * CALLS):
        said.append(entry(seq, "user" if seq % 2 else "assistant", f"{LINE} {LINE[: seq % 90]}"))
        sent = [Sent(seq) for seq in range(anchor, seq + 1)]
        if is_full(len(sent), keep=keep, grow=grow):
            decision = decide_full(History(rules, anchor, sent, range(1, seq + 1, 8)), covered_seq=seq)
            assert isinstance(decision, Cut)
            anchor = decision.at_seq
        if seq % 2:
            window = range(1, anchor, 8)[-15:]
            memos = "\n\n".join(f"{MEMO} Of {first}." for first in window)
            diary = (
                [f"- {LINE} Of {at}." for at in range(DIARY_EVERY, seq, DIARY_EVERY)] if preset == "companion" else []
            )
            before, after = diary[: (anchor - 1) // DIARY_EVERY][-16:], diary[(anchor - 1) // DIARY_EVERY :]
            parts = {"character": PERSONA, "memos": memos, "diary": "\n".join(before), "diary_recent": "\n".join(after)}
            yield [segment(name, text) for name, text in parts.items() if text], said[anchor - 1 :]


def measure_warm(preset: str) -> float:
    """Return the cost with a call every 40 seconds, in percent of an uncached window that slides."""
    history = effective({"preset": preset}).history
    window = history.keep_messages + history.grow_messages // 2
    said: list[int] = []
    bill, sliding, last = Bill(), 0, None
    for number, (segments, messages) in enumerate(list_contexts(preset)):
        said += [one.tokens + MESSAGE_OVERHEAD_TOKENS for one in messages[-2 if number else -1 :]]
        call = _call(segments, messages, number)
        bill, last = bill.add(call, last), call
        sliding += call.tokens - sum(said[-len(messages) :]) + sum(said[-window:])
    return 100 * bill.cost / sliding


def _call(segments: Sequence[Segment], messages: Sequence[HistoryMessage], number: int) -> Call:
    how = replace(render_options("anthropic"), tables=TABLES)
    rendered = render(word(arrange(segments, messages[:-1], messages[-1], messages[0].seq, TABLES), how))
    context: Mapping[str, Any] = asdict(rendered)
    return Call.of(context, SENT_AT + timedelta(seconds=40 * number))


@pytest.mark.parametrize(("preset", "most"), [("memo", 17), ("companion", 20)])
def test_a_warm_cache_makes_prompts_cheap(preset: str, most: float) -> None:
    assert 10 < measure_warm(preset) <= most


@pytest.mark.parametrize("preset", get_args(PresetName))
def test_auto_is_near_the_best_choice_and_never_above_100(preset: str) -> None:
    """The price of each call is that of its history, which grows to its usual length."""
    history = effective({"preset": preset}).history
    share, longest = find_new_share(history), history.keep_messages + history.grow_messages / 2
    sizes = [min(2.0 * number, longest) + 3 for number in range(1, len(PAUSES_S) + 1)]

    def cost(choices: Sequence[CacheChoice]) -> float:
        """The cost in percent of the same calls without a cache, given the choice before each pause."""
        costs = (size * price(one, pause, share) for size, one, pause in zip(sizes, choices, PAUSES_S, strict=True))
        return 100 * sum(costs) / sum(sizes)

    capped = [min(pause, LONGEST_S) for pause in PAUSES_S]
    auto = cost([choose(capped[max(0, at - MOST_PAUSES) : at], share) for at in range(len(PAUSES_S))])
    best = min(cost([one] * len(PAUSES_S)) for one in get_args(CacheChoice))
    assert auto <= 100
    assert auto <= best + 3
