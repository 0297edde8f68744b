"""Which messages are folded into the summary next, and onto which version. Pure.

The summary keeps step with the cut: a fold ends where the history is to begin, so that the two neither overlap nor
leave anything out. What left the history before it was folded, in a forced cut, is folded up to the anchor.
"""

from collections.abc import Sequence

from app.chats.cut import Sent, find_target
from app.chats.ranges import Range
from app.narratives.chain import Chain

MOST_MESSAGES = 40
"""At most this many messages are folded at once: what cheap models still read well."""


def keep_before(chain: Chain, begins_seq: int) -> Chain | None:
    """Return the chain up to its latest valid version that ends before `begins_seq`, where the history begins.

    None if the whole chain may stay: it covers nothing from there on, or a person wrote a version that would go.
    """
    base = chain.newest_true(begins_seq)
    base_seq = base.last_place if base else 0
    has_written = any(link.origin == "person" for link in chain.links if link.last_place > base_seq)
    if chain.covered < begins_seq or has_written:
        return None
    return Chain([link for link in chain.links if base and link.version <= base.version])


def find_due_end(uncovered: Sequence[Sent], anchor_seq: int, until_seq: int) -> int | None:
    """Return the seq up to which everything is to be folded, however few messages that are; None if there is none.

    Messages that have left the history come first: a version ends before the anchor, whatever a cut waits for.

    Args:
        uncovered: The messages that the summary does not cover, in seq order.
        anchor_seq: Where the history begins.
        until_seq: A cut waits until everything up to here is folded; 0 if none does.

    """
    if not uncovered:
        return None
    return next((end_seq for end_seq in (anchor_seq - 1, until_seq) if uncovered[0].seq <= end_seq), None)


def choose_range_up_to(end_seq: int, uncovered: Sequence[Sent], covered_seq: int) -> Range:
    """Return the range to fold next so that a version ends at `end_seq`: the first part of it if it is long.

    Args:
        end_seq: At or after the first uncovered message.
        uncovered: As for `choose_range_over`, and what scenes hide besides.
        covered_seq: As for `choose_range_over`.

    """
    return covered_seq + 1, _end_of_first_part(uncovered, end_seq)


def choose_range_over(uncovered: Sequence[Sent], covered_seq: int, *, threshold: int, keep: int) -> Range | None:
    """Return the range to fold next because enough messages are uncovered: the first part of it if it is long.

    Args:
        uncovered: The messages after the latest valid version that are sent, in seq order; the newest may be missing
            if there are more than `reach` of them.
        covered_seq: The last seq that this version covers.
        threshold: This many uncovered messages need no fold.
        keep: This many of the newest are left.

    """
    if len(uncovered) <= threshold:
        return None
    target = find_target((sent.seq for sent in uncovered), uncovered, keep)
    if target is None or target <= uncovered[0].seq:
        return None
    return covered_seq + 1, _end_of_first_part(uncovered, target - 1)


def reach(threshold: int, keep: int) -> int:
    """Return how many uncovered messages are enough to choose a range by."""
    return MOST_MESSAGES + max(threshold, keep) + 1


def _end_of_first_part(uncovered: Sequence[Sent], end_seq: int) -> int:
    """Return where a fold ends that is to go up to `end_seq`.

    It takes MOST_MESSAGES at most, and ends before a tool call whose result it would leave. If that leaves nothing,
    it ends between them.
    """
    if sum(1 for sent in uncovered if sent.seq <= end_seq) <= MOST_MESSAGES:
        return end_seq
    target = find_target((sent.seq for sent in uncovered), uncovered, len(uncovered) - MOST_MESSAGES)
    if target is None or target <= uncovered[0].seq:
        target = uncovered[MOST_MESSAGES].seq
    return target - 1
