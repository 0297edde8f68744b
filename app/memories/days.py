"""Days in the time zone of a chat. Pure."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

FIRST_DAY = date(1, 1, 3)
LAST_DAY = date(9999, 12, 29)
"""The first and the last day whose beginning and end Python can represent in each time zone."""


def span(day: date, time_zone: str) -> tuple[datetime, datetime]:
    """Return when a day begins (inclusive) and ends (exclusive) in the zone with this IANA name."""
    zone = ZoneInfo(time_zone)
    return datetime.combine(day, time(), zone), datetime.combine(day + timedelta(days=1), time(), zone)
