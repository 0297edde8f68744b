"""Batches: which run of messages one memo covers. Pure.

A batch is formed once, in the append that fills it, from the seq after the former batch to its last eligible
message. It keeps the size and the filters that it was opened with: changed settings apply from the next one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from app.chats.eligibility import Filters, Marked, is_eligible


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """The batch that is still filling.

    Attributes:
        first_seq: Where it begins.
        size: How many eligible messages fill it.
        filters: What decides on eligibility in it.
        count: How many it has.

    """

    first_seq: int
    size: int
    filters: Filters
    count: int = 0

    def add(self, eligible: int) -> "OpenBatch":
        """The same batch with so many more."""
        return OpenBatch(self.first_seq, self.size, self.filters, self.count + eligible)

    def to_json(self) -> dict[str, Any]:
        """As the chat's row keeps it."""
        return {
            "first_seq": self.first_seq,
            "size": self.size,
            "filters": self.filters.to_json(),
            "count": self.count,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "OpenBatch":
        """Read what `to_json` wrote."""
        return cls(stored["first_seq"], stored["size"], Filters.from_json(stored["filters"]), stored["count"])


@dataclass(frozen=True, slots=True)
class Batch:
    """A formed batch: `first_seq…last_seq`, both inclusive, with what it was opened with."""

    first_seq: int
    last_seq: int
    size: int
    filters: Filters


class Placed(Marked, Protocol):
    """A message that knows its place."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - a field


PlacedMessage = TypeVar("PlacedMessage", bound=Placed)


def form_batches(
    open_batch: OpenBatch | None, messages: Iterable[Placed], *, size: int, filters: Filters
) -> tuple[list[Batch], OpenBatch | None]:
    """Fill batches with `messages` (in seq order).

    Args:
        open_batch: The one that is filling; None before the first message.
        messages: What comes next on the line.
        size: Eligible messages of every batch that opens from here on.
        filters: Likewise what decides on eligibility.

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


def recount(open_batch: OpenBatch, pairs: Iterable[tuple[Placed, Placed]]) -> OpenBatch:
    """The batch that is filling after messages have changed; `pairs` are these as they were and as they are.

    It can have more than it takes then: it is formed by the next append, as if they had been so from the start.
    """
    inside = [(before, after) for before, after in pairs if after.seq >= open_batch.first_seq]
    filters = open_batch.filters
    more = sum(is_eligible(after, filters) - is_eligible(before, filters) for before, after in inside)
    return open_batch.add(more)
