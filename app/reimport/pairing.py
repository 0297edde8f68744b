"""Pairs old and new messages between two matched neighbours: each pair is one message whose text was edited. Pure.

If the text of a message was edited and its id is not given, it matches no stored message. But the messages around it
still match. So the new messages between two matched neighbours are paired with the stored messages between the same
neighbours. The messages of a pair have the same role, and pairs never cross. Of the choices with the most pairs, the
one with the most equal speakers and words is taken.

After the last matched message, a new message without a partner is appended behind all stored messages. So once a new
message there has no partner, the new messages after it get none either.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

_COMPARISONS_EACH = 16
"""How many comparisons a message may cost on average. Longer stretches are paired only by role, in order."""

_COMPARED_CHARS = 2_000
_SAME_ROLE, _SAME_SPEAKER = 1 << 40, 1 << 20
"""One more pair outweighs any number of equal speakers, and one equal speaker outweighs any likeness of texts."""


class Said(NamedTuple):
    """The speaker and the text of a message; they identify a message for which no id is given."""

    role: str
    name: str | None
    content: str


def pair_gap(old: Sequence[Said], new: Sequence[Said], *, at_end: bool) -> list[int | None]:
    """Return for each of `new` the index in `old` of the message that it edits, ascending; None if it edits none.

    `at_end` is whether the messages come after the last matched one.
    """
    start = _count_equal(old, new)
    rest, left = old[start:], new[start:]
    end = 0 if at_end else _count_equal(rest[::-1], left[::-1])
    pairs = _pair_rest(rest[: len(rest) - end], left[: len(left) - end], at_end=at_end)
    behind = range(len(old) - end, len(old))
    return [*range(start), *(None if index is None else start + index for index in pairs), *behind]


def _count_equal(old: Sequence[Said], new: Sequence[Said]) -> int:
    """Return how many messages at the beginning are equal."""
    return next((count for count, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _pair_rest(old: Sequence[Said], new: Sequence[Said], *, at_end: bool) -> list[int | None]:
    if len(old) * len(new) > _COMPARISONS_EACH * (len(old) + len(new)):
        return _pair_by_role(old, new, at_end=at_end)
    return _choose_best(_score(old, new), len(old), at_end=at_end)


def _pair_by_role(old: Sequence[Said], new: Sequence[Said], *, at_end: bool) -> list[int | None]:
    """Pair each of `new` with the next old message of its role."""
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(old):
        indices[text.role].append(index)
    pairs: list[int | None] = []
    last = -1
    for text in new:
        of_role = indices[text.role]
        following = bisect_right(of_role, last)
        found = of_role[following] if following < len(of_role) else None
        if found is None and at_end:
            break
        pairs.append(found)
        last = last if found is None else found
    return pairs + [None] * (len(new) - len(pairs))


def _score(old: Sequence[Said], new: Sequence[Said]) -> list[list[int]]:
    """Return for each of `new` the score of a pair with each of `old`; 0 if the roles differ."""
    words = [_words(text) for text in old]
    return [
        [
            _SAME_ROLE + _SAME_SPEAKER * (other.name == text.name) + _likeness(own, words[index])
            if other.role == text.role
            else 0
            for index, other in enumerate(old)
        ]
        for text in new
        for own in (_words(text),)
    ]


def _words(text: Said) -> frozenset[str]:
    return frozenset(text.content[:_COMPARED_CHARS].split())


def _likeness(words: frozenset[str], others: frozenset[str]) -> int:
    """Return 1000 if both texts have the same words, 0 if they have none in common."""
    return 2_000 * len(words & others) // (len(words) + len(others) or 1)


def _choose_best(scores: Sequence[Sequence[int]], old_count: int, *, at_end: bool) -> list[int | None]:
    """Return the pairs with the highest sum of `scores`, in ascending order.

    If several choices have this sum, each new message in turn gets the earliest old one that is possible.

    `best[i][j]` is the highest sum for the last `i` new messages and the old ones from `j` on.
    """
    best = [[0] * (old_count + 1)]
    for row in reversed(scores):
        later, here = best[-1], [0] * (old_count + 1)
        for index in range(old_count - 1, -1, -1):
            paired = row[index] + later[index + 1] if row[index] else 0
            unpaired = 0 if at_end else later[index]
            here[index] = max(here[index + 1], unpaired, paired)
        best.append(here)
    pairs: list[int | None] = []
    at = 0
    for row in scores:
        whole, later = best.pop()[at], best[-1]
        candidates = (index for index in range(at, old_count) if row[index])
        found = next((index for index in candidates if row[index] + later[index + 1] == whole), None)
        if found is None and at_end:
            break
        pairs.append(found)
        at = at if found is None else found + 1
    return pairs + [None] * (len(scores) - len(pairs))
