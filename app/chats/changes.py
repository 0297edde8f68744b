"""What has changed on a line, and what that does to the counts in its head. Pure.

Messages are changed in place, hidden, or taken away; the end of a line can be cut off. What follows from it
(stale memos, an anchor that has to go back) is deferred with one of these and runs in the same transaction.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.chats.eligibility import is_sent
from app.chats.head import Head, RangeMessage

Pair = tuple[RangeMessage, RangeMessage]
"""A message as it was, and as it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """Messages of a line are other than they were; deferred as `messages_changed`.

    Attributes:
        head: The head, with the change counted in; followers change it, it is written last.
        pairs: Each changed message as it was and as it is, in seq order.
        now: The service's time.

    """

    head: Head
    pairs: Sequence[Pair]
    now: datetime

    @property
    def alters_history(self) -> bool:
        """Whether a message is sent no longer, or again."""
        return any(is_sent(before) != is_sent(after) for before, after in self.pairs)

    @property
    def by_scenes(self) -> bool:
        """Whether scenes have hidden a message, or shown one again."""
        return any("scenes" in (before.hidden_by, after.hidden_by) for before, after in self.pairs)


@dataclass(frozen=True, slots=True)
class Shortening:
    """A line has been cut off: nothing from `from_seq` on is left; deferred as `line_shortened`.

    Attributes:
        head: The head, counted without what was cut off; followers change it, it is written last.
        from_seq: The first seq that is gone.
        now: The service's time.

    """

    head: Head
    from_seq: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Move:
    """A line has taken up messages that stand on another line of the chat elsewhere; deferred as `messages_moved`.

    Attributes:
        head: The head; followers change it, it is written last.
        from_line_id: The other line.
        kept_seq: Up to here both lines have the same messages in the same places.
        seqs: (seq there, seq here) of each message that has moved, in the order of the first.
        now: The service's time.

    """

    head: Head
    from_line_id: UUID
    kept_seq: int
    seqs: Sequence[tuple[int, int]]
    now: datetime

    def seq_here(self, seq: int) -> int:
        """Where something stands here that stands behind `seq` on the other line: behind the message it followed."""
        before = bisect_right(self.seqs, seq, key=lambda pair: pair[0])
        return min(seq, self.kept_seq) if before == 0 else self.seqs[before - 1][1]


def says_otherwise(pair: Pair) -> bool:
    """Whether a message says something else than before, or to others.

    That scenes hide it or show it again is neither: they hide only what they tell of, and what tells of it goes on.
    """
    before, after = (message._replace(hidden_by=None) if message.hidden_by == "scenes" else message for message in pair)
    return before != after


def count_changes(head: Head, pairs: Iterable[Pair]) -> None:
    """Count `pairs` into `head` (changed in place), but for turns, which only their neighbours tell."""
    for before, after in pairs:
        head.message_count += before.deleted - after.deleted
        head.token_count += _counted_tokens(after) - _counted_tokens(before)
        if after.seq >= head.anchor_seq:
            head.history_messages += is_sent(after) - is_sent(before)


def _counted_tokens(message: RangeMessage) -> int:
    return 0 if message.deleted else message.tokens
