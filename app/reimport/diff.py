"""Matches a wanted list of messages with a line and decides whether the line can be changed in place. Pure.

A frontend that sends its whole chat again sends the resulting messages, not the changes. The list is matched with the
line's messages, so that an edited message remains the same message and the memory derived from it is updated, not lost.
First, messages without ids are matched by equal role, name and text. Then `pairing` pairs the messages between these
matches; each pair is an edit.

In place, a message can be edited, deleted, restored from its tombstone, or appended after all others. A message cannot
be inserted between two others or moved, because its `seq` never changes. If the list needs this, a new line is made.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from app.reimport.order import find_ascending, find_divergence, keeps_more
from app.reimport.pairing import Said, pair_gap
from app.reimport.unmatched import Unmatched


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
        return Said(self.role, self.name, self.content)


class Wanted(NamedTuple):
    """A message of the wanted list; `message_id` is None if the caller gave none."""

    message_id: str | None
    role: str
    name: str | None
    content: str

    @property
    def said(self) -> Said:
        """The role, name and content that the message is to have."""
        return Said(self.role, self.name, self.content)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The result of matching the wanted messages with a line.

    A wanted message that matches a seq keeps its place unless a later wanted message matches a smaller seq. A new
    message keeps its place unless a later wanted message matches a message of the line. `diverges_at` is the index of
    the first wanted message that cannot keep its place. The wanted messages before it keep their seqs: the new line is
    a copy of the line up to the last of these seqs. All wanted messages from `diverges_at` on are appended to the copy.
    If one of them matches a message of the line, the seq of that message is greater than all seqs of the copy. So the
    copy does not contain that message, and its id can be used for the appended one.

    `diverges_at` cannot be larger, because the copy has to contain all wanted messages before `diverges_at`, in their
    order. If the wanted message at `diverges_at` is new, no copy of the line contains it. If it matches a seq, a later
    wanted message matches a smaller seq, so a copy that contains it has these two messages in the wrong order.

    Attributes:
        matches: For each wanted message, the seq of the message that it matches, which may be a tombstone to restore;
            None if it is new.
        removed: The seqs, ascending, of the messages that are not deleted and match no wanted message.
        diverges_at: None if the line can be changed in place: the matched seqs ascend and the new messages come after
            all of them. Otherwise the index of the first wanted message that cannot keep its place.

    """

    matches: tuple[int | None, ...]
    removed: tuple[int, ...]
    diverges_at: int | None


def align(existing: Sequence[Existing], wanted: Sequence[Wanted]) -> Alignment:
    """Match `wanted` with `existing`, the whole line in seq order. Ids are unique in both.

    A wanted message with an id matches the message with that id, deleted or not, regardless of its text; it is new if
    the line does not have the id. A wanted message without an id matches a message with the same role, name and
    content, if that message is not deleted and no wanted message has its id. The common beginning and the common end
    of both lists are matched first. Each message without an id in between matches the next equal message after the last
    match, or else the earliest equal one that is left.

    Then messages without an id that are between the same two matched neighbours in both lists are paired, by role and
    in order; the beginning and the end of the lists count as neighbours. A pair is a match with an edited text.

    If the result needs a new line, and some messages are in one list only, edits may have misled the comparison of
    texts. Then the lists are compared in two other ways: place by place, and if that gives no result, by the texts
    that occur exactly once in each list. The result of the second way is used only if it keeps the seqs of more
    messages than the original result, and does not have more new messages.

    After that, new messages at the end are matched with equal tombstones at the end of the line.
    """
    given = {message.message_id for message in wanted if message.message_id is not None}
    start = _match_in_turn(existing, wanted, given)
    rest = existing if not start else [message for message in existing if message.seq > start[-1]]
    end = _match_in_turn(reversed(rest), reversed(wanted[len(start) :]), given)[::-1]
    equal = _match_between(existing, wanted, given, start, end)
    matches = _pair_between(existing, wanted, equal)
    diverges_at = find_divergence(matches)
    if diverges_at is not None and end:
        # For example, the line is "hi", "go on", and the list is "hello", "go on", "bye", "go on". As the common end,
        # the last "go on" of the list matches. Without a common end, the first one matches, and no new line is needed.
        without_end = _pair_between(existing, wanted, _match_between(existing, wanted, given, start, []))
        if find_divergence(without_end) is None:
            matches, diverges_at = without_end, None
    removed = _find_removed(existing, matches)
    if diverges_at is not None and (removed or None in matches):  # otherwise messages have only moved
        if in_place := _match_by_position(existing, wanted, given, matches):
            return Alignment(tuple(in_place), (), None)  # each message has its place, so none is left to revive
        in_order = _match_in_order(existing, wanted, equal)
        if in_order and in_order.count(None) <= matches.count(None) and keeps_more(in_order, diverges_at):
            matches, removed, diverges_at = in_order, _find_removed(existing, in_order), find_divergence(in_order)
    return Alignment(tuple(_revive_end(existing, wanted, given, matches)), removed, diverges_at)


def _revive_end(
    existing: Sequence[Existing], wanted: Sequence[Wanted], given: set[str], matches: Sequence[int | None]
) -> list[int | None]:
    """Return `matches` with tombstones that the new messages at the end of the list match by role, name and text.

    Only the tombstones at the end of the line, after all of its other messages, are used. They are matched in order, up
    to the first new message that has an id, is blank, or equals none of them. This message is appended to the line, and
    so are all that follow it in the list, because a tombstone has a smaller seq than an appended message.
    """
    revived = list(matches)
    start = max((index for index, seq in enumerate(matches, start=1) if seq is not None), default=0)
    taken = [seq for seq in matches if seq is not None]
    last_seq = max([*taken, *(message.seq for message in existing if not message.deleted)], default=0)
    tombstones = iter([one for one in existing if one.seq > last_seq and one.message_id not in given])
    for index, message in enumerate(wanted[start:], start=start):
        if message.message_id is not None or not message.content.strip():
            break
        revived[index] = next((one.seq for one in tombstones if one.said == message.said), None)
        if revived[index] is None:
            break
    return revived


def _find_removed(existing: Iterable[Existing], matches: Iterable[int | None]) -> tuple[int, ...]:
    matched = set(matches)
    return tuple(message.seq for message in existing if not message.deleted and message.seq not in matched)


def _match_in_turn(existing: Iterable[Existing], wanted: Iterable[Wanted], given: set[str]) -> list[int]:
    """Match `wanted` in order with the line, until one does not match the line's next message; return the seqs.

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


def _group_unmatched(existing: Iterable[Existing], given: set[str], matched: set[int]) -> dict[Said, Unmatched]:
    """Return, by role, name and content, the messages that are not deleted, not matched and whose ids are not given."""
    seqs: defaultdict[Said, list[int]] = defaultdict(list)
    for message in existing:
        if not message.deleted and message.message_id not in given and message.seq not in matched:
            seqs[message.said].append(message.seq)
    return {said: Unmatched(of_said) for said, of_said in seqs.items()}


def _pair_between(
    existing: Sequence[Existing], wanted: Sequence[Wanted], matches: Sequence[int | None]
) -> list[int | None]:
    """Return `matches` with the pairs between the same matched neighbours added."""
    gaps = _find_gaps(existing, {seq for seq in matches if seq is not None})
    paired = list(matches)
    last_seq: float = 0
    indices: list[int] = []
    for index, seq in enumerate([*matches, inf]):
        if seq is None:
            indices.append(index)
            continue
        if indices and (old := gaps.get((last_seq, seq))):
            has_id = [wanted[unmatched].message_id is not None for unmatched in indices]
            if seq == inf and True in has_id:  # no new message may come before a paired one
                del indices[has_id.index(True) :]
            new = [unmatched for unmatched in indices if wanted[unmatched].message_id is None]
            pairs = pair_gap([m.said for m in old], [wanted[n].said for n in new], at_end=seq == inf)
            for unmatched, pair in zip(new, pairs, strict=True):
                paired[unmatched] = None if pair is None else old[pair].seq
        last_seq, indices = seq, []
    return paired


def _find_gaps(existing: Iterable[Existing], matched: set[int]) -> dict[tuple[float, float], list[Existing]]:
    """Return the messages that are neither deleted nor matched, by the matched seqs around them.

    At the beginning of the line, the seq before them is 0; at its end, the seq after them is infinity.
    """
    gaps: dict[tuple[float, float], list[Existing]] = {}
    last_seq: float = 0
    gap: list[Existing] = []
    for message in existing:
        if message.seq in matched:
            gaps[last_seq, message.seq] = gap
            last_seq, gap = message.seq, []
        elif not message.deleted:
            gap.append(message)
    gaps[last_seq, inf] = gap
    return gaps


def _match_by_position(
    existing: Iterable[Existing], wanted: Sequence[Wanted], given: set[str], matches: Sequence[int | None]
) -> list[int] | None:
    """Return, for each wanted message, the seq of the message at its position; None if `matches` are more likely.

    For example, the line has the texts "a", "b", "c", and the list has "d", "b", "a". By text, "d" is new and "a" has
    moved. By position, two messages were edited. Both lists must have the same roles in the same order, and a given id
    must be at its position. A message without an id whose name or text differs counts as an edit. `matches` are more
    likely if they have fewer new and moved messages than there are edits.
    """
    there = [message for message in existing if not message.deleted or message.message_id in given]
    if [message.role for message in there] != [message.role for message in wanted]:
        return None
    pairs = list(zip(wanted, there, strict=True))
    if any((new.message_id or old.message_id) != old.message_id for new, old in pairs):
        return None
    if any(new.message_id is None and old.message_id in given for new, old in pairs):
        return None
    edits = sum(new.message_id is None and new.said != old.said for new, old in pairs)
    return [old.seq for old in there] if edits <= len(matches) - len(find_ascending(matches)) else None


def _match_in_order(
    existing: Sequence[Existing], wanted: Sequence[Wanted], matches: Sequence[int | None]
) -> list[int | None] | None:
    """Return other matches, with all seqs ascending; None if an id or a text that both lists have would not be matched.

    If a message was edited so that its text equals that of another message, matching by text confuses the two. So here
    a message without an id is matched by text only if that text occurs exactly once in each list; the messages between
    two matches are paired by role and in order.
    """
    old = Counter(message.said for message in existing if not message.deleted)
    new = Counter(message.said for message in wanted)
    anchors = [
        seq if message.message_id is not None or old[message.said] == new[message.said] == 1 else None
        for seq, message in zip(matches, wanted, strict=True)
    ]
    ascending = find_ascending(anchors)
    if any(seq and seq not in ascending and message.message_id for seq, message in zip(anchors, wanted, strict=True)):
        return None  # an id matches its message wherever that is
    paired = _pair_between(existing, wanted, [seq if seq in ascending else None for seq in anchors])
    removed = set(_find_removed(existing, paired))
    left = {message.said for message in existing if message.seq in removed}
    added = (
        message.said for seq, message in zip(paired, wanted, strict=True) if seq is None and not message.message_id
    )
    return None if any(said in left for said in added) else paired
