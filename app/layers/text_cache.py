"""Remembers the results of pure functions of long texts in this process.

A result depends only on its key, so it never becomes outdated.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from app.layers.recently_used import RecentlyUsed

Result = TypeVar("Result")


class TextCache(Generic[Result]):
    """The results that were used last. Thread-safe.

    Args:
        max_chars: The maximum number of characters of all texts whose results are kept. The result of a longer text is
            computed every time.

    """

    def __init__(self, max_chars: int) -> None:
        self._kept = RecentlyUsed[tuple[str, Hashable], tuple[Result]](max_chars)

    def get(self, text: str, compute: Callable[[], Result], *, given: Hashable = None) -> Result:
        """Return what `compute` returned for this text; `given` is everything else that its result depends on.

        The result is shared by all callers, so it must not be changed.
        """
        key = (text, given)
        kept = self._kept.find(key)
        if kept is not None:
            return kept[0]
        result = compute()
        self._kept.keep(key, (result,), len(text))
        return result

    def __len__(self) -> int:
        """Return the number of results that are kept."""
        return len(self._kept)
