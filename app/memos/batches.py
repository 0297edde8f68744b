"""Batches: the ranges of messages that memos cover. Pure.

A message is eligible if memories may be made from it (`app/chats/eligibility.py`).

A batch is formed once, by the append that fills it, or by a backfill. A batch that an append fills begins right after
the previous batch (it can begin later if memos were off in between), and ends at its last eligible message. A batch
keeps the size and the filters that the settings had when it got its first eligible message. Later changes of the
settings apply to the next batches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from app.chats.eligibility import Filters, Hashed, Marked, is_eligible


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """The batch that is still filling.

    Attributes:
        first_seq: The first seq that it covers.
        size: The number of eligible messages that fill it.
        filters: The filters that decide which of its messages are eligible.
        count: The number of eligible messages that it has.

    """

    first_seq: int
    size: int
    filters: Filters
    count: int = 0

    def add(self, eligible: int) -> "OpenBatch":
        """Return the batch with `eligible` more messages."""
        return OpenBatch(self.first_seq, self.size, self.filters, self.count + eligible)

    def to_json(self) -> dict[str, Any]:
        """Return the batch as it is stored on the line's row."""
        return {
            "first_seq": self.first_seq,
            "size": self.size,
            "filters": self.filters.to_json(),
            "count": self.count,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "OpenBatch":
        """Return the batch that `to_json` serialised."""
        return cls(stored["first_seq"], stored["size"], Filters.from_json(stored["filters"]), stored["count"])


@dataclass(frozen=True, slots=True)
class Batch:
    """A formed batch: `first_seq…last_seq`, both inclusive, with the size and the filters by which it was filled."""

    first_seq: int
    last_seq: int
    size: int
    filters: Filters


class BatchCandidate(Marked, Protocol):
    """A message that can be eligible for a batch."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - a field


class BatchMessage(Hashed, Protocol):
    """A message that a batch can contain."""

    @property
    def message_id(self) -> str: ...  # noqa: D102 - a field


def form_batches(
    open_batch: OpenBatch | None, messages: Iterable[BatchCandidate], *, size: int, filters: Filters
) -> tuple[list[Batch], OpenBatch | None]:
    """Fill batches with `messages` (in seq order).

    Args:
        open_batch: The batch that is filling; None before the first message.
        messages: The next messages of the line.
        size: How many eligible messages fill a batch that this call opens. If `open_batch` has no eligible message yet,
            `size` and `filters` replace its own.
        filters: The eligibility filters of the batches that this call opens.

    Returns:
        The batches that are full now, and the one that is filling.

    """
    formed: list[Batch] = []
    for message in messages:
        if open_batch is None or open_batch.count == 0:
            open_batch = OpenBatch(open_batch.first_seq if open_batch else message.seq, size, filters)
        if is_eligible(message, open_batch.filters):
            open_batch = open_batch.add(1)
            if open_batch.count >= open_batch.size:
                formed.append(Batch(open_batch.first_seq, message.seq, open_batch.size, open_batch.filters))
                open_batch = OpenBatch(message.seq + 1, size, filters)
    return formed, open_batch


def recount(open_batch: OpenBatch, pairs: Iterable[tuple[BatchCandidate, BatchCandidate]]) -> OpenBatch:
    """Return the open batch with its new count after messages have changed; `pairs` are each message before and after.

    The count can reach or exceed the size. The next append then reads the messages from `first_seq` on again, and forms
    batches of them.
    """
    inside = [(before, after) for before, after in pairs if after.seq >= open_batch.first_seq]
    filters = open_batch.filters
    more = sum(is_eligible(after, filters) - is_eligible(before, filters) for before, after in inside)
    return open_batch.add(more)
