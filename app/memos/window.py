"""The memo window: the memos that go into the prompt, as they are cached on the line's row. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from app.chats.ranges import Range, join_ranges
from app.kit.tokens import count_tokens
from app.summarising.times import to_local


class Calendar(NamedTuple):
    """The data that decide how dates are written.

    Attributes:
        anchor_at: When the message at the anchor was sent; dates of other years are written with the year.
        time_zone: The IANA name of the chat's time zone.

    """

    anchor_at: datetime | None
    time_zone: str


def make_window(
    memos: Sequence[Mapping[str, Any]],
    pinned: Sequence[Mapping[str, Any]],
    gaps: Iterable[Range],
    calendar: Calendar,
) -> dict[str, Any]:
    """Return the window as JSON: memos and pinned memos in story order, and the ranges whose memo is missing.

    The text of a memo begins with a line with the date of its messages, from `first_sent_at` to `last_sent_at`; a memo
    without messages has no date.
    """
    return {
        "memos": [_entry(memo, calendar) for memo in memos],
        "pinned": [_entry(memo, calendar) for memo in pinned],
        "gaps": [list(gap) for gap in join_ranges(gaps)],
    }


def word_dates(first_at: datetime, last_at: datetime, anchor_at: datetime | None, time_zone: str) -> str:
    """Return the days of two times: `[05/28]`, `[05/28–05/29]`; `[2025/12/30–01/02]` if the anchor is in 2026."""
    year = to_local(anchor_at, time_zone).year if anchor_at else None
    first, last = (_word_day(to_local(at, time_zone), year) for at in (first_at, last_at))
    return f"[{first}]" if first == last else f"[{first}–{last}]"


def _word_day(at: datetime, year: int | None) -> str:
    day = f"{at.month:02}/{at.day:02}"
    return day if at.year == year else f"{at.year:04}/{day}"


def _entry(memo: Mapping[str, Any], calendar: Calendar) -> dict[str, Any]:
    text, tokens = memo["text"], memo["tokens"]
    if memo["first_sent_at"] is not None:
        text = f"{word_dates(memo['first_sent_at'], memo['last_sent_at'], *calendar)}\n{text}"
        tokens = count_tokens(text)
    return {
        "id": str(memo["memo_id"]),
        "number": memo["number"],
        "sort_key": memo["sort_key"],
        "first_seq": memo["first_seq"],
        "last_seq": memo["last_seq"],
        "text": text,
        "tokens": tokens,
        "stale": memo["stale"],
    }
