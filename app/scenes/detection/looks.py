"""Decides when a search for a break starts, and on which messages the scene may end. Pure.

A look is one search, usually one request to the model. A message is judged once a look has decided whether the scene
ends on it. Looks go from the oldest message that is not judged to the newest one, so each message is judged once. A
look that finds a break has judged only the messages up to the break, so the next look reads the later ones again. Only
after a message has changed are some of the messages around it judged again (MOST_REJUDGED). A look also reads a few
judged messages before the others, as context.
"""

from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate

from app.scenes.detection.breaks import find_candidates

ENOUGH_MESSAGES = 12
"""A look starts when this many messages are not judged."""

ENOUGH_AFTER_PAUSE = 4
"""If there was a pause before or between the messages that are not judged, this many of them are enough for a look."""

CONTEXT_MESSAGES = 10
"""The maximum number of judged messages that are read as context."""

CONTEXT_TOKENS = 250
"""The maximum number of tokens of these messages together; the newest LEAST_CONTEXT are read in any case."""

LEAST_CONTEXT = 2

MOST_REJUDGED = 12
"""After a message has changed, at most this many judged messages, and the one before them, are judged again."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look reads, and on which messages the scene may end; all are seqs of eligible messages, in order.

    Attributes:
        context: Judged messages before the others.
        judged: The messages that the look judges.
        after: Messages after them that only give context. The next look judges them.
        candidates: Those of `judged` on which the scene may end.

    """

    context: Sequence[int]
    judged: Sequence[int]
    after: Sequence[int]
    candidates: Sequence[int]

    @property
    def read(self) -> list[int]:
        """All messages that the look reads."""
        return [*self.context, *self.judged, *self.after]


def choose_context(judged: Sequence[tuple[int, int]]) -> list[int]:
    """Return the seqs of the judged messages that the next look reads as context.

    A few long messages show the place, the time and the cast as well as many short ones do.

    Args:
        judged: The newest judged messages of the open scene, in order: the seq and the number of tokens of each.

    """
    newest = judged[-CONTEXT_MESSAGES:]
    sums = list(accumulate(tokens for _, tokens in reversed(newest)))
    fitting = bisect_right(sums, CONTEXT_TOKENS)
    return [seq for seq, _ in newest[-max(fitting, LEAST_CONTEXT) :]]


def plan_look(
    judged_before: Sequence[int],
    unjudged: Sequence[int],
    *,
    before: int,
    min_messages: int,
    max_messages: int,
    offset: int,
    lifted: AbstractSet[int],
) -> Look | None:
    """Return the next look, or None if no message can be judged yet.

    Args:
        judged_before: The newest judged messages of the open scene, as far as they are context (`choose_context`).
        unjudged: The oldest messages of the open scene that are not judged; the first `max_messages + offset` are
            enough.
        before: How many eligible messages the scene has before `unjudged`; more than `min_messages` need not be
            counted.
        min_messages: The minimum number of messages of a scene.
        max_messages: The maximum number of unjudged messages that a look reads.
        offset: How many messages have to follow a message that is judged.
        lifted: The messages from which a break was removed.

    """
    read = unjudged[:max_messages]
    settled = len(unjudged) - offset
    count = min(settled, len(read) - min(offset, max_messages // 2))
    if count <= 0:
        return None
    candidates = find_candidates(read[:count], before=before, min_messages=min_messages, offset=0, lifted=lifted)
    return Look(judged_before[-CONTEXT_MESSAGES:], read[:count], read[count:], candidates)


def is_look_due(
    unjudged: int, in_scene: int, *, min_messages: int, offset: int, after_pause: bool, cut_waits: bool
) -> bool:
    """Return whether a look starts.

    Args:
        unjudged: How many messages of the open scene are not judged.
        in_scene: How many messages the open scene has.
        min_messages: The minimum number of messages of a scene.
        offset: How many messages have to follow a message that is judged.
        after_pause: Whether the conversation has paused since the last look.
        cut_waits: Whether a forced cut waits for looks.

    """
    if cut_waits:
        return unjudged > offset
    enough = ENOUGH_AFTER_PAUSE if after_pause else ENOUGH_MESSAGES
    return unjudged >= max(enough, offset + 1) and in_scene >= min_messages + offset


def judged_after_change(judged_seq: int, changed: Sequence[int]) -> int:
    """Return the last seq that is still judged after the messages `changed` (seqs in order) have changed.

    A scene can end on the message before a changed message, so that message is judged again, too. A changed message
    that is MOST_REJUDGED seqs or more before `judged_seq` has no effect: a change of one old message rarely changes
    where a scene ends, and judging everything after that message again would cost more than it finds.
    """
    touched = [seq - 2 for seq in changed if judged_seq - MOST_REJUDGED < seq <= judged_seq + 1]
    return max(min([judged_seq, *touched]), 0)
