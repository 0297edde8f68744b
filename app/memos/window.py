"""The memo window: what of the memo book goes into the prompt, as the chat's row keeps it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Range = tuple[int, int]


def make_window(
    memos: Sequence[Mapping[str, Any]], pinned: Sequence[Mapping[str, Any]], gaps: Iterable[Range]
) -> dict[str, Any]:
    """The window as JSON: memos and pinned ones in story order, and the ranges whose memo is missing."""
    return {
        "memos": [_entry(memo) for memo in memos],
        "pinned": [_entry(memo) for memo in pinned],
        "gaps": [list(gap) for gap in join_ranges(gaps)],
    }


def join_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Join ranges (inclusive, in order) that touch or overlap."""
    joined: list[Range] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _entry(memo: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(memo["memo_id"]),
        "number": memo["number"],
        "place": memo["place"],
        "first_seq": memo["first_seq"],
        "last_seq": memo["last_seq"],
        "text": memo["text"],
        "tokens": memo["tokens"],
        "stale": memo["stale"],
    }
