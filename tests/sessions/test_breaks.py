"""When a session ends: the decision against a slow reference, with clocks that are put forward and back."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.sessions.breaks import Break, BreakRules, TurnRole, find_breaks, find_day, find_pause
from tests.conftest import NOON

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu")

SPRING_BERLIN = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)
"""An hour later, 02:00 becomes 03:00 in Berlin."""
AUTUMN_NEW_YORK = datetime(2026, 11, 1, 5, 0, tzinfo=UTC)
"""An hour later, 02:00 becomes 01:00 in New York."""
AUTUMN_ST_JOHNS = datetime(2010, 11, 7, 2, 0, tzinfo=UTC)
"""31 minutes later, 00:01 becomes 23:01 of the day before in St John's."""


def rules(
    *, idle: int | None = None, hour: int | None = None, turns: int | None = None, zone: str = "UTC"
) -> BreakRules:
    return BreakRules(idle_timeout_s=idle, daily_reset_hour=hour, max_turns=turns, time_zone=zone)


# --- pauses ---


@pytest.mark.parametrize(("silence_s", "reason"), [(59, None), (60, "idle"), (100_000, "idle"), (0, None), (-5, None)])
def test_a_pause_of_the_timeout_ends_a_session(silence_s: int, reason: str | None) -> None:
    assert find_pause(rules(idle=60), NOON, NOON + timedelta(seconds=silence_s)) == reason


def test_idle_comes_before_daily() -> None:
    assert find_pause(rules(idle=60, hour=0), NOON, NOON + timedelta(days=3)) == "idle"


def test_without_limits_no_pause_ends_a_session() -> None:
    assert find_pause(rules(), NOON, NOON + timedelta(days=3_000)) is None


@pytest.mark.parametrize(
    ("since", "now", "reason"),
    [
        ("2026-04-01T21:59:59", "2026-04-01T22:00:00", "daily"),  # midnight in Berlin
        ("2026-04-01T22:00:00", "2026-04-02T21:59:59", None),
        ("2026-04-01T21:00:00", "2026-04-01T21:59:59", None),
        ("2026-04-01T12:00:00", "2026-04-09T12:00:00", "daily"),
        ("2026-04-01T22:30:00", "2026-04-01T21:30:00", None),  # the clock was put back
    ],
)
def test_hour_0_is_midnight_in_the_chats_time_zone(since: str, now: str, reason: str | None) -> None:
    times = [datetime.fromisoformat(at).replace(tzinfo=UTC) for at in (since, now)]
    assert find_pause(rules(hour=0, zone="Europe/Berlin"), *times) == reason


def latest_days(start: datetime, minutes: int, hour: int, zone: str) -> list[date]:
    """For each minute, the newest day whose reset has happened: the clock has shown the hour on that day."""
    days: list[date] = []
    for minute in range(minutes):
        wall = (start + timedelta(minutes=minute)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        day = (wall - timedelta(hours=hour)).date()
        days.append(max(day, days[-1]) if days else day)
    return days


@given(
    start=st.one_of(
        st.sampled_from([SPRING_BERLIN, AUTUMN_NEW_YORK, AUTUMN_ST_JOHNS]),
        st.integers(0, 12_000_000).map(lambda minutes: datetime(2005, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)),
    ),
    zone=st.sampled_from(ZONES),
    hour=st.integers(0, 23),
    since=st.integers(0, 2_999),
    pause=st.integers(0, 2_999),
)
@example(SPRING_BERLIN, "Europe/Berlin", 2, 59, 1)
@example(AUTUMN_NEW_YORK, "America/New_York", 1, 20, 60)
@example(AUTUMN_ST_JOHNS, "America/St_Johns", 0, 30, 60)
@example(AUTUMN_ST_JOHNS, "America/St_Johns", 0, 40, 60)
def test_each_reset_happens_once_despite_clock_changes(
    start: datetime, zone: str, hour: int, since: int, pause: int
) -> None:
    before = timedelta(days=2)  # so that the reference has seen the reset before the first minute
    days = latest_days(start - before, 2_880 + since + pause + 1, hour, zone)
    first, last = days[2_880 + since], days[2_880 + since + pause]
    silent_since = start + timedelta(minutes=since)
    now = silent_since + timedelta(minutes=pause)
    assert find_day(silent_since, hour, zone) == first
    assert find_day(now, hour, zone) == last
    expected = "daily" if last > first else None
    assert find_pause(rules(hour=hour, zone=zone), silent_since, now) == expected


# --- turns ---


def roles_of(text: str, first_seq: int = 1) -> list[TurnRole]:
    """u is the user, a a reply, and everything else neither."""
    return [TurnRole(seq, of == "u", of == "a") for seq, of in enumerate(text, start=first_seq)]


@pytest.mark.parametrize(
    ("text", "max_turns", "seqs"),
    [
        ("uaua", 2, []),
        ("uauau", 2, [5]),
        ("uauaauau", 2, [6]),  # a second reply belongs to the turn
        ("uanuasu", 1, [4, 7]),
        ("aaaa", 1, []),
        ("uuauua", 1, [4]),
        ("uauaua", 1, [3, 5]),
    ],
)
def test_a_user_message_after_the_last_turn_begins_a_session(text: str, max_turns: int, seqs: list[int]) -> None:
    breaks, _ = find_breaks(
        rules(turns=max_turns), roles_of(text), paused=None, turns=0, awaits_reply=False, has_messages=False
    )
    assert breaks == [Break(seq, "turns") for seq in seqs]


def test_a_pause_without_messages_before_it_ends_nothing() -> None:
    breaks, turns = find_breaks(
        rules(turns=5), roles_of("ua"), paused="idle", turns=3, awaits_reply=False, has_messages=False
    )
    assert (breaks, turns) == ([], 4)


def test_a_pause_begins_the_turns_again() -> None:
    breaks, turns = find_breaks(
        rules(turns=3), roles_of("ua", 9), paused="idle", turns=3, awaits_reply=False, has_messages=True
    )
    assert (breaks, turns) == ([Break(9, "idle")], 1)


def sessions_of(text: str, max_turns: int) -> list[int]:
    """The seqs at which sessions begin; slow: for each message the turns of its session are counted from the start."""
    begins: list[int] = []
    for index, of in enumerate(text):
        former = begins[-1] if begins else 0
        spoken = [one for one in text[former:index] if one in "ua"]
        before = next((one for one in reversed(text[:former]) if one in "ua"), "")
        turns = sum(a == "u" and b == "a" for a, b in zip([before, *spoken], spoken, strict=False))
        if of == "u" and turns >= max_turns:
            begins.append(index)
    return [index + 1 for index in begins]


@given(text=st.text("uan", max_size=40), max_turns=st.integers(1, 4), sizes=st.lists(st.integers(1, 9), max_size=40))
def test_turns_are_counted_alike_in_one_append_or_in_many(text: str, max_turns: int, sizes: Sequence[int]) -> None:
    found: list[int] = []
    turns, awaits, done = 0, False, 0
    for size in [*sizes, len(text)]:
        part = text[done : done + size]
        breaks, turns = find_breaks(
            rules(turns=max_turns),
            roles_of(part, done + 1),
            paused=None,
            turns=turns,
            awaits_reply=awaits,
            has_messages=done > 0,
        )
        found += [one.first_seq for one in breaks]
        for of in part:
            awaits = of == "u" or (awaits and of != "a")
        done += len(part)
    assert found == sessions_of(text, max_turns)
