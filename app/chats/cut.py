"""When the history is cut back, and where. Pure.

A window that slides with every message changes the prompt's prefix every turn and pays for all of it.
So the history grows from its anchor for a while and is then cut back at once, at an edge, and only when
what stands for the old text is there. Only a history that has outgrown its patience is cut regardless.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.chats.ranges import is_inside, join_ranges

Reason = Literal["full", "cold", "forced", "session", "rewind"]


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the history, as far as the cut looks at it.

    Attributes:
        seq: Its place on the line.
        is_user: Whether the user says it.
        calls: The ids of the tool calls it makes.
        answers: The id of the tool call it is the result of.

    """

    seq: int
    is_user: bool = False
    calls: tuple[str, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The anchor moves to `at_seq`, leaving `left` messages."""

    at_seq: int
    reason: Reason
    left: int


def every_nth_edge(first_seq: int, last_seq: int, n: int) -> range:
    """Edges at every seq ≡ 1 (mod n) in `first_seq…last_seq`, both inclusive."""
    return range(first_seq + (1 - first_seq) % n, last_seq + 1, n)


def find_target(edges: Iterable[int], history: Sequence[Sent], keep: int) -> int | None:
    """The newest edge that leaves at least `keep` messages of `history` (in seq order), or None.

    An edge that would part a tool call from its result is none.
    """
    if len(history) < keep:
        return None
    latest_seq = history[len(history) - keep].seq
    parting = join_ranges(sorted((call + 1, result) for call, result in _pair_tool_calls(history)))
    return max((edge for edge in edges if edge <= latest_seq and not is_inside(edge, parting)), default=None)


def find_forced_target(edges: Iterable[int], history: Sequence[Sent], keep: int, anchor_seq: int) -> int | None:
    """Where a forced cut goes: the target if it lies after the anchor, else the newest user message, else any."""
    target = find_target(edges, history, keep)
    if target is not None and target > anchor_seq:
        return target
    after_anchor = [sent for sent in history if sent.seq > anchor_seq]
    of_user = find_target((sent.seq for sent in after_anchor if sent.is_user), history, keep)
    return of_user if of_user is not None else find_target((sent.seq for sent in after_anchor), history, keep)


def find_rewind_target(edges: Iterable[int], sent_before: Sequence[Sent], keep: int, first_seq: int) -> int:
    """Where the anchor goes back to when fewer than `keep` are left; the line's first seq is always an edge."""
    target = find_target(edges, sent_before, keep)
    return first_seq if target is None else target


def count_from(history: Sequence[Sent], seq: int) -> int:
    """How many messages of `history` are at or after `seq`."""
    return sum(1 for sent in history if sent.seq >= seq)


def judge_whole(target: int | None, settled_seq: int | None, anchor_seq: int) -> bool:
    """Whether a full or cold cut to `target` may happen: it moves forward, and all before it is settled.

    `settled_seq` is the last seq that every layer stands for, or None when no layer has to.
    """
    return target is not None and target > anchor_seq and (settled_seq is None or settled_seq >= target - 1)


def _pair_tool_calls(history: Iterable[Sent]) -> list[tuple[int, int]]:
    """The seqs of each tool call and its result: the nearest open call before it, because models use an id again."""
    called: dict[str, int] = {}
    pairs = []
    for sent in history:
        if sent.answers in called:
            pairs.append((called.pop(sent.answers), sent.seq))
        called.update(dict.fromkeys(sent.calls, sent.seq))
    return pairs
