"""The order of matched messages: which of them keep their seqs, and which is the first that needs a new line. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf


def find_divergence(matches: Sequence[int | None]) -> int | None:
    """Return the first index whose seq is greater than a later one, or None; a new message counts as the greatest."""
    diverges_at = None
    least_seq_after: float = inf
    for index in range(len(matches) - 1, -1, -1):
        match = matches[index]
        seq = inf if match is None else match
        if least_seq_after < seq:
            diverges_at = index
        least_seq_after = min(least_seq_after, seq)
    return diverges_at


def find_ascending(matches: Iterable[int | None]) -> set[int]:
    """Return the seqs of the longest ascending subsequence of the matched seqs."""
    ends: list[int] = []  # index i: the smallest last seq of all ascending subsequences of i + 1 seqs
    former: dict[int, int | None] = {}
    for seq in matches:
        if seq is not None:
            length = bisect_left(ends, seq)
            former[seq] = ends[length - 1] if length else None
            ends[length : length + 1] = [seq]
    part = set()
    seq = ends[-1] if ends else None
    while seq is not None:
        part.add(seq)
        seq = former[seq]
    return part


def keeps_more(matches: Sequence[int | None], former_diverges_at: int) -> bool:
    """Return whether more messages keep their seqs than with other matches, which diverge at `former_diverges_at`."""
    diverges_at = find_divergence(matches)
    return diverges_at is None or diverges_at > former_diverges_at
