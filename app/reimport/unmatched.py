"""The messages of a line with the same role, name and text. Pure."""

from bisect import bisect_right


class Unmatched:
    """The messages with the same role, name and content that are not matched yet.

    `_free` is a disjoint-set forest: from each index in `seqs`, it leads to the next free one, and each search shortens
    the paths. So a line whose messages are all "ok." takes hardly longer than any other.
    """

    def __init__(self, seqs: list[int]) -> None:
        self._seqs = seqs
        self._free = list(range(len(seqs) + 1))

    def take_after(self, seq: int) -> int | None:
        """Match the first message after `seq`, or else the earliest one, and return its seq; None if none is left."""
        index = self._find_free(bisect_right(self._seqs, seq))
        if index == len(self._seqs):
            index = self._find_free(0)
        if index == len(self._seqs):
            return None
        self._free[index] = index + 1
        return self._seqs[index]

    def _find_free(self, index: int) -> int:
        free = self._free
        while free[index] != index:
            free[index] = free[free[index]]
            index = free[index]
        return index
