"""What memos put into a context, from the window on the chat's row alone. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.chats.budgets import choose_newest_first
from app.chats.settings import ChatSettings

HEADING = "## Memo Book"
WINDOW_PARTS = ("memos", "pinned")


class MemoLine(NamedTuple):
    """One memo as it would be shown.

    Attributes:
        number: Its number in the book, from 1.
        text: Its highlights.
        tokens: o200k tokens of `text`.
        memo_id: Its id.
        pinned: Whether a person wants it kept.

    """

    number: int
    text: str
    tokens: int
    memo_id: str
    pinned: bool = False


def choose_lines(window: Mapping[str, Any], settings: ChatSettings) -> tuple[list[MemoLine], list[MemoLine]]:
    """The window's memos and the pinned ones in story order, each kind within its own budget; and what exceeds it."""
    chosen: list[tuple[int, MemoLine]] = []
    left_out: list[MemoLine] = []
    budgets = (settings.memos.budget, settings.memos.pinned_budget)
    for part, budget in zip(WINDOW_PARTS, budgets, strict=True):
        stored = window.get(part, ())
        limit = budget.tokens(settings.context_tokens) if budget else None
        kept = choose_newest_first([memo["tokens"] for memo in stored], limit)
        for index, memo in enumerate(stored):
            line = MemoLine(memo["number"], memo["text"], memo["tokens"], memo["id"], part == "pinned")
            if index in kept:
                chosen.append((memo["place"], line))
            else:
                left_out.append(line)
    return [line for _, line in sorted(chosen, key=lambda found: (found[0], found[1].number))], left_out


def word_lines(lines: Sequence[MemoLine]) -> str:
    """The text of the segment: memos in story order under their heading."""
    return "\n\n".join((HEADING, *[line.text for line in lines]))


def summarise_shown(window: Mapping[str, Any], shown: Sequence[MemoLine]) -> dict[str, Any]:
    """What a context says of its memos: how many, which messages they cover, which ranges have none."""
    ids = {line.memo_id for line in shown}
    ranges = [
        memo
        for part in WINDOW_PARTS
        for memo in window.get(part, ())
        if memo["id"] in ids and memo["first_seq"] is not None
    ]
    return {
        "memos": len(shown),
        "first_seq": min((memo["first_seq"] for memo in ranges), default=None),
        "last_seq": max((memo["last_seq"] for memo in ranges), default=None),
        "gaps": window.get("gaps", []),
    }
