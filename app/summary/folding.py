"""Which messages are folded into the summary next. Pure.

The summary keeps step with the cut: a fold ends where the history is to begin, so that the two neither overlap nor
leave anything out. What has left the history before it was folded, behind a forced cut, is folded up to the anchor.
"""

from collections.abc import Sequence

from app.chats.cut import Sent, find_target

MOST_MESSAGES = 40
"""So many messages at most are folded at once: what cheap models still read well."""


def choose_range(
    uncovered: Sequence[Sent], covered_seq: int, *, threshold: int, keep: int, until_seq: int
) -> tuple[int, int] | None:
    """The range (both inclusive) that is to be folded next, or None.

    Args:
        uncovered: The messages behind the newest true version that can be sent, or up to `until_seq` are hidden by
            scenes alone, in seq order; the newest may be missing where there are more than `reach` of them.
        covered_seq: Up to here the summary tells of everything.
        threshold: So many uncovered messages need no fold.
        keep: The newest so many are never folded while they are in the history.
        until_seq: What stands before the history, or will after a cut that waits: everything up to here is to be
            folded, however few messages that are; but at once no more than MOST_MESSAGES, and a tool call that
            reaches over them.

    """
    late = [sent for sent in uncovered if sent.seq <= until_seq]
    if late:
        end_seq = until_seq
    elif len(uncovered) > threshold:
        target = find_target((sent.seq for sent in uncovered), uncovered, keep)
        if target is None or target <= uncovered[0].seq:
            return None
        end_seq = target - 1
    else:
        return None
    folded = [sent for sent in uncovered if sent.seq <= end_seq]
    if len(folded) > MOST_MESSAGES:
        end_seq = _first_part_end(uncovered)
    return covered_seq + 1, end_seq


def reach(threshold: int, keep: int) -> int:
    """How many uncovered messages tell all that `choose_range` asks."""
    return MOST_MESSAGES + max(threshold, keep) + 1


def _first_part_end(uncovered: Sequence[Sent]) -> int:
    """Where the first part of many messages ends: before a tool call that reaches over it, if any."""
    behind = len(uncovered) - MOST_MESSAGES
    target = find_target((sent.seq for sent in uncovered), uncovered, behind)
    if target is None or target <= uncovered[0].seq:
        target = uncovered[MOST_MESSAGES].seq
    return target - 1
