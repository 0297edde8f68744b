"""Divides the memos of a context into groups of five, which a tight `max_tokens` leaves out one after the other. Pure.

The groups are left out in story order, so that the oldest memos leave the prompt first. A group must not change while
the window moves, or the prompt would begin differently in every turn. So a group is five memos with consecutive
numbers. The numbers of batches rise with the story, and a memo keeps its number.

A backfilled memo has a higher number than the memos after it in the story, so backfilled memos form groups of their
own. The last five backfilled memos before a memo that is not backfilled are one group, the five before them are
another, and so on. These groups are left out just before the group of the memo that is not backfilled.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from app.layers.contribution import TrimGroup

MEMOS_IN_GROUP = 5

_MOST_GROUPS = 1_000_000
"""Multiplies `first` in the sort key of a group. No memo has so many groups of backfilled memos before it, so all
groups have different sort keys."""


class _Key(NamedTuple):
    """Identifies a group: the five memos with the numbers from `first` on, or backfilled memos before these.

    `distance` is 0 for the memos with these numbers. It is 1 for the last five backfilled memos before them, 2 for the
    previous five, and so on.
    """

    first: int
    distance: int


def group_memos(memos: Sequence[Mapping[str, Any]], *, pinned: bool) -> list[TrimGroup]:
    """Return the trim group of each memo; `memos` are entries of the window in story order.

    A memo that a person wrote can be anywhere in the story, and is in the group of its number.
    """
    keys = _find_keys(memos)
    backfilled: defaultdict[_Key, list[int]] = defaultdict(list)
    for memo, key in zip(memos, keys, strict=True):
        if key.distance:
            backfilled[key].append(memo["number"])
    return [_make_group(key, pinned, *_find_ends(backfilled.get(key))) for key in keys]


def _find_keys(memos: Sequence[Mapping[str, Any]]) -> list[_Key]:
    keys = []
    counts: Counter[int] = Counter()
    next_number = None
    for memo in reversed(memos):
        number = memo["number"]
        if memo["first_seq"] is not None and next_number is not None and number > next_number:
            first = _find_first(next_number)
            keys.append(_Key(first, 1 + counts[first] // MEMOS_IN_GROUP))
            counts[first] += 1
            continue
        if memo["first_seq"] is not None:
            next_number = number
        keys.append(_Key(_find_first(number), 0))
    return keys[::-1]


def _find_first(number: int) -> int:
    """Return the first number of the group that `number` is in."""
    return number - (number - 1) % MEMOS_IN_GROUP


def _find_ends(numbers: Sequence[int] | None) -> tuple[int, int] | tuple[()]:
    return (min(numbers), max(numbers)) if numbers else ()


@lru_cache(maxsize=1_024)
def _make_group(key: _Key, pinned: bool, least: int = 0, greatest: int = 0) -> TrimGroup:
    first, last = (least, greatest) if key.distance else (key.first, key.first + MEMOS_IN_GROUP - 1)
    name = f"memos {first}–{last}" if first < last else f"memo {first}"
    return TrimGroup(key.first * _MOST_GROUPS - key.distance, f"pinned {name}" if pinned else name)
