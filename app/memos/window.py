"""The memo window: the memos that go into the prompt, as they are cached on the line's row. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.chats.ranges import Range, join_ranges


def make_window(
    memos: Sequence[Mapping[str, Any]], pinned: Sequence[Mapping[str, Any]], gaps: Iterable[Range]
) -> dict[str, Any]:
    """Return the window as JSON: memos and pinned memos in story order, and the ranges whose memo is missing."""
    return {
        "memos": [_entry(memo) for memo in memos],
        "pinned": [_entry(memo) for memo in pinned],
        "gaps": [list(gap) for gap in join_ranges(gaps)],
    }


def _entry(memo: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(memo["memo_id"]),
        "number": memo["number"],
        "sort_key": memo["sort_key"],
        "first_seq": memo["first_seq"],
        "last_seq": memo["last_seq"],
        "text": memo["text"],
        "tokens": memo["tokens"],
        "stale": memo["stale"],
    }
