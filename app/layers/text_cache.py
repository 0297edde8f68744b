"""Remembers the results of pure functions of long texts in this process.

A result depends only on its key, so it never becomes wrong.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class TextCache(Generic[Result]):
    """The results that were used last. Thread-safe.

    Args:
        max_chars: How many characters the texts of the results that are kept may have together. A longer text is
            computed every time.

    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._kept: OrderedDict[tuple[str, Hashable], Result] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str, compute: Callable[[], Result], *, given: Hashable = None) -> Result:
        """Return what `compute` returned for this text; `given` is everything else that its result depends on.

        The result is shared by all callers, so it must not be changed.
        """
        key = (text, given)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        result = compute()
        with self._lock:
            if key not in self._kept and len(text) <= self._max_chars:
                self._kept[key] = result
                self._chars += len(text)
                while self._chars > self._max_chars:
                    (oldest, _), _ = self._kept.popitem(last=False)
                    self._chars -= len(oldest)
        return result

    def __len__(self) -> int:
        """Return the number of results that are kept."""
        return len(self._kept)
