"""No memory is recalled in three turns running."""

from hypothesis import given
from hypothesis import strategies as st

from app.search.turns import MAX_SEQS, add_turn, find_tired

Shown = dict[int, frozenset[str]]


@st.composite
def conversations(draw: st.DrawFn, most: int = MAX_SEQS - 1) -> tuple[list[str], Shown]:
    """The roles of the messages 1…n, and what contexts with at most `most` newest seqs recalled."""
    roles = draw(st.lists(st.sampled_from(["user", "assistant"]), min_size=1, max_size=14))
    seqs = draw(st.lists(st.integers(1, len(roles)), max_size=most, unique=True))
    return roles, {seq: draw(st.frozensets(st.sampled_from("abc"))) for seq in seqs}


def turn_of(roles: list[str], seq: int) -> int:
    """The number of the turn that a message is in: a turn begins with each message of the user."""
    return roles[:seq].count("user")


@given(conversations())
def test_a_result_of_two_consecutive_turns_pauses(conversation: tuple[list[str], Shown]) -> None:
    roles, shown = conversation
    newest = len(roles)
    user_seqs = [at + 1 for at, role in enumerate(roles) if role == "user"]
    by_turn = {
        ago: {
            one for seq, known in shown.items() if turn_of(roles, seq) == turn_of(roles, newest) - ago for one in known
        }
        for ago in (1, 2)
    }
    found = find_tired(shown, newest, user_seqs=user_seqs, first_seq=1)
    assert found == by_turn[1] & by_turn[2]


@given(conversations(most=MAX_SEQS), st.frozensets(st.sampled_from("abc")))
def test_reading_again_in_a_turn_changes_nothing(
    conversation: tuple[list[str], Shown], recalled: frozenset[str]
) -> None:
    roles, shown = conversation
    newest, user_seqs = len(roles), [at + 1 for at, role in enumerate(roles) if role == "user"]
    before = find_tired(shown, newest, user_seqs=user_seqs, first_seq=1)
    again = add_turn(shown, newest, recalled)
    assert find_tired(again, newest, user_seqs=user_seqs, first_seq=1) == before
    assert add_turn(again, newest, recalled) == again


def test_a_long_former_turn_does_not_change_a_second_read() -> None:
    user_seqs = [1, 3, 12]
    shown = {2: frozenset("a"), **{seq: frozenset("a") for seq in range(3, 3 + MAX_SEQS - 1)}}
    first = find_tired(shown, 12, user_seqs=user_seqs, first_seq=1)
    assert find_tired(add_turn(shown, 12, ()), 12, user_seqs=user_seqs, first_seq=1) == first


def recall_always(turns: int, *, first_seq: int = 1) -> list[bool]:
    """Whether the only memory is recalled in each turn, if it always fits."""
    remembered: Shown = {}
    recalled = []
    for turn in range(turns):
        newest = 2 * turn + 1
        user_seqs = [seq for seq in range(1, newest + 1, 2) if seq >= newest - 2 * first_seq]
        tired = find_tired(remembered, newest, user_seqs=user_seqs, first_seq=user_seqs[0])
        recalled.append("a" not in tired)
        remembered = add_turn(remembered, newest, {"a"} - tired)
    return recalled


def test_the_only_memory_is_recalled_in_two_of_three_turns() -> None:
    assert recall_always(9) == [True, True, False] * 3


def test_turns_before_the_history_are_distinguished() -> None:
    assert recall_always(9, first_seq=0) == [True, True, False] * 3


def test_a_pause_ends_when_another_turn_was_in_between() -> None:
    shown = {1: frozenset("a"), 3: frozenset("a")}
    assert find_tired(shown, 5, user_seqs=[1, 3, 5], first_seq=1) == {"a"}
    assert find_tired(shown, 7, user_seqs=[1, 3, 5, 7], first_seq=1) == frozenset()


@given(st.dictionaries(st.integers(1, 99), st.frozensets(st.sampled_from("abc")), max_size=20), st.integers(1, 99))
def test_only_the_newest_seqs_are_remembered(shown: Shown, newest: int) -> None:
    kept = add_turn(shown, newest, {"d"})
    assert sorted(kept) == sorted({*shown, newest})[-MAX_SEQS:]
    assert all(kept[seq] >= shown.get(seq, frozenset()) for seq in kept)
