from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.llm.retry import LONGEST_RETRY_AFTER_S, read_retry_after, wait_before_retry_s
from tests.conftest import NOON


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("٣", None),
        ("Wed, 99 Apr 2026 12:00:00 GMT", None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("9" * 400, 3_600.0),
        ("Wed, 01 Apr 2026 12:00:30 GMT", 30.0),
        ("Wed, 01 Apr 2026 14:00:30 +0200", 30.0),
        ("Wed, 01 Apr 2026 12:00:30 -0000", 30.0),
        ("Wed, 01 Apr 2026 11:00:00 GMT", 0.0),
        ("Wed, 01 Apr 2037 12:00:00 GMT", 3_600.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert read_retry_after(value, now=NOON) == seconds


@given(st.integers(0, 3_600))
def test_a_retry_date_gives_the_seconds_until_then(seconds: int) -> None:
    date = format_datetime(NOON + timedelta(seconds=seconds), usegmt=True)
    assert read_retry_after(date, now=NOON) == seconds


@given(st.text() | st.from_regex(r"(Wed, )?[0-9]{1,6} Apr [0-9]{1,6} [0-9:]{1,9} ?[-+A-Z0-9]{0,12}"))
def test_any_header_gives_a_wait_within_bounds_or_none(value: str) -> None:
    seconds = read_retry_after(value, now=NOON)
    assert seconds is None or 0 <= seconds <= LONGEST_RETRY_AFTER_S


def test_waits_double_up_to_a_limit() -> None:
    waits = [wait_before_retry_s(failures, asked_s=None, jitter=0) for failures in range(1, 8)]
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]


@given(st.integers(1, 20), st.none() | st.floats(0, LONGEST_RETRY_AFTER_S), st.floats(0, 1))
def test_a_wait_is_at_least_the_requested_one_plus_half_jitter(
    failures: int, asked_s: float | None, jitter: float
) -> None:
    longest = wait_before_retry_s(failures, asked_s=asked_s, jitter=0)
    wait = wait_before_retry_s(failures, asked_s=asked_s, jitter=jitter)
    assert (asked_s or 0) <= wait <= longest <= 2 * wait
