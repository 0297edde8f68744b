"""The check of the clocks of this machine and of PostgreSQL."""

from typing import Final

from app.doctor.finding import Finding
from app.kit.clock import Clock
from app.kit.db import Connection

MAX_DIFFERENCE_S: Final = 5.0
"""A larger difference is a fault: work becomes due by this machine's clock, and leases end by PostgreSQL's clock."""


async def check_clocks(connection: Connection, clock: Clock) -> Finding:
    """Compare the clocks of this machine and of PostgreSQL."""
    before = clock()
    there = await connection.fetchval("SELECT clock_timestamp()")
    after = clock()
    return judge_difference((there - (before + (after - before) / 2)).total_seconds())


def judge_difference(ahead_s: float) -> Finding:
    """Return the finding for a PostgreSQL whose clock is ahead by this number of seconds, or behind if negative."""
    if abs(ahead_s) <= MAX_DIFFERENCE_S:
        return Finding("clock", "ok", f"The clocks differ by {abs(ahead_s):.1f} seconds.")
    direction = "ahead of" if ahead_s > 0 else "behind"
    return Finding(
        "clock",
        "fault",
        f"PostgreSQL's clock is {abs(ahead_s):.0f} seconds {direction} the clock of this machine.",
        "Synchronise the clocks of both machines, for example with NTP.",
    )
