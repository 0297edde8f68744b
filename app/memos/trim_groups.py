"""Divides the memos of a context into groups of five, which a tight `max_tokens` leaves out one after the other. Pure.

The groups are left out in story order, so that the oldest memos leave the prompt first. They must not change while the
window moves, or the prompt would begin differently in every turn. So a group is five memos with consecutive numbers:
the numbers of batches rise with the story, and a memo keeps its number.

A backfilled memo has a higher number than the memos after it, so backfilled memos form groups of their own. The five
of them that are directly before another memo are a group, the five before these are the next, and so on. These groups
are left out just before the group of that memo.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from app.layers.contribution import TrimGroup

MEMOS_IN_GROUP = 5

_MOST_GROUPS = 1_000_000
"""More groups of backfilled memos than can precede a memo, so that the sort keys of groups differ."""


class _Key(NamedTuple):
    """The group of the memos with the numbers from `first` on, or a group of backfilled memos before it.

    `distance` is 0 for the former, 1 for the five backfilled memos directly before it, and 2 for the five before them.
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
    """Return the first number of the group of a number."""
    return number - (number - 1) % MEMOS_IN_GROUP


def _find_ends(numbers: Sequence[int] | None) -> tuple[int, int] | tuple[()]:
    return (min(numbers), max(numbers)) if numbers else ()


@lru_cache(maxsize=1_024)
def _make_group(key: _Key, pinned: bool, least: int = 0, greatest: int = 0) -> TrimGroup:
    first, last = (least, greatest) if key.distance else (key.first, key.first + MEMOS_IN_GROUP - 1)
    name = f"memos {first}–{last}" if first < last else f"memo {first}"
    return TrimGroup(key.first * _MOST_GROUPS - key.distance, f"pinned {name}" if pinned else name)
