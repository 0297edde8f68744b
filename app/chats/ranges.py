"""Ranges of seqs, both ends inclusive. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

Range = tuple[int, int]


class HasSeq(Protocol):
    """An object with a seq."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - a field


Message = TypeVar("Message", bound=HasSeq)


def inside_of(messages: Sequence[Message], first_seq: int, last_seq: int) -> Sequence[Message]:
    """Return those of `messages` (in seq order, with gaps) that are in `first_seq…last_seq`."""
    start = bisect_left(messages, first_seq, key=lambda message: message.seq)
    return messages[start : bisect_right(messages, last_seq, lo=start, key=lambda message: message.seq)]


def is_any_inside(seqs: Sequence[int], first_seq: int, last_seq: int) -> bool:
    """Return whether one of `seqs`, which ascend, is in `first_seq…last_seq`."""
    at = bisect_left(seqs, first_seq)
    return at < len(seqs) and seqs[at] <= last_seq


def is_inside(seq: int, ranges: Sequence[Range]) -> bool:
    """Return whether `seq` is in one of `ranges`, which are in order and do not overlap."""
    before = bisect_right(ranges, seq, key=lambda found: found[0])
    return before > 0 and seq <= ranges[before - 1][1]


def join_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Return as few ranges as possible with the same seqs; `ranges` are in the order of their first seqs."""
    joined: list[Range] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
