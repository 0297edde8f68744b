"""Which scenes auto-hide hides, and which a cut keeps. Pure.

Both leave the newest scenes in sight. The open scene counts as the newest as soon as it has a message. Auto-hide hides
only scenes that the running recap covers, and un-hides everything else that it has hidden.
"""

from collections.abc import Iterable, Sequence

from app.chats.ranges import Range, join_ranges


def keep_newest(closed: int, *, has_open: bool, keep: int) -> int:
    """Return how many of `closed` scenes, oldest first, are not among the newest `keep`, the open scene counted."""
    return max(closed - max(keep - has_open, 0), 0)


def choose_hidden(
    scenes: Sequence[tuple[int, int, bool]], *, has_open: bool, keep: int | None, covered_seq: int
) -> list[Range]:
    """Return the ranges to hide, with adjacent scenes joined.

    Args:
        scenes: (first_seq, last_seq, told) of the closed scenes, in order; told if the recap is valid or not needed.
        has_open: Whether a message follows the last of them.
        keep: How many of the newest scenes stay in sight; None or a negative number hides nothing.
        covered_seq: The last seq that the running recap covers.

    """
    if keep is None or keep < 0:
        return []
    old = scenes[: keep_newest(len(scenes), has_open=has_open, keep=keep)]
    return join_ranges((first, last) for first, last, told in old if told and last <= covered_seq)


def find_rest(ranges: Iterable[Range], last_seq: int) -> list[Range]:
    """Return the parts of `1…last_seq` that are outside `ranges`, which are in order and do not overlap."""
    rest: list[Range] = []
    next_seq = 1
    for first, last in ranges:
        if next_seq < first:
            rest.append((next_seq, first - 1))
        next_seq = last + 1
    if next_seq <= last_seq:
        rest.append((next_seq, last_seq))
    return rest
