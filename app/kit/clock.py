"""The service's clock: the one place that asks what time it is.

Code takes the time from a `Clock` that is handed in, so a test can step it.
Leases are the exception: they run by the database's clock, which all workers share.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


class SteppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """The time it was moved to."""
        return self._now

    def step(self, seconds: float) -> datetime:
        """Move forward by `seconds` and return the new time."""
        self._now += timedelta(seconds=seconds)
        return self._now
