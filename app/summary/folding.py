"""Decides which messages are folded into the summary next, and onto which version. Pure.

A fold ends where the history will begin after the next cut, so that the summary and the history neither overlap nor
leave a gap. The history begins at the anchor, a seq. If a forced cut (`app/history/cut.py`) removes messages from the
history before they are folded, they are then folded up to the anchor.
"""

from collections.abc import Sequence

from app.chats.head import Sent
from app.chats.ranges import Range
from app.history.cut import find_target
from app.narratives.chain import Chain

MOST_MESSAGES = 40
"""The maximum number of messages in one fold: as many as cheap models still read well."""


def keep_before(chain: Chain, begins_seq: int) -> Chain | None:
    """Return the chain up to its latest valid version that ends before `begins_seq`, where the history begins.

    Returns None if the whole chain may stay: it covers nothing from `begins_seq` on, or a person wrote one of the
    versions that would be left out.
    """
    base = chain.latest_valid(begins_seq)
    base_seq = base.last_unit if base else 0
    has_written = any(link.origin == "person" for link in chain.links if link.last_unit > base_seq)
    if chain.covered < begins_seq or has_written:
        return None
    return Chain([link for link in chain.links if base and link.version <= base.version])


def find_due_end(uncovered: Sequence[Sent], anchor_seq: int, until_seq: int) -> int | None:
    """Return the seq up to which all messages are to be folded, even if they are few, or None if there is none.

    Messages that have left the history have priority: the fold ends before the anchor even if a cut waits.

    Args:
        uncovered: The messages after the latest valid version, in seq order, including those that auto-hide has hidden.
            The newest may be missing in a long chat.
        anchor_seq: Where the history begins.
        until_seq: A cut waits until everything up to this seq is folded; 0 if no cut waits.

    """
    if not uncovered:
        return None
    return next((end_seq for end_seq in (anchor_seq - 1, until_seq) if uncovered[0].seq <= end_seq), None)


def choose_range_up_to(end_seq: int, uncovered: Sequence[Sent], covered_seq: int) -> Range:
    """Return the range to fold next so that a version ends at `end_seq`; if the range is long, its first part.

    Args:
        end_seq: At or after the first uncovered message.
        uncovered: As for `find_due_end`.
        covered_seq: As for `choose_range_over`.

    """
    return covered_seq + 1, _end_of_first_part(uncovered, end_seq)


def choose_range_over(uncovered: Sequence[Sent], covered_seq: int, *, threshold: int, keep: int) -> Range | None:
    """Return the range to fold next if enough messages are uncovered, else None; if the range is long, its first part.

    Args:
        uncovered: The sent messages after the latest valid version, in seq order. If there are more of them than the
            function `reach` returns, the newest may be missing.
        covered_seq: The last seq that this version covers.
        threshold: The maximum number of uncovered messages that need no fold.
        keep: How many of the newest messages are not folded.

    """
    if len(uncovered) <= threshold:
        return None
    target = find_target((sent.seq for sent in uncovered), uncovered, keep)
    if target is None or target <= uncovered[0].seq:
        return None
    return covered_seq + 1, _end_of_first_part(uncovered, target - 1)


def reach(threshold: int, keep: int) -> int:
    """Return how many uncovered messages are enough to choose a range."""
    return MOST_MESSAGES + max(threshold, keep) + 1


def _end_of_first_part(uncovered: Sequence[Sent], end_seq: int) -> int:
    """Return the last seq of a fold that is to reach `end_seq`.

    The fold takes at most MOST_MESSAGES, and ends before a tool call whose result it would not include. If this would
    leave no message to fold, it ends between the call and the result.
    """
    if sum(1 for sent in uncovered if sent.seq <= end_seq) <= MOST_MESSAGES:
        return end_seq
    target = find_target((sent.seq for sent in uncovered), uncovered, len(uncovered) - MOST_MESSAGES)
    if target is None or target <= uncovered[0].seq:
        target = uncovered[MOST_MESSAGES].seq
    return target - 1
