"""The ranges of messages that are consolidated. Pure.

A range ends with the reply that completes `consolidation.every_turns` turns, or after MOST_MESSAGES seqs. It ends
earlier when the conversation pauses, when a session ends, or when a forced cut of the history is near. If an append
completes several ranges, as an import does, short ranges are joined and read together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from app.chats.ranges import Range, join_ranges
from app.layers.turns import OpenPeriod, Period

MOST_MESSAGES = 40
"""The most seqs of a range, which the model reads at once."""

BEFORE_FORCED_CUT_MESSAGES = 8
"""The open range ends this many messages before a forced cut, which does not wait for memories."""

RANGE = "range:"
"""The prefix of the work keys: `range:<first seq>`."""

MOST_SPANS = 100
"""The most spans of seqs that a work item stores."""

_TICK = timedelta(microseconds=1)
_TICKS_OF_MESSAGE = 25
_TIME_OF_RANGE = MOST_MESSAGES * _TICKS_OF_MESSAGE * _TICK


class Due(NamedTuple):
    """A range that is to be read, both ends inclusive, and its date, which orders what is learnt (`date_items`)."""

    first_seq: int
    last_seq: int
    learnt_at: datetime

    def to_payload(self) -> dict[str, Any]:
        """Return what its work item stores."""
        return {"first_seq": self.first_seq, "last_seq": self.last_seq, "learnt_at": self.learnt_at.isoformat()}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "Due | None":
        """Return the range of a stored payload; None if it has none."""
        if "learnt_at" not in payload:
            return None
        return cls(payload["first_seq"], payload["last_seq"], datetime.fromisoformat(payload["learnt_at"]))


def key_of(first_seq: int) -> str:
    """Return the key of the work item of the range that begins at `first_seq`."""
    return f"{RANGE}{first_seq}"


def close(filling: OpenPeriod, last_seq: int) -> tuple[list[Period], OpenPeriod]:
    """Return the open range, closed at `last_seq`, and the next open range.

    If the open range begins after `last_seq`, it stays open, and no range is closed.
    """
    if filling.first_seq > last_seq:
        return [], filling
    following = OpenPeriod(last_seq + 1, awaits_reply=filling.awaits_reply)
    return [Period(filling.first_seq, last_seq)], following


def join(periods: Iterable[Period]) -> list[Period]:
    """Join each of the adjacent `periods` with the following ones while the result has at most MOST_MESSAGES seqs."""
    joined: list[Period] = []
    for one in periods:
        if joined and one.last_seq - joined[-1].first_seq < MOST_MESSAGES:
            joined[-1] = Period(joined[-1].first_seq, one.last_seq)
        else:
            joined.append(one)
    return joined


def date_ranges(periods: Sequence[Period], now: datetime, *, after: datetime | None) -> list[Due]:
    """Return the ranges with ascending dates, of which the first is `now` if possible.

    Each date is at least `_TIME_OF_RANGE` later than the one before it, so that the dates of a range's items
    (`date_items`) fit between two dates. So dates can be slightly after `now`. `after` is the date of the line's last
    range before `periods`; None if there is none.
    """
    first_at = max(now, after + _TIME_OF_RANGE) if after else now
    return [Due(one.first_seq, one.last_seq, first_at + number * _TIME_OF_RANGE) for number, one in enumerate(periods)]


def date_items(first_seq: int, newest_seqs: Sequence[int]) -> list[timedelta]:
    """Return, for each item that was learnt from a range, the time from the range's date to the item's date.

    An item from a later message is newer, even if the range is read again and other items are learnt. Items from the
    same message are dated in their order.

    Args:
        first_seq: The first seq of the range.
        newest_seqs: For each item, the seq of the newest message that it comes from.

    """
    numbers: Counter[int] = Counter()
    after = []
    for seq in newest_seqs:
        ticks = (seq - first_seq) * _TICKS_OF_MESSAGE + min(numbers[seq], _TICKS_OF_MESSAGE - 1)
        numbers[seq] += 1
        after.append(ticks * _TICK)
    return after


def merge_spans(spans: Iterable[Range]) -> list[Range]:
    """Return the seqs of `spans` as at most MOST_SPANS spans in order, which neither overlap nor touch.

    If there would be more, the last span extends to the end of them all, and so includes the gaps between them.
    """
    merged = join_ranges(sorted(spans))
    if len(merged) > MOST_SPANS:
        merged[MOST_SPANS - 1 :] = [(merged[MOST_SPANS - 1][0], merged[-1][1])]
    return merged


def leave_out(spans: Iterable[Range], first_seq: int, last_seq: int) -> list[Range]:
    """Return the parts of `spans` that are outside of `first_seq…last_seq`, in their order."""
    parts = [((first, min(last, first_seq - 1)), (max(first, last_seq + 1), last)) for first, last in spans]
    return [(first, last) for pair in parts for first, last in pair if first <= last]
