"""Which entries of a diary are folded next, and into how many lines. Pure.

A diary is folded when it takes more lines than the prompt has room for. What is folded and what stays then share that
room, and the more has been folded before, the fewer entries stay: so there is room for some entries until the next.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate

from app.chats.hashes import range_hash

MOST_ENTRIES = 30
"""So many entries at most are folded at once: what cheap models still read well."""


def find_fold(folded_lines: int, entries: Sequence[tuple[int, int]], limit: int) -> int | None:
    """The number of the last entry that is to be folded, or None while all of it has room.

    What stays takes at most half of the lines that what was folded before leaves.

    Args:
        folded_lines: How many lines the text takes that was folded before.
        entries: (number, lines) of those that are not folded, in order; the oldest may be missing, where the rest
            already has too many lines.
        limit: How many lines of a diary are shown.

    """
    if not entries or lines_of(folded_lines, [lines for _, lines in entries]) <= limit:
        return None
    room = max(0, limit - folded_lines) // 2
    whole = lines_of(0, [lines for _, lines in entries])
    left = accumulate((-lines - 1 for _, lines in entries), initial=whole)
    next(left)
    return next(number for (number, _), stays in zip(entries, left, strict=True) if stays <= room)


def lines_of(folded_lines: int, entry_lines: Sequence[int]) -> int:
    """How many lines a diary takes below its heading, with the blank ones between what was folded and the entries."""
    parts = [lines for lines in (folded_lines, *entry_lines) if lines]
    return sum(parts) + max(0, len(parts) - 1)


def most_folded_lines(limit: int, former_lines: int) -> int:
    """How many lines a fold may take: below half of what is shown, and fewer than it was made of, but always one."""
    return max(1, min((limit - 1) // 2, former_lines - 1))


def fit_lines(text: str, most_lines: int) -> str:
    """The same words in at most `most_lines` lines: without blank ones, the oldest joined to one paragraph."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    joined = max(0, len(lines) - most_lines) + 1
    return "\n".join([" ".join(lines[:joined]), *lines[joined:]])


def step_hash(members: Iterable[tuple[int, str]]) -> bytes:
    """The hash of what is folded in one step: `members` are (number, content) of its entries, in order."""
    return range_hash([(number, hashlib.sha256(content.encode()).digest()) for number, content in members])
