"""What the demo shows at its end, in words: the memo book, the context, what the prompt cache saves. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from app.demo.bill import CACHE_LIFE, READ_PRICE, WRITE_PRICE, Account

WIDTH = 96
_HEAD_LINES, _TAIL_LINES = 4, 3
"""Of a long segment as much is shown as tells what it is."""


def word_book(
    memos: Sequence[Mapping[str, Any]], times: Mapping[int, datetime], zone: str, anchor_seq: int
) -> Iterator[str]:
    """The lines of the memo book, parted by what has become of each memo.

    Args:
        memos: As the service lists them.
        times: When each message was sent, by its seq.
        zone: The chat's time zone.
        anchor_seq: Where the messages that are sent verbatim begin.

    """
    yield _heading(f"The memo book: {_count(len(memos), 'memo')} of {_count(len(times), 'message')}")
    for place, group in groupby(memos, key=lambda memo: _word_place(memo, anchor_seq)):
        yield f"\n— {place} —"
        for memo in group:
            dates = _word_dates(memo, times, zone)
            yield f"\n{memo['number']:>4}  {dates} · {_word_origin(memo)}"
            for text in _word_highlights(memo):
                yield textwrap.fill(text, WIDTH, initial_indent="      · ", subsequent_indent="        ")


def word_context(context: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a context in the `text` format: a table of its segments, and what they say, shortened."""
    yield _heading(f"The context of the next call: {context['tokens']:,} of at most {context['max_tokens']:,} tokens")
    yield f"\n  {'segment':<12} {'tokens':>7}  holds"
    segments = context["segments"]
    for segment in segments:
        yield f"  {segment['name']:<12} {segment['tokens']:>7,}  {_word_holding(segment, context)}".rstrip()
    rest = context["tokens"] - sum(segment["tokens"] for segment in segments)
    yield f"  {'(overhead)':<12} {rest:>7,}  4 for each message and segment"
    if context["memo_window"]["gaps"]:
        gaps = ", ".join(_word_range(first, last) for first, last in context["memo_window"]["gaps"])
        yield f"  Nothing stands for messages {gaps}: their memos are missing."
    for segment in segments:
        yield f"\n  ── {segment['name']} {'─' * (WIDTH - len(segment['name']) - 6)}"
        yield from (f"  {line}".rstrip() for line in _shorten(segment["text"]))


def word_savings(account: Account) -> Iterator[str]:
    """The lines that compare the calls with a window of the same size that slides."""
    at_once, paused = account.at_once, account.with_pauses
    full = at_once.anchored.tokens
    rows = (
        ("a sliding window, no cache", full, full),
        ("a sliding window, its prefix cached", at_once.sliding.cost, paused.sliding.cost),
        ("these contexts, cached", at_once.anchored.cost, paused.anchored.cost),
    )
    yield _heading(f"What the prompt cache saves, over {_count(account.calls, 'call')} of the model")
    yield f"\n  {'':<38} {'all at once':>18} {'with the pauses':>20}"
    for label, *costs in rows:
        yield f"  {label:<38}" + "  ".join(f"{cost:>12,.0f} {cost / max(1, full):>5.0%}" for cost in costs)
    yield "\n" + textwrap.fill(
        f"In input tokens. What repeats the call before it, up to a breakpoint, is read from the cache at"
        f" {READ_PRICE}; what is put there costs {WRITE_PRICE}. {account.cold} of the calls came more than"
        f" {CACHE_LIFE.seconds // 60} minutes after the one before, when the cache had forgotten it; in such a pause"
        " the service also cuts the history early, which a replay cannot show.",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
    )


def _heading(text: str) -> str:
    return f"\n{text}\n{'═' * len(text)}"


def _word_place(memo: Mapping[str, Any], anchor_seq: int) -> str:
    if memo["status"] != "ready":
        return "no memo"
    if memo["in_window"]:
        return "in the prompt"
    if memo["first_seq"] is not None and memo["last_seq"] >= anchor_seq:
        return "waiting: their messages are still sent word for word"
    return "in the book alone: they have left the prompt"


def _word_origin(memo: Mapping[str, Any]) -> str:
    match memo["status"], memo["origin"]:
        case "empty", _:
            return "nothing memorable"
        case "ready", "extractive":
            return "quoted, no model"
        case "ready", "person":
            return "written by a person"
        case "ready", _:
            return f"written by {memo['model']}"
        case status, _:
            return f"{status}: {memo['error'] or 'not written yet'}"


def _word_highlights(memo: Mapping[str, Any]) -> Iterator[str]:
    for highlight in memo["highlights"]:
        category = highlight["category"]
        yield f"{highlight['text']} ({category.replace('_', ' ')})" if category else highlight["text"]


def _word_dates(memo: Mapping[str, Any], times: Mapping[int, datetime], zone: str) -> str:
    if memo["first_seq"] is None:
        return f"after message {memo['after_seq']}"
    first, last = (times[memo[end]].astimezone(ZoneInfo(zone)) for end in ("first_seq", "last_seq"))
    begin = "" if first.date() == last.date() else f"{_word_day(first)}{_year_unless(last.year, first)} – "
    messages = _word_range(memo["first_seq"], memo["last_seq"])
    return f"{begin}{_word_day(last)} {last.year} · messages {messages}"


def _word_day(day: datetime) -> str:
    return f"{day:%a} {day.day} {day:%b}"


def _year_unless(year: int, day: datetime) -> str:
    return "" if day.year == year else f" {day.year}"


def _word_holding(segment: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    kind = "" if segment["cacheable"] else "changes every turn"
    if segment["name"] == "memos":
        window = context["memo_window"]
        kind = f"{_count(window['memos'], 'memo')}, of messages {_word_range(window['first_seq'], window['last_seq'])}"
    elif segment["name"] == "history":
        seqs = context["history"]
        kind = f"{_count(len(segment['sources']), 'message')} word for word, from number {seqs['anchor_seq']} on"
    return kind


def _shorten(text: str) -> list[str]:
    lines = [line for part in text.splitlines() for line in (textwrap.wrap(part, WIDTH - 2) or [""])]
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out < 2:
        return lines
    return [*lines[:_HEAD_LINES], f"[… {left_out} more lines …]", *lines[-_TAIL_LINES:]]


def _word_range(first: int, last: int) -> str:
    return f"{first}–{last}" if last > first else str(first)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
