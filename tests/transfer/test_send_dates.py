from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transfer.send_dates import read_send_date

EVENING = datetime(2025, 9, 6, 18, 43, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2025-09-06T18:43:00.000Z",
        "2025-09-06T19:43:00+01:00",
        "2025-09-06T18:43:00",
        "2025-09-06@18h43m00s",
        "2025-09-06@18h43m00s000ms",
        "2025-9-6 @18h 43m 0s 0ms",
        "September 6, 2025 6:43pm",
        " september 06, 2025 06:43PM\n",
        1757184180000,
        1757184180000.0,
        "1757184180000",
    ],
)
def test_every_date_format_gives_the_same_time(written: object) -> None:
    assert read_send_date(written) == EVENING


def test_noon_and_midnight_are_distinguished() -> None:
    assert read_send_date("June 19, 2023 12:05am") == datetime(2023, 6, 19, 0, 5, tzinfo=UTC)
    assert read_send_date("June 19, 2023 12:05pm") == datetime(2023, 6, 19, 12, 5, tzinfo=UTC)


def test_unpadded_milliseconds_are_milliseconds() -> None:
    assert read_send_date("2025-9-6 @18h 43m 0s 7ms") == EVENING.replace(microsecond=7_000)


@pytest.mark.parametrize(
    "written",
    [
        None,
        True,
        0,
        -1,
        float("nan"),
        float("inf"),
        1e300,
        "",
        "x",
        "9" * 30,
        "Juno 19, 2023 4:13pm",
        "2025-13-06@18h43m00s",
        "²",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        [],
        {},
    ],
)
def test_an_invalid_time_is_none(written: object) -> None:
    assert read_send_date(written) is None


@given(st.text() | st.integers() | st.floats() | st.from_regex(r"\d{4}-\d{1,2}-\d{1,2} ?@\d\dh \d\dm \d\ds"))
def test_any_value_gives_a_time_with_a_zone_or_none(written: object) -> None:
    moment = read_send_date(written)
    assert moment is None or moment.tzinfo is not None
