"""Caches of this process. Their size is bounded, and entries that are not used are dropped after 5 to 10 minutes.

What is cached can contain words of conversations, so it must not stay in memory long after its chat was erased.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

AGE_S = 300.0
"""The interval at which the caches of the process drop old entries. An unused entry stays for at most two intervals."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Kept(NamedTuple, Generic[Value]):
    value: Value
    size: int


_caches: WeakSet["RecentlyUsed[Any, Any]"] = WeakSet()


class RecentlyUsed(Generic[Key, Value]):
    """The entries of a cache that were used last. Thread-safe.

    Args:
        max_size: The maximum of the sizes of all entries together. A larger entry is not kept.

    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._size = 0
        self._kept: OrderedDict[Key, _Kept[Value]] = OrderedDict()
        self._used: set[Key] = set()
        self._lock = Lock()
        _caches.add(self)

    def find(self, key: Key) -> Value | None:
        """Return the value of a key, or None if it is not kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            self._used.add(key)
            return kept.value

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value in place of the former one. If there is no room, drop the least recently used entries."""
        with self._lock:
            self._drop(key)
            if size > self._max_size:
                return
            self._kept[key] = _Kept(value, size)
            self._used.add(key)
            self._size += size
            while self._size > self._max_size:
                self._drop(next(iter(self._kept)))

    def drop(self, key: Key) -> None:
        """Drop the entry of a key, if there is one."""
        with self._lock:
            self._drop(key)

    def age(self) -> None:
        """Drop the entries that were not used since the last call."""
        with self._lock:
            for key in [key for key in self._kept if key not in self._used]:
                self._drop(key)
            self._used.clear()

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._kept)

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= kept.size
            self._used.discard(key)


def age_all() -> None:
    """Let all caches of the process age."""
    for cache in list(_caches):
        cache.age()


async def keep_aging(every_s: float = AGE_S) -> None:
    """Let all caches of the process age every `every_s` seconds, until the task is cancelled."""
    while True:
        await asyncio.sleep(every_s)
        age_all()
