"""What goes first where quotes are too many: the shortest of what is longer ago. Pure."""

from collections.abc import Sequence
from heapq import nsmallest


def thin(lines: Sequence[str]) -> list[str]:
    """Without the shortest eighth of the older half, but at least without one line; never without the newest.

    The first line stays as long as there are three: a story is not to lose its beginning. Who has more to say, says
    more; and thinned again and again, what is long ago is told ever more sparsely, and yet is not forgotten at once.
    """
    gone = find_thinnest(lines)
    return [line for at, line in enumerate(lines) if at not in gone]


def find_thinnest(lines: Sequence[str]) -> set[int]:
    """The places of the lines that `thin` leaves out."""
    older = range(1, max(len(lines) // 2, 2)) if len(lines) > 2 else range(1)
    return set(nsmallest(len(older) // 8 + 1, older, key=lambda at: len(lines[at])))
