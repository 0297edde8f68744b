"""Decides when the history is cut, and where. Pure.

The history is the messages that are sent word for word. The anchor is the seq at which it begins, and an edge is a seq
at which it may begin after a cut. A window that slides with every message would change the prompt's prefix in every
turn, and the provider could not cache it. Instead, the history grows from its anchor for a while. It is then cut in one
step, at an edge, and only when the memory layers cover the messages before the edge. A history of `max_messages`
messages or more is overdue: it is cut even if the layers do not cover the messages before the edge, unless a layer
still searches for edges. If no edge is possible, it is cut at a message of the user or, failing that, at any message.

Cuts differ in their reason (`CutReason`):

- A *full* cut: the history has more than `keep_messages` + `grow_messages` messages.
- A *forced* cut: the history is overdue, and a full cut is not possible yet.
- A *cold* cut: before the newest append, the chat paused for so long that the provider no longer caches the prompt.
- A *session's* cut: a session ended.
- A *rewind*: messages were removed or hidden, and too few are left, so the anchor moves back.

`anchor.py` reads the data for a decision and applies the decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.chats.head import CutReason, Sent
from app.chats.ranges import is_inside, join_ranges
from app.messages.calls import pair_calls

LINE_FIRST_SEQ = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """The anchor moves to `at_seq`, leaving `left` messages."""

    at_seq: int
    reason: CutReason
    left: int


@dataclass(frozen=True, slots=True)
class Skip:
    """The anchor moves to `at_seq` past messages that are not sent, which does not count as a cut."""

    at_seq: int


@dataclass(frozen=True, slots=True)
class AwaitCoverage:
    """A full cut or a session's cut to `target` waits until every layer covers the messages before it."""

    target: int


@dataclass(frozen=True, slots=True)
class AwaitEdge:
    """A full cut waits for an edge that leaves enough messages.

    A layer may add such an edge when its work ends.

    Attributes:
        recheck_messages: The length that the history must reach before a cut at its first edge leaves `keep_messages`
            messages. The append that reaches this length decides again. None if the history has no edge after its
            beginning, or if a cut at the first one leaves enough already. While the history is overdue, every append
            decides again.

    """

    recheck_messages: int | None = None


@dataclass(frozen=True, slots=True)
class AwaitAppend:
    """The next append decides again on a full cut, because the work of layers cannot make it possible earlier."""


Wait = AwaitCoverage | AwaitEdge | AwaitAppend


@dataclass(frozen=True, slots=True)
class CutCursor:
    """The state of waiting cuts that is stored in the line's head.

    Attributes:
        recheck_messages: See AwaitEdge.
        session_seq: If the cut at the break of a session waits, the seq at which the next session begins; else None.

    """

    recheck_messages: int | None = None
    session_seq: int | None = None

    @classmethod
    def from_json(cls, stored: int | Mapping[str, int | None] | None) -> "CutCursor":
        """Return the cursor that `to_json` was called on."""
        return cls(stored["recheck"], stored["session"]) if isinstance(stored, Mapping) else cls(stored)

    def to_json(self) -> int | dict[str, int | None] | None:
        """Return the value to store in the line's row; None if there is nothing to store."""
        if self.session_seq is None:
            return self.recheck_messages
        return {"recheck": self.recheck_messages, "session": self.session_seq}

    def is_reached(self, messages: int) -> bool:
        """Return whether a history of `messages` messages has reached `recheck_messages`."""
        return self.recheck_messages is not None and messages >= self.recheck_messages


@dataclass(frozen=True, slots=True)
class CutRules:
    """The settings that decide on cuts.

    Attributes:
        keep_messages: A cut leaves at least this many messages.
        max_messages: If the history has this many messages or more, it is cut even where no memory covers them.
        layers_add_edges: Whether an edge can appear when a job of a layer ends, not only with new messages.

    """

    keep_messages: int
    max_messages: int
    layers_add_edges: bool

    def is_overdue(self, messages: int) -> bool:
        """Return whether a history of `messages` messages is cut even if the layers do not cover it."""
        return messages >= self.max_messages


@dataclass(frozen=True)
class History:
    """The messages that are sent, and the data that decide on a cut of them.

    Attributes:
        rules: The settings.
        from_seq: The seq at which the history begins, usually the anchor. A cut goes to a later seq.
        sent: The messages, in seq order.
        edges: The seqs at which the history may begin after a cut, in any order.
        uncounted: How many of the newest messages do not count towards `keep_messages`; a cut leaves them in addition.

    """

    rules: CutRules
    from_seq: int
    sent: Sequence[Sent]
    edges: Sequence[int]
    uncounted: int = 0

    @cached_property
    def target(self) -> int | None:
        """The newest edge after `from_seq` that leaves enough messages, or None."""
        target = find_target(self.edges, self.sent, self.rules.keep_messages + self.uncounted)
        return target if target is not None and target > self.from_seq else None

    def find_covered_target(self, covered_seq: int | None) -> int | None:
        """Return the target if the layers cover the messages before it; `covered_seq` is as in `can_cut`."""
        return self.target if can_cut(self.target, covered_seq, self.from_seq) else None

    @property
    def recheck_messages(self) -> int | None:
        """The length that the history must reach before a cut at its first edge leaves `keep_messages` messages.

        None if the history has no edge after its beginning, or if a cut at the first one leaves enough already.
        """
        next_edge = min((edge for edge in self.edges if edge > self.from_seq), default=None)
        if next_edge is None:
            return None
        missing = self.rules.keep_messages - count_from(self.sent, next_edge)
        return len(self.sent) + missing if missing > 0 else None

    def after(self, cut: Cut) -> "History":
        """Return the history that `cut` leaves."""
        return replace(self, from_seq=cut.at_seq, sent=[sent for sent in self.sent if sent.seq >= cut.at_seq])

    def cut_at(self, seq: int, reason: CutReason) -> Cut:
        """Return the cut to `seq`."""
        return Cut(seq, reason, count_from(self.sent, seq))


def is_full(messages: int, *, keep: int, grow: int) -> bool:
    """Return whether a history of `messages` messages has to be cut: it has more than `keep + grow`."""
    return messages > keep + grow


def is_decision_due(messages: int, rules: CutRules, cursor: CutCursor, *, waits: bool) -> bool:
    """Return whether an append decides on a cut of the full history; `messages` is its length after the append.

    A cut that already waits is decided on again only if the history is overdue or has reached `recheck_messages`.
    """
    return not waits or rules.is_overdue(messages) or cursor.is_reached(messages)


def decide_cold(history: History, covered_seq: int | None) -> Cut | None:
    """Decide on a cold cut, which does not wait. `covered_seq` is as in `can_cut`."""
    target = history.find_covered_target(covered_seq)
    return None if target is None else history.cut_at(target, "cold")


def decide_session(history: History, covered_seq: int | None) -> Cut | AwaitCoverage | None:
    """Decide on the cut at the break of a session; None if no edge leaves enough messages.

    The messages of the new session do not count (`history.uncounted`). `covered_seq` is as in `can_cut`.
    """
    if history.target is None:
        return None
    covered = history.find_covered_target(covered_seq)
    return AwaitCoverage(history.target) if covered is None else history.cut_at(covered, "session")


def decide_full(history: History, covered_seq: int | None) -> Cut | Wait:
    """Decide on a full cut, or on a forced one if the history is overdue. `covered_seq` is as in `can_cut`."""
    target = history.find_covered_target(covered_seq)
    if target is not None:
        return history.cut_at(target, "full")
    if not history.rules.is_overdue(len(history.sent)):
        return decide_wait(history, covered_seq)
    forced = find_forced_target(history.edges, history.sent, history.rules.keep_messages, history.from_seq)
    return AwaitEdge() if forced is None else history.cut_at(forced, "forced")


def decide_wait(history: History, covered_seq: int | None) -> Wait:
    """Return the wait of a full history that is not cut now. `covered_seq` is as in `can_cut`."""
    if history.target is None:
        return AwaitEdge(history.recheck_messages) if history.rules.layers_add_edges else AwaitAppend()
    is_covered = history.find_covered_target(covered_seq) is not None
    return AwaitAppend() if is_covered else AwaitCoverage(history.target)


def decide_rewind(newest: History) -> Cut | None:
    """Decide where the anchor moves back to so that enough messages are sent.

    `newest` holds the newest messages of the line, from `newest.from_seq` on. The line's first seq is always an edge.
    If no edge after `newest.from_seq` leaves enough messages, and `newest` begins at the line's first seq, the anchor
    moves there. If `newest` begins later, return None: the caller then reads further back. If the history would have
    `max_messages` or more after the move, return a forced cut instead, if one is possible.
    """
    if newest.target is None and newest.from_seq > LINE_FIRST_SEQ:
        return None
    rewind = newest.cut_at(newest.target or LINE_FIRST_SEQ, "rewind")
    if newest.rules.is_overdue(rewind.left):
        forced = find_forced_target(newest.edges, newest.sent, newest.rules.keep_messages, rewind.at_seq)
        if forced is not None:
            return newest.cut_at(forced, "forced")
    return rewind


def decide_move(wanted: Cut, anchor_seq: int, last_cut_seq: int | None) -> Cut | Skip | None:
    """Decide how the anchor moves to `wanted`; None if it is already there and no later cut is stored.

    A move back is a cut. The result is also a cut if `wanted` is before `last_cut_seq`, even if the anchor is already
    at `wanted`. This happens on a copy of the first part of a line: the copy still stores the last cut of that line,
    and the new cut replaces it. All other moves are skips, which go forward: `settle_anchor`, which calls this
    function, moves the anchor forward only past messages that are not sent.
    """
    if wanted.at_seq < anchor_seq or (last_cut_seq is not None and wanted.at_seq < last_cut_seq):
        return wanted
    return Skip(wanted.at_seq) if wanted.at_seq > anchor_seq else None


def every_nth_edge(first_seq: int, last_seq: int, n: int) -> range:
    """Return the edges at every seq ≡ 1 (mod n) in `first_seq…last_seq`, both inclusive."""
    return range(first_seq + (1 - first_seq) % n, last_seq + 1, n)


def find_target(edges: Iterable[int], history: Sequence[Sent], keep: int) -> int | None:
    """Return the newest edge that leaves at least `keep` messages of `history` (in seq order), or None.

    An edge that would separate a tool call from its result does not count.
    """
    if len(history) < keep:
        return None
    latest_seq = history[len(history) - keep].seq
    parting = join_ranges(sorted((call + 1, result) for call, result in pair_calls(history)))
    return max((edge for edge in edges if edge <= latest_seq and not is_inside(edge, parting)), default=None)


def find_forced_target(edges: Iterable[int], history: Sequence[Sent], keep: int, anchor_seq: int) -> int | None:
    """Return where a forced cut goes: the target if it is after the anchor, else the newest possible user message.

    If there is neither, it is the newest possible message of any role. The cut leaves at least `keep` messages. Return
    None if there is no such message.
    """
    target = find_target(edges, history, keep)
    if target is not None and target > anchor_seq:
        return target
    after_anchor = [sent for sent in history if sent.seq > anchor_seq]
    of_user = find_target((sent.seq for sent in after_anchor if sent.is_user), history, keep)
    return of_user if of_user is not None else find_target((sent.seq for sent in after_anchor), history, keep)


def count_from(history: Sequence[Sent], seq: int) -> int:
    """Return how many messages of `history` are at or after `seq`."""
    return sum(1 for sent in history if sent.seq >= seq)


def can_cut(target: int | None, covered_seq: int | None, anchor_seq: int) -> bool:
    """Return whether a cut to `target` is possible: it moves the anchor forward, and the layers cover all before it.

    `covered_seq` is the last seq that every layer covers, or None if no layer has to cover messages. A forced cut does
    not need this coverage.
    """
    return target is not None and target > anchor_seq and (covered_seq is None or covered_seq >= target - 1)
