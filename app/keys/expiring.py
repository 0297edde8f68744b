"""A cache whose entries expire. Pure."""

from datetime import datetime, timedelta
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ExpiringCache(Generic[Value]):
    """Values by name, each valid for `ttl_s` seconds. If there are `max_entries`, a new entry evicts the oldest one."""

    def __init__(self, *, ttl_s: float, max_entries: int) -> None:
        self._ttl = timedelta(seconds=ttl_s)
        self._max_entries = max_entries
        self._entries: dict[str, tuple[datetime, Value]] = {}

    def get(self, name: str, now: datetime) -> Value | None:
        """Return the value stored under `name`, or None if it is absent or expired.

        An entry from the future, after the clock was set back, counts as expired.
        """
        entry = self._entries.get(name)
        if entry is None:
            return None
        put_at, value = entry
        return value if put_at <= now < put_at + self._ttl else None

    def put(self, name: str, value: Value, now: datetime) -> None:
        """Store `value` under `name`."""
        self._entries.pop(name, None)
        if len(self._entries) >= self._max_entries:
            del self._entries[next(iter(self._entries))]
        self._entries[name] = (now, value)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
