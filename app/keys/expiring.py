"""What was looked up a moment ago: bounded in time and in number. Pure."""

from datetime import datetime, timedelta
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ExpiringCache(Generic[Value]):
    """Values by name, each for `ttl_s` seconds, at most `max_entries`: the oldest makes room."""

    def __init__(self, *, ttl_s: float, max_entries: int) -> None:
        self._ttl = timedelta(seconds=ttl_s)
        self._max_entries = max_entries
        self._entries: dict[str, tuple[datetime, Value]] = {}

    def get(self, name: str, now: datetime) -> Value | None:
        """The value put under `name`, unless that was too long ago (or, by a clock set back, is to come)."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        put_at, value = entry
        return value if put_at <= now < put_at + self._ttl else None

    def put(self, name: str, value: Value, now: datetime) -> None:
        """Keep `value` under `name`."""
        self._entries.pop(name, None)
        if len(self._entries) >= self._max_entries:
            del self._entries[next(iter(self._entries))]
        self._entries[name] = (now, value)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
