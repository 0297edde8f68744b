"""Drops the shortest of the older lines when there are too many quotes. Pure."""

from collections.abc import Sequence
from heapq import nsmallest


def thin(lines: Sequence[str]) -> list[str]:
    """Return `lines` without the shortest lines of the older half: an eighth of that half, rounded down, and one more.

    While there are at least three lines, the first one is kept and does not count as part of that half, so that a story
    keeps its beginning. Longer lines are kept because they say more. If `thin` is applied repeatedly, the older
    lines disappear gradually. The last line is dropped only if it is the only one.
    """
    gone = find_thinnest(lines)
    return [line for at, line in enumerate(lines) if at not in gone]


def find_thinnest(lines: Sequence[str]) -> set[int]:
    """Return the indices of the lines that `thin` drops."""
    older = range(1, max(len(lines) // 2, 2)) if len(lines) > 2 else range(1)
    return set(nsmallest(len(older) // 8 + 1, older, key=lambda at: len(lines[at])))
