"""When to ask a model again: what the server asks for, else waits that grow. Pure.

Retry-After is read as RFC 9110 (section 10.2.3) defines it, and with the fractions that some servers send.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER_S = 3_600.0
"""A server that names a longer wait is asked again after this one."""

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0


def read_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Seconds from `now` that a Retry-After header names, 0 to `LONGEST_RETRY_AFTER_S`.

    None if there is no header, or none that can be read. `now` is aware.
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
    if moment.tzinfo is None:  # "-0000": UTC, of unknown place
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER_S)


def wait_before_retry_s(failures: int, *, asked_s: float | None, jitter: float) -> float:
    """Seconds to wait after the `failures`-th failure in a row (from 1).

    The wait doubles with each failure; `jitter` (0–1) takes up to half of it away, so that calls
    that failed together don't come back together. It is never shorter than `asked_s`, the server's wish.
    """
    grown_s = min(_FIRST_WAIT_S * 2.0 ** (failures - 1), _LONGEST_WAIT_S)
    return max(grown_s * (1 - jitter / 2), asked_s or 0.0)
