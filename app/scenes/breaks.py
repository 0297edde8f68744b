"""Where a scene may end, and where it does without a model. Pure.

A break sits on the last message of a scene. One that is looked for has to leave a scene that is long enough, and the
newest messages only show how it goes on.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import pairwise

LONGEST_ANSWER_PAUSE = timedelta(hours=4)
"""A pause of this length between two messages is an answer that came late; a longer one, without a model to ask, is
taken for the end of a scene: people who sleep, work or travel come back to another one."""


def find_candidates(
    seqs: Sequence[int], *, before: int, min_messages: int, offset: int, lifted: AbstractSet[int]
) -> list[int]:
    """The seqs on which the open scene may end.

    Args:
        seqs: Its newest eligible messages, in order.
        before: How many eligible ones it has ahead of these, counted up to `min_messages`.
        min_messages: A scene has at least so many eligible messages.
        offset: The newest so many only give context.
        lifted: Where a person has lifted a break.

    """
    judged = seqs[: max(len(seqs) - offset, 0)]
    return [seq for count, seq in enumerate(judged, start=before + 1) if count >= min_messages and seq not in lifted]


def object_to(break_at: int | None, candidates: Sequence[int]) -> str | None:
    """What is wrong with an answer, as the end of a sentence; None if nothing is."""
    if break_at is None or break_at in candidates:
        return None
    if break_at > candidates[-1]:
        return f"{break_at} is one of the messages that only give context, or none of them"
    return f"{break_at} is not one of the possible answers"


def find_pause(
    seqs: Sequence[int], sent_at: Mapping[int, datetime], candidates: Sequence[int], offset: int
) -> tuple[int, timedelta] | None:
    """The candidate behind which the longest pause begins, with its length; None where no pause is long enough.

    Args:
        seqs: The open scene's newest eligible messages, in order.
        sent_at: When each of them was said.
        candidates: Those of them on which the scene may end.
        offset: The newest so many only give context, so no pause before one of them counts yet.

    """
    judged, possible = seqs[: max(len(seqs) - offset, 0)], frozenset(candidates)
    pauses = [(sent_at[after] - sent_at[seq], seq) for seq, after in pairwise(judged) if seq in possible]
    long = [(pause, seq) for pause, seq in pauses if pause >= LONGEST_ANSWER_PAUSE]
    if not long:
        return None
    pause, seq = max(long, key=lambda found: found[0])
    return seq, pause
