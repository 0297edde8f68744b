"""Which scenes are out of sight: what auto-hide hides, and where a cut may fall. Pure.

Both leave the newest scenes alone, of which the open one is the last as soon as it has a message. Auto-hide hides
only what the running recap tells of; everything else that scenes have hidden is shown again.
"""

from collections.abc import Iterable, Sequence

from app.chats.ranges import Range, join_ranges


def keep_newest(closed: int, *, has_open: bool, keep: int) -> int:
    """How many of the oldest of `closed` scenes are not among the newest `keep`, the open one counted."""
    return max(closed - max(keep - has_open, 0), 0)


def choose_hidden(
    scenes: Sequence[tuple[int, int, bool]], *, has_open: bool, keep: int | None, covered_seq: int
) -> list[Range]:
    """The contiguous ranges that are to be hidden.

    Args:
        scenes: (first_seq, last_seq, told) of the closed scenes, in order; a scene is told if it has a recap.
        has_open: Whether a message follows the last of them.
        keep: The newest so many scenes stay; None or less than 0 hides nothing.
        covered_seq: Up to here the running recap tells of the scenes.

    """
    if keep is None or keep < 0:
        return []
    old = scenes[: keep_newest(len(scenes), has_open=has_open, keep=keep)]
    return join_ranges((first, last) for first, last, told in old if told and last <= covered_seq)


def find_rest(ranges: Iterable[Range], last_seq: int) -> list[Range]:
    """What of `1…last_seq` is in none of `ranges` (in order, apart from each other)."""
    rest: list[Range] = []
    next_seq = 1
    for first, last in ranges:
        if next_seq < first:
            rest.append((next_seq, first - 1))
        next_seq = last + 1
    if next_seq <= last_seq:
        rest.append((next_seq, last_seq))
    return rest
