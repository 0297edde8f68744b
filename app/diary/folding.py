"""Chooses which entries of a diary are folded next, and into how many lines. Pure.

A diary is folded when it has more lines than the prompt may show. The entries that are not folded then take at most
half of the lines that the folded text leaves free, so that new entries fit before the next fold.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate

from app.chats.hashes import range_hash

MOST_ENTRIES = 30
"""The maximum number of entries that are folded at once: as many as cheap models still read well."""


def find_fold(folded_lines: int, entries: Sequence[tuple[int, int]], limit: int) -> int | None:
    """Return the number of the last entry to fold, or None if the whole diary fits.

    The entries that are not folded take at most half of the lines that the folded text leaves free.

    Args:
        folded_lines: The number of lines of the folded text.
        entries: (number, lines) of the entries that are not folded, in order. The oldest may be missing if the others
            already have too many lines.
        limit: The number of lines of a diary that are shown.

    """
    if not entries or lines_of(folded_lines, [lines for _, lines in entries]) <= limit:
        return None
    room = max(0, limit - folded_lines) // 2
    whole = lines_of(0, [lines for _, lines in entries])
    left = accumulate((-lines - 1 for _, lines in entries), initial=whole)
    next(left)
    return next(number for (number, _), stays in zip(entries, left, strict=True) if stays <= room)


def lines_of(folded_lines: int, entry_lines: Sequence[int]) -> int:
    """Return the number of lines of a diary below its heading, including the blank lines between its parts."""
    parts = [lines for lines in (folded_lines, *entry_lines) if lines]
    return sum(parts) + max(0, len(parts) - 1)


def most_folded_lines(limit: int, former_lines: int) -> int:
    """Return the most lines of a fold: less than half of `limit` and fewer than `former_lines`, but at least one."""
    return max(1, min((limit - 1) // 2, former_lines - 1))


def fit_lines(text: str, most_lines: int) -> str:
    """Return `text` without blank lines. If it has more than `most_lines` lines, the first ones are joined into one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    joined = max(0, len(lines) - most_lines) + 1
    return "\n".join([" ".join(lines[:joined]), *lines[joined:]])


def step_hash(members: Iterable[tuple[int, str]]) -> bytes:
    """Return the hash of the entries that one fold adds; `members` are their (number, content), in order."""
    return range_hash([(number, hashlib.sha256(content.encode()).digest()) for number, content in members])
