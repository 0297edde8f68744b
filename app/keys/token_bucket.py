"""Token buckets in the memory of this process. Pure.

A bucket is stored as one number, the time at which it will be full again (the generic cell rate algorithm, GCRA). It
refills at a steady rate and holds at most `burst` requests.
"""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """How often requests may come.

    Attributes:
        per_s: Requests per second, above zero.
        burst: How many requests may come at once, at least one.

    """

    per_s: float
    burst: float

    @property
    def interval_s(self) -> float:
        """The time in which the bucket gains one request, in seconds."""
        return 1 / self.per_s

    @property
    def burst_s(self) -> float:
        """The time in which an empty bucket becomes full, in seconds."""
        return self.burst / self.per_s


class LocalBuckets:
    """The buckets of many names, at most `max_entries`; a new bucket evicts the least recently used one."""

    def __init__(self, *, max_entries: int) -> None:
        self._max_entries = max_entries
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    def take(self, name: str, rate: Rate, now_s: float) -> float:
        """Take one request from the bucket of `name` and return 0, or return in how many seconds the bucket has one.

        After the clock was set back, a bucket counts as empty at worst, so no request waits longer than `interval_s`.
        """
        full_at_s = max(now_s, min(self._full_at_s.get(name, now_s), now_s + rate.burst_s))
        wait_s = full_at_s + rate.interval_s - rate.burst_s - now_s
        is_allowed = wait_s <= _ROUNDING_S
        self._full_at_s[name] = full_at_s + rate.interval_s if is_allowed else full_at_s
        self._full_at_s.move_to_end(name)
        if len(self._full_at_s) > self._max_entries:
            self._full_at_s.popitem(last=False)
        return 0.0 if is_allowed else wait_s


_ROUNDING_S = 1e-6
"""The approximate precision of a float that holds a time in seconds since 1970."""
