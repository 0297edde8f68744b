"""Formats the context of the next call and the savings of the prompt cache. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.chats.prompt_cache import READ_PRICE, TTL_S, WRITE_PRICE
from app.demo.bill import Account
from app.demo.words import WIDTH, count, fill, heading, join_seqs, word_range

_HEAD_LINES, _TAIL_LINES = 4, 3
"""The number of lines shown of the beginning and the end of a long segment."""

_MOST_RANGES = 4
"""The maximum number of ranges listed for messages with the same status."""

_SENT = {
    "verbatim": "word for word",
    "pinned": "pinned, word for word",
}
_COVERED = {
    "memo": "by a memo",
    "summary": "by the summary",
    "recap": "by the running recap",
}
"""A status in none of the tables `_SENT`, `_COVERED` and `_NOT_SENT` is another kind of coverage: it is shown as
`by <kind>`."""

_NOT_SENT = {
    "out_of_budget": "not: they or their memo do not fit the budget",
    "pending": "not yet: their memo, summary or recap is not ready, or waits for the cut",
    "failed": "not: their memo, summary or recap has failed",
    "expired": "no longer: their memo is no longer in the prompt",
    "excluded": "not: they are excluded",
    "hidden": "not: they are hidden",
    "learnt": "not: but facts or memories were learnt from them",
    "none": "not: no memory was made of them",
}


def word_context(
    context: Mapping[str, Any], inclusion: Sequence[Mapping[str, Any]], *, character: str | None = None
) -> Iterator[str]:
    """Yield the lines that show a context: a table of its segments, its coverage, and its text.

    Args:
        context: The context in the `text` format, as the service returns it.
        inclusion: For each message, whether the context contains or covers it.
        character: The character that the context is made for; None if there is no choice.

    """
    turn = f" for {character}" if character else ""
    tokens = f"{context['tokens']:,} of at most {context['max_tokens']:,} tokens"
    yield heading(f"The context of the next call{turn}: {tokens}")
    yield f"\n  {'segment':<12} {'tokens':>7}  holds"
    segments = context["segments"]
    for segment in segments:
        yield f"  {segment['name']:<12} {segment['tokens']:>7,}  {_word_holding(segment, context)}".rstrip()
    rest = context["tokens"] - sum(segment["tokens"] for segment in segments)
    yield f"  {'(overhead)':<12} {rest:>7,}  4 for each message and segment"
    yield from _word_statuses(inclusion)
    if context["memo_window"]["gaps"]:
        gaps = ", ".join(word_range(first, last) for first, last in context["memo_window"]["gaps"])
        yield f"  Messages {gaps} are not sent, and no memo, summary or recap covers them."
    for segment in segments:
        yield f"\n  ── {segment['name']} {'─' * (WIDTH - len(segment['name']) - 6)}"
        yield from (f"  {line}".rstrip() for line in _shorten(segment["text"]))


def word_savings(account: Account) -> Iterator[str]:
    """Yield the lines that compare the cost of the calls with that of a sliding window of the same size."""
    at_once, paused = account.at_once, account.with_pauses
    full = at_once.anchored.tokens
    rows = (
        ("a sliding window, no cache", full, full),
        ("a sliding window, its prefix cached", at_once.sliding.cost, paused.sliding.cost),
        ("these contexts, cached", at_once.anchored.cost, paused.anchored.cost),
    )
    yield heading(f"What the prompt cache saves, over {count(account.calls, 'call')} of the model")
    yield f"\n  {'':<38} {'all at once':>18} {'with the pauses':>20}"
    for label, *costs in rows:
        yield f"  {label:<38}" + "  ".join(f"{cost:>12,.0f} {cost / max(1, full):>5.0%}" for cost in costs)
    yield "\n" + fill(
        "The first row counts input tokens; the others are costs, in tokens at the normal price. A token that repeats"
        " the previous call, up to a breakpoint, is read from the"
        f" cache and costs {READ_PRICE}; a token written to the cache costs {WRITE_PRICE['5m']} if it is kept for"
        f" {TTL_S['5m'] // 60} minutes, {WRITE_PRICE['1h']} if for an hour. {account.cold} of the calls came after the"
        " cache had expired. The last column lets the cache expire in the pauses of the conversation. The service"
        " itself saw no pauses: it did not cut the history early in a pause, or choose with `cache: auto` how long the"
        " cache is kept, so what this saves is not included.",
        2,
    )


def _word_holding(segment: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    sources = segment["sources"]
    match segment["name"]:
        case "memos":
            window = context["memo_window"]
            return (
                f"{count(window['memos'], 'memo')}, of messages {word_range(window['first_seq'], window['last_seq'])}"
            )
        case "history":
            begin = context["history"]["anchor_seq"]
            return f"{count(len(sources), 'message')} word for word, from number {begin} on"
        case "diary":
            folded = [source for source in sources if source.startswith("diary:folded:")]
            older = " and what was folded before" if folded else ""
            return f"{count(len(sources) - len(folded), 'entry', 'entries')} word for word{older}"
        case "diary_recent":
            return f"{count(len(sources), 'entry', 'entries')} since the last cut"
        case "summary" | "recap":
            return ", ".join(f"version {source.partition(':')[2]}" for source in sources)
        case _:
            return "" if segment["cacheable"] else "changes every turn"


def _word_statuses(inclusion: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of how many messages the context contains or covers, by status."""
    if inclusion:
        yield "\n  messages     known to the model"
    known = _SENT | _COVERED
    statuses = [_find_status(item) for item in inclusion]
    others = sorted(set(statuses) - known.keys() - _NOT_SENT.keys())
    for status, text in (known | {name: f"by {name}" for name in others} | _NOT_SENT).items():
        if seqs := [item["seq"] for item, found in zip(inclusion, statuses, strict=True) if found == status]:
            ranges = [word_range(*one) for one in join_seqs(seqs)]
            shown = ", ".join(ranges[:_MOST_RANGES]) + (", …" if len(ranges) > _MOST_RANGES else "")
            yield f"  {len(seqs):>8,}     {text} · {shown}"


def _find_status(item: Mapping[str, Any]) -> str:
    """Return the status of a message; `learnt` if it is `none`, but something was learnt from the message."""
    status = str(item["status"])
    return "learnt" if status == "none" and item.get("by") else status


def _shorten(text: str) -> list[str]:
    lines = [line for written in text.splitlines() for line in (textwrap.wrap(written, WIDTH - 2) or [""])]
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out < 2:
        return lines
    return [*lines[:_HEAD_LINES], f"[… {left_out} more lines …]", *lines[-_TAIL_LINES:]]
