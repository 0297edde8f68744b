"""Times in the time zone of a chat. Pure."""

from datetime import datetime
from zoneinfo import ZoneInfo


def to_local(at: datetime, time_zone: str) -> datetime:
    """Return a time in the zone with this IANA name; unchanged if Python cannot represent it there."""
    try:
        return at.astimezone(ZoneInfo(time_zone))
    except OverflowError:  # within hours of the first or last datetime that Python can represent
        return at


def word_time(at: datetime, time_zone: str) -> str:
    """Return a time in this zone as models read it: `2026-05-28 21:07`."""
    return f"{to_local(at, time_zone):%Y-%m-%d %H:%M}"
