"""Where a scene may end: against slow references, and what is said of an answer that is none."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.scenes.detection.breaks import LONGEST_ANSWER_PAUSE, find_candidates, find_pause, object_to
from tests.conftest import NOON

SEQS = st.sets(st.integers(1, 200), max_size=40).map(sorted)


@given(
    seqs=SEQS,
    before=st.integers(0, 30),
    min_messages=st.integers(1, 20),
    offset=st.integers(0, 10),
    lifted=st.sets(st.integers(1, 200)),
)
def test_a_candidate_leaves_enough_messages_on_both_sides(
    seqs: list[int], before: int, min_messages: int, offset: int, lifted: set[int]
) -> None:
    expected = [
        seq
        for seq in seqs
        if before + sum(other <= seq for other in seqs) >= min_messages
        and sum(other > seq for other in seqs) >= offset
        and seq not in lifted
    ]
    found = find_candidates(seqs, before=before, min_messages=min_messages, offset=offset, lifted=lifted)
    assert found == expected


def test_a_scene_of_ten_can_end_after_two_more_messages() -> None:
    def candidates(messages: int) -> list[int]:
        return find_candidates(range(1, messages + 1), before=0, min_messages=10, offset=2, lifted=frozenset())

    assert candidates(11) == []
    assert candidates(12) == [10]
    assert candidates(14) == [10, 11, 12]


def test_only_a_candidate_or_no_break_is_an_answer() -> None:
    assert object_to(None, [10, 11]) is None
    assert object_to(11, [10, 11]) is None
    assert object_to(9, [10, 11]) == "9 is not one of the possible answers"
    assert object_to(12, [10, 11]) == "12 is a message that only gives context, or not a message at all"


@given(
    gaps_h=st.lists(st.integers(0, 12), min_size=1, max_size=25),
    chosen=st.sets(st.integers(1, 26)),
)
def test_without_a_model_a_scene_ends_before_its_longest_pause(gaps_h: list[int], chosen: set[int]) -> None:
    seqs = list(range(1, len(gaps_h) + 2))
    sent_at = {seq: NOON + timedelta(hours=sum(gaps_h[: seq - 1])) for seq in seqs}
    candidates = [seq for seq in seqs if seq in chosen]
    found = find_pause(seqs, sent_at, candidates)
    possible = {seq: gaps_h[seq - 1] for seq in candidates if seq < len(seqs) and gaps_h[seq - 1] >= 4}
    if not possible:
        assert found is None
    else:
        longest = max(possible.values())
        first = min(seq for seq, hours in possible.items() if hours == longest)
        assert found == (first, timedelta(hours=longest))


def test_a_short_wait_for_an_answer_ends_no_scene() -> None:
    def find(pause: timedelta) -> int | None:
        found = find_pause([1, 2], {1: NOON, 2: NOON + pause}, [1, 2])
        return found and found[0]

    assert find(LONGEST_ANSWER_PAUSE - timedelta(seconds=1)) is None
    assert find(LONGEST_ANSWER_PAUSE) == 1
