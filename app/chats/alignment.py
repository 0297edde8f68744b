"""Which messages of a wanted list are which messages of a line, and whether the line can become it in place. Pure.

A frontend that sends its whole chat again says what there is to be, not what was done. What it says is matched with
what stands, so that a message stays itself through an edit and everything made from it stands or falls with it.

In place a message can be edited, taken away, revived where its tombstone is, or appended behind all others. Nothing
can be put between two messages, and none can move: a `seq` is a place for good. Such a list needs a new line.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

Said = tuple[str, str | None, str]
"""Role, name and content: what tells messages apart where no id is given."""


class Standing(NamedTuple):
    """A message of the line; a tombstone is `deleted`."""

    seq: int
    message_id: str
    role: str
    name: str | None
    content: str
    deleted: bool = False

    @property
    def said(self) -> Said:
        """What it says, and who says it."""
        return self.role, self.name, self.content


class Wanted(NamedTuple):
    """A message as it is to be; `message_id` is None where the caller gave none."""

    message_id: str | None
    role: str
    name: str | None
    content: str

    @property
    def said(self) -> Said:
        """What it is to say, and who says it."""
        return self.role, self.name, self.content


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the wanted messages are, and what becomes of the line.

    With `diverges_at`, the wanted messages before that index keep their places, and the new line is cut off behind
    the last of them; from there on all are appended, whether they are new or have stood elsewhere. That index is of
    the first message that is new while a known one follows, or that a later one would have to come before. So what is
    wanted from there on stands behind the cut, tombstones too: what is left on the new line has none of their ids.
    More could not keep its place.

    Attributes:
        matches: For each wanted message the seq of the one it is, living or a tombstone to revive; None if it is new.
        removed: The seqs of living messages that nothing wants, ascending.
        diverges_at: None if the line can become the list in place: the matched seqs ascend and what is new comes after
            all of them. Else the index of the first wanted message that cannot keep its place.

    """

    matches: tuple[int | None, ...]
    removed: tuple[int, ...]
    diverges_at: int | None


def align(standing: Sequence[Standing], wanted: Sequence[Wanted]) -> Alignment:
    """Match `wanted` with `standing`, the whole line in seq order; ids are unique in both.

    An id given is that message, living or a tombstone, or a new one, whatever it says. A message without one is a
    living one that says the same and whose id is not given elsewhere: first as far as both lists agree from their
    beginning and from their end, then the next such message after the last match, else the earliest left.
    """
    given = {message.message_id for message in wanted if message.message_id is not None}
    start = _match_in_turn(standing, wanted, given)
    rest = standing if not start else [message for message in standing if message.seq > start[-1]]
    end = _match_in_turn(reversed(rest), reversed(wanted[len(start) :]), given)[::-1]
    matches = _match_between(standing, wanted, given, start, end)
    diverges_at = _find_divergence(matches)
    if diverges_at is not None and end:
        # What was appended may end as the line does ("go on"), and has then taken the place of an earlier message.
        without_end = _match_between(standing, wanted, given, start, [])
        if _find_divergence(without_end) is None:
            matches, diverges_at = without_end, None
    matched = set(matches)
    removed = tuple(message.seq for message in standing if not message.deleted and message.seq not in matched)
    return Alignment(matches, removed, diverges_at)


def _find_divergence(matches: Sequence[int | None]) -> int | None:
    """The first index with a smaller seq somewhere after it, or None; what is new (None) belongs after every seq."""
    diverges_at = None
    least_seq_after: float = inf
    for index in range(len(matches) - 1, -1, -1):
        match = matches[index]
        seq = inf if match is None else match
        if least_seq_after < seq:
            diverges_at = index
        least_seq_after = min(least_seq_after, seq)
    return diverges_at


def _match_in_turn(standing: Iterable[Standing], wanted: Iterable[Wanted], given: set[str]) -> list[int]:
    """The seqs of the first wanted messages, as far as each is the next one standing.

    A tombstone is passed over, unless it is the very message that is wanted there.
    """
    seqs = []
    left = iter(standing)
    for message in wanted:
        candidate = next((found for found in left if not found.deleted or found.message_id == message.message_id), None)
        if candidate is None or not _is_same(message, candidate, given):
            break
        seqs.append(candidate.seq)
    return seqs


def _is_same(wanted: Wanted, standing: Standing, given: set[str]) -> bool:
    if wanted.message_id is not None:
        return wanted.message_id == standing.message_id
    return standing.message_id not in given and wanted.said == standing.said


def _match_between(
    standing: Sequence[Standing], wanted: Sequence[Wanted], given: set[str], start: list[int], end: list[int]
) -> tuple[int | None, ...]:
    """The seqs of all wanted messages: those of `start`, what lies between matched one by one, those of `end`."""
    seq_by_id = {message.message_id: message.seq for message in standing if message.message_id in given}
    unmatched = _group_unmatched(standing, given, {*start, *end})
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
    """The messages that say the same and are not matched yet.

    For each place in `seqs` it knows one at or before the next that is free, and learns with every search: a line of
    nothing but "ok." takes hardly longer than any other.
    """

    def __init__(self, seqs: list[int]) -> None:
        self._seqs = seqs
        self._free = list(range(len(seqs) + 1))

    def take_after(self, seq: int) -> int | None:
        """The first one after `seq`, else the earliest of all, else None; it is matched from now on."""
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


def _group_unmatched(standing: Iterable[Standing], given: set[str], matched: set[int]) -> dict[Said, _Unmatched]:
    """By what they say, the living messages that no id is given for and that are not in `matched`."""
    seqs: defaultdict[Said, list[int]] = defaultdict(list)
    for message in standing:
        if not message.deleted and message.message_id not in given and message.seq not in matched:
            seqs[message.said].append(message.seq)
    return {said: _Unmatched(of_said) for said, of_said in seqs.items()}
