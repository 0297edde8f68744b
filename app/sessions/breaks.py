"""Decides where sessions end. Pure.

A pause ends a session before the next message if it lasted for `idle_timeout_s` or contained the daily reset. After
`max_turns` turns a session ends before the next message of the user, so that several replies to one message stay
together. An append of many messages ends the same sessions as many appends of one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

Pause = Literal["idle", "daily"]
Automatic = Literal["idle", "daily", "turns"]


@dataclass(frozen=True, slots=True)
class BreakRules:
    """The settings that end sessions; None switches a rule off.

    Attributes:
        idle_timeout_s: A pause of at least this many seconds ends a session.
        daily_reset_hour: A session ends before the first message after this hour (0–23) of each day.
        max_turns: After this many turns, a session ends before the next message of the user.
        time_zone: The IANA name of the time zone of `daily_reset_hour`.

    """

    idle_timeout_s: int | None
    daily_reset_hour: int | None
    max_turns: int | None
    time_zone: str


class TurnRole(NamedTuple):
    """What a new message is in a turn: a message of the user begins it, a reply completes it."""

    seq: int
    is_user: bool
    is_reply: bool


class Break(NamedTuple):
    """A session begins at `first_seq`."""

    first_seq: int
    reason: Automatic


def find_pause(rules: BreakRules, silent_since: datetime, now: datetime) -> Pause | None:
    """Return why the silence from `silent_since` to `now` (aware times) ends a session; None if it does not."""
    if rules.idle_timeout_s is not None and (now - silent_since).total_seconds() >= rules.idle_timeout_s:
        return "idle"
    hour, zone = rules.daily_reset_hour, rules.time_zone
    if hour is not None and find_day(silent_since, hour, zone) < find_day(now, hour, zone):
        return "daily"
    return None


def find_day(at: datetime, hour: int, time_zone: str) -> date:
    """Return the day that began with the last reset at or before `at` (an aware time).

    A day begins when the clocks of the time zone first show `hour` or later on its date. If clocks are put back past
    the hour, the day does not begin a second time. If clocks skip the hour, the day begins when they are put forward.
    """
    zone = ZoneInfo(time_zone)
    wall = at.astimezone(zone).replace(tzinfo=None)
    day = (wall - timedelta(hours=hour)).date()
    following = day + timedelta(days=1)
    # Clocks that were put back show an hour again that they have shown before; `fold=0` is its first time.
    first = datetime(following.year, following.month, following.day, hour, tzinfo=zone).astimezone(UTC)
    return following if first <= at else day


def find_breaks(
    rules: BreakRules,
    messages: Sequence[TurnRole],
    *,
    paused: Pause | None,
    turns: int,
    awaits_reply: bool,
    has_messages: bool,
) -> tuple[list[Break], int]:
    """Return where sessions begin among new messages, and the number of turns of the last session.

    Args:
        rules: The settings.
        messages: The roles of the new messages in seq order, at least one.
        paused: Why the pause before the new messages ends the open session; None if the pause does not end it.
        turns: How many turns the open session has.
        awaits_reply: Whether the user spoke last before the new messages.
        has_messages: Whether the open session has any messages. If not, a pause does not end it.

    """
    breaks: list[Break] = []
    if paused is not None and has_messages:
        breaks.append(Break(messages[0].seq, paused))
        turns = 0
    for message in messages:
        if message.is_user:
            if rules.max_turns is not None and turns >= rules.max_turns:
                breaks.append(Break(message.seq, "turns"))
                turns = 0
            awaits_reply = True
        elif message.is_reply and awaits_reply:
            awaits_reply = False
            turns += 1
    return breaks, turns
