"""A list that counts how often its items are read."""

from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")


class CountedList(list[Item]):
    """A list whose `reads` is the number of items that were read by iterating over it. Its slices are usual lists."""

    reads = 0

    def __iter__(self) -> Iterator[Item]:
        """Return an iterator that counts."""
        for item in super().__iter__():
            self.reads += 1
            yield item
