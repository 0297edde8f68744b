"""The service's clock.

Code receives a `Clock` as an argument, so tests can control the time. Leases of work, reports of workers and initial
revisions use the clock of the database instead, because all processes share it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the current time in UTC as an aware datetime."""
    return datetime.now(UTC)


class SteppedClock:
    """A clock that only advances when `step` is called."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """Return the clock's time."""
        return self._now

    def step(self, seconds: float) -> datetime:
        """Advance by `seconds` and return the new time."""
        self._now += timedelta(seconds=seconds)
        return self._now
