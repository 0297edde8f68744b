"""Delays between attempts to call a model: exponential backoff, at least what the server asks for. Pure.

Retry-After is parsed as RFC 9110 (section 10.2.3) defines it, and also with fractions, which some servers send.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER_S = 3_600.0
"""The upper limit for the delay that a server asks for."""

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0


def read_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Return the delay in a Retry-After header in seconds, 0 to `LONGEST_RETRY_AFTER_S`.

    Returns None if the header is absent or malformed. `now` is an aware datetime.
    """
    text = (value or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return min(float(text), LONGEST_RETRY_AFTER_S)
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000": UTC, local time zone unknown
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER_S)


def wait_before_retry_s(failures: int, *, asked_s: float | None, jitter: float) -> float:
    """Return the seconds to wait after the `failures`-th consecutive failure, counted from 1.

    The delay doubles with each failure, up to a maximum. `jitter` (0–1) reduces it by up to half, so that calls that
    failed together are not retried together. The result is at least `asked_s`, the delay that the server asked for.
    """
    grown_s = min(_FIRST_WAIT_S * 2.0 ** (failures - 1), _LONGEST_WAIT_S)
    return max(grown_s * (1 - jitter / 2), asked_s or 0.0)
