"""After which turns a layer looks back at the conversation."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.layers.turns import OpenPeriod, Period, count_turns, form_periods


@dataclass(frozen=True)
class Said:
    seq: int
    role: str
    kind: str | None = None
    deleted: bool = False


kinds = st.tuples(
    st.sampled_from(["user", "assistant", "assistant", "narrator"]),
    st.sampled_from([None, None, None, "thought"]),
    st.sampled_from([False, False, False, True]),
)
talks = st.lists(kinds, max_size=40).map(
    lambda drawn: [Said(seq, role, kind, gone) for seq, (role, kind, gone) in enumerate(drawn, start=1)]
)


def _ends(messages: list[Said], every: int) -> list[int]:
    """Return the seqs of the replies that complete so many turns, from the whole conversation."""
    spoken = _list_spoken(messages)
    replies = [one.seq for before, one in pairwise(spoken) if before.role == "user" and one.role == "assistant"]
    return replies[every - 1 :: every]


def _list_spoken(messages: list[Said]) -> list[Said]:
    return [one for one in messages if not one.deleted and (one.role == "user" or _speaks(one))]


def _speaks(message: Said) -> bool:
    return message.role == "assistant" and message.kind is None


@given(talks, st.integers(1, 4))
def test_a_period_ends_with_the_reply_that_completes_its_turns(messages: list[Said], every: int) -> None:
    formed, filling = form_periods(OpenPeriod(1), messages, every)
    assert [period.last_seq for period in formed] == _ends(messages, every)
    firsts = [1, *(period.last_seq + 1 for period in formed)]
    assert [period.first_seq for period in formed] == firsts[:-1]
    assert filling.first_seq == firsts[-1]


@given(talks, st.integers(1, 4), st.integers(1, 6))
def test_no_period_is_longer_than_allowed(messages: list[Said], every: int, most: int) -> None:
    formed, filling = form_periods(OpenPeriod(1), messages, every, most_seqs=most)
    ranges = [(one.first_seq, one.last_seq) for one in formed]
    assert [first for first, _ in ranges] + [filling.first_seq] == [1, *(last + 1 for _, last in ranges)]
    assert all(last - first < most for first, last in ranges)
    assert len(messages) - filling.first_seq + 1 < most
    short = [one for one in formed if one.last_seq - one.first_seq + 1 < most]
    for one in short:
        awaited = _awaits_reply(messages[: one.first_seq - 1])
        assert count_turns(one.first_seq, _inside(messages, one), awaits_reply=awaited).turns == every


def _awaits_reply(messages: list[Said]) -> bool:
    spoken = _list_spoken(messages)
    return bool(spoken) and spoken[-1].role == "user"


def _inside(messages: list[Said], period: Period) -> list[Said]:
    return [one for one in messages if period.first_seq <= one.seq <= period.last_seq]


@given(talks, st.integers(1, 4), st.integers(0, 40))
def test_the_result_is_independent_of_how_appends_are_split(messages: list[Said], every: int, cut: int) -> None:
    early, filling = form_periods(OpenPeriod(1), messages[:cut], every)
    late, filling = form_periods(OpenPeriod.from_json(filling.to_json()), messages[cut:], every)
    assert ([*early, *late], filling) == form_periods(OpenPeriod(1), messages, every)


@given(talks, st.integers(1, 40))
def test_recounting_gives_the_same_open_period(messages: list[Said], every: int) -> None:
    _, filling = form_periods(OpenPeriod(1), messages, every)
    inside = [one for one in messages if one.seq >= filling.first_seq]
    assert count_turns(filling.first_seq, inside) == filling
    assert filling.turns < every


def test_a_lower_turn_setting_ends_the_period_at_the_next_turn() -> None:
    filling = count_turns(1, [Said(1, "user"), Said(2, "assistant"), Said(3, "user"), Said(4, "assistant")])
    formed, _ = form_periods(filling, [Said(5, "narrator"), Said(6, "user"), Said(7, "assistant")], 2)
    assert formed == [Period(1, 7)]


def test_a_turn_across_long_periods_counts_in_the_later_one() -> None:
    messages = [Said(1, "user"), Said(2, "assistant"), Said(3, "user")]
    formed, filling = form_periods(OpenPeriod(1), messages, 5, most_seqs=3)
    assert (formed, filling) == ([Period(1, 3)], OpenPeriod(4, awaits_reply=True))
    assert count_turns(4, [Said(4, "assistant")], awaits_reply=True) == OpenPeriod(4, turns=1)
