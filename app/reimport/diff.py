"""Matches a wanted list of messages with a line and decides whether the line can be changed in place. Pure.

A frontend that sends its whole chat again sends the result, not the changes. The result is matched with the line's
messages, so that an edited message remains the same message and the memory derived from it is updated, not lost.

In place, a message can be edited, deleted, restored from its tombstone, or appended after all others. A message cannot
be inserted between two others or moved, because its `seq` never changes. A list that needs this needs a new line.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

Said = tuple[str, str | None, str]
"""Role, name and content: they identify a message for which no id is given."""


class Existing(NamedTuple):
    """A message of the line; `deleted` is true for a tombstone."""

    seq: int
    message_id: str
    role: str
    name: str | None
    content: str
    deleted: bool = False

    @property
    def said(self) -> Said:
        """The role, name and content of the message."""
        return self.role, self.name, self.content


class Wanted(NamedTuple):
    """A message of the wanted list; `message_id` is None if the caller gave none."""

    message_id: str | None
    role: str
    name: str | None
    content: str

    @property
    def said(self) -> Said:
        """The role, name and content that the message is to have."""
        return self.role, self.name, self.content


@dataclass(frozen=True, slots=True)
class Alignment:
    """The result of matching the wanted messages with a line.

    `diverges_at` is the index of the first wanted message that has a smaller matched seq somewhere after it; a new
    message counts as greater than every seq. The messages before the index keep their seqs: the new line is a copy that
    ends with the last of them. All messages from the index on are appended to it. Those that match have greater seqs
    than all that are kept, so the copy does not contain them and their ids are free. No larger number
    of messages could keep their seqs: the message at the index is new, or one that comes after it in the list has a
    smaller seq, so a copy that includes the first would include the second too, in the wrong order.

    Attributes:
        matches: For each wanted message, the seq of the message that it matches, which may be a tombstone to restore;
            None if it is new.
        removed: The seqs, ascending, of the messages that are not deleted and match no wanted message.
        diverges_at: None if the line can be changed in place: the matched seqs ascend and the new messages come after
            all of them. Otherwise the index of the first wanted message that cannot keep its seq.

    """

    matches: tuple[int | None, ...]
    removed: tuple[int, ...]
    diverges_at: int | None


def align(existing: Sequence[Existing], wanted: Sequence[Wanted]) -> Alignment:
    """Match `wanted` with `existing`, the whole line in seq order. Ids are unique in both.

    A wanted message with an id matches the message with that id, deleted or not, whatever its text; it is new if the
    line does not have the id. A wanted message without an id matches a message that is not deleted, has the same role,
    name and content, and whose id is not given. The common beginning and the common end of both lists are matched
    first. Each message in between matches the next such message after the last match, or else the earliest one left.
    """
    given = {message.message_id for message in wanted if message.message_id is not None}
    start = _match_in_turn(existing, wanted, given)
    rest = existing if not start else [message for message in existing if message.seq > start[-1]]
    end = _match_in_turn(reversed(rest), reversed(wanted[len(start) :]), given)[::-1]
    matches = _match_between(existing, wanted, given, start, end)
    diverges_at = _find_divergence(matches)
    if diverges_at is not None and end:
        # The appended messages may end as the line did ("go on"). The common end then matched one of them with a
        # message that an earlier wanted message needs.
        without_end = _match_between(existing, wanted, given, start, [])
        if _find_divergence(without_end) is None:
            matches, diverges_at = without_end, None
    matched = set(matches)
    removed = tuple(message.seq for message in existing if not message.deleted and message.seq not in matched)
    return Alignment(matches, removed, diverges_at)


def _find_divergence(matches: Sequence[int | None]) -> int | None:
    """Return the first index with a smaller seq somewhere after it, or None; a new message ranks after every seq."""
    diverges_at = None
    least_seq_after: float = inf
    for index in range(len(matches) - 1, -1, -1):
        match = matches[index]
        seq = inf if match is None else match
        if least_seq_after < seq:
            diverges_at = index
        least_seq_after = min(least_seq_after, seq)
    return diverges_at


def _match_in_turn(existing: Iterable[Existing], wanted: Iterable[Wanted], given: set[str]) -> list[int]:
    """Return the seqs of the first wanted messages, up to the first that does not match the line's next message.

    A tombstone is skipped, unless the wanted message has its id.
    """
    seqs = []
    left = iter(existing)
    for message in wanted:
        candidate = next((found for found in left if not found.deleted or found.message_id == message.message_id), None)
        if candidate is None or not _is_same(message, candidate, given):
            break
        seqs.append(candidate.seq)
    return seqs


def _is_same(wanted: Wanted, existing: Existing, given: set[str]) -> bool:
    if wanted.message_id is not None:
        return wanted.message_id == existing.message_id
    return existing.message_id not in given and wanted.said == existing.said


def _match_between(
    existing: Sequence[Existing], wanted: Sequence[Wanted], given: set[str], start: list[int], end: list[int]
) -> tuple[int | None, ...]:
    """Return the seqs of all wanted messages: `start`, those in between matched one by one, and `end`."""
    seq_by_id = {message.message_id: message.seq for message in existing if message.message_id in given}
    unmatched = _group_unmatched(existing, given, {*start, *end})
    last_seq = 0
    between: list[int | None] = []
    for message in wanted[len(start) : len(wanted) - len(end)]:
        if message.message_id is not None:
            match = seq_by_id.get(message.message_id)
        else:
            match = unmatched[message.said].take_after(last_seq) if message.said in unmatched else None
        between.append(match)
        last_seq = last_seq if match is None else match
    return (*start, *between, *end)


class _Unmatched:
    """The messages with the same role, name and content that are not matched yet.

    `_free` is a disjoint-set forest: from each index in `seqs`, it leads to the next free one, and each search shortens
    the paths. So a line on which all messages are "ok." takes hardly longer than any other.
    """

    def __init__(self, seqs: list[int]) -> None:
        self._seqs = seqs
        self._free = list(range(len(seqs) + 1))

    def take_after(self, seq: int) -> int | None:
        """Match the first message after `seq`, or else the earliest one, and return its seq; None if none is left."""
        place = self._find_free(bisect_right(self._seqs, seq))
        if place == len(self._seqs):
            place = self._find_free(0)
        if place == len(self._seqs):
            return None
        self._free[place] = place + 1
        return self._seqs[place]

    def _find_free(self, place: int) -> int:
        free = self._free
        while free[place] != place:
            free[place] = free[free[place]]
            place = free[place]
        return place


def _group_unmatched(existing: Iterable[Existing], given: set[str], matched: set[int]) -> dict[Said, _Unmatched]:
    """Return, by role, name and content, the messages that are not deleted, not matched and whose ids are not given."""
    seqs: defaultdict[Said, list[int]] = defaultdict(list)
    for message in existing:
        if not message.deleted and message.message_id not in given and message.seq not in matched:
            seqs[message.said].append(message.seq)
    return {said: _Unmatched(of_said) for said, of_said in seqs.items()}
