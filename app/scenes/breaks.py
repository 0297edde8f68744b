"""Where a scene may end, and where it ends if there is no model. Pure.

A break is on the last message of a scene. A search for one considers only breaks that make the scene long enough, and
never the newest messages, which only give context.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import pairwise

LONGEST_ANSWER_PAUSE = timedelta(hours=4)
"""A shorter pause between two messages is a late answer. Without a model, a pause of this length ends a scene, because
people who sleep, work or travel come back to another one."""


def find_candidates(
    seqs: Sequence[int], *, before: int, min_messages: int, offset: int, lifted: AbstractSet[int]
) -> list[int]:
    """Return the seqs on which the open scene may end.

    Args:
        seqs: Its newest eligible messages, in order.
        before: How many eligible messages it has before these; need not be counted beyond `min_messages`.
        min_messages: The fewest eligible messages of a scene.
        offset: How many of the newest messages only give context.
        lifted: The seqs from which a break was removed.

    """
    judged = seqs[: max(len(seqs) - offset, 0)]
    return [seq for count, seq in enumerate(judged, start=before + 1) if count >= min_messages and seq not in lifted]


def object_to(break_at: int | None, candidates: Sequence[int]) -> str | None:
    """Return why an answer is not allowed, as the end of a sentence, or None if it is allowed."""
    if break_at is None or break_at in candidates:
        return None
    if break_at > candidates[-1]:
        return f"{break_at} is one of the messages that only give context, or none of them"
    return f"{break_at} is not one of the possible answers"


def find_pause(
    seqs: Sequence[int], sent_at: Mapping[int, datetime], candidates: Sequence[int], offset: int
) -> tuple[int, timedelta] | None:
    """Return the candidate before the longest pause, with its length, or None if no pause is long enough.

    Args:
        seqs: The open scene's newest eligible messages, in order.
        sent_at: When each of them was sent.
        candidates: Those of them on which the scene may end.
        offset: How many of the newest messages only give context; a pause before one of them does not count yet.

    """
    judged, possible = seqs[: max(len(seqs) - offset, 0)], frozenset(candidates)
    pauses = [(sent_at[after] - sent_at[seq], seq) for seq, after in pairwise(judged) if seq in possible]
    long = [(pause, seq) for pause, seq in pauses if pause >= LONGEST_ANSWER_PAUSE]
    if not long:
        return None
    pause, seq = max(long, key=lambda found: found[0])
    return seq, pause
