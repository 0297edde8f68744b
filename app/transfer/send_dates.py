"""Parses the times of SillyTavern's messages, whose format differs between versions and importers. Pure.

    "2025-09-06T17:43:00.000Z"                 current
    "2025-09-06@18h43m00s000ms"                imported; older: "2025-9-6 @18h 43m 0s 0ms"
    "September 6, 2025 6:43pm"                 older, used for years
    1757180580000, "1757180580000"             milliseconds; the oldest

Usually only the first one has a time zone; a time without one is read as UTC.
"""

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"\d{1,16}", re.ASCII)
_MARKED = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@(\d{1,2})h ?(\d{1,2})m ?(\d{1,2})s(?: ?(\d{1,3})ms)?", re.ASCII)


def read_send_date(written: object) -> datetime | None:
    """Return when a message was sent, in UTC, or None if `written` is not a time in one of the formats."""
    try:
        if isinstance(written, int | float):
            return _read_milliseconds(written)
        return _read_text(written.strip()) if isinstance(written, str) else None
    except (ValueError, OverflowError):
        return None


def _read_milliseconds(number: float) -> datetime:
    if number <= 1:  # also false and true
        raise ValueError("not a time")
    return _EPOCH + timedelta(milliseconds=number)


def _read_text(written: str) -> datetime:
    if _MILLISECONDS.fullmatch(written):
        return _read_milliseconds(int(written))
    if marked := _MARKED.fullmatch(written):
        year, month, day, hour, minute, second, ms = (int(part or 0) for part in marked.groups())
        return datetime(year, month, day, hour, minute, second, ms * 1_000, tzinfo=UTC)
    if written.lower().endswith(("am", "pm")):
        return datetime.strptime(written, "%B %d, %Y %I:%M%p").replace(tzinfo=UTC)
    moment = datetime.fromisoformat(written)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
