"""Which scenes are out of sight: against slow references that look at every message."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.chats.ranges import join_ranges
from app.scenes.hide_job import choose_hidden, count_old, find_rest

LENGTHS = st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=12)


def scenes_of(lengths: list[tuple[int, bool]]) -> list[tuple[int, int, bool]]:
    scenes, first = [], 1
    for length, told in lengths:
        scenes.append((first, first + length - 1, told))
        first += length
    return scenes


def members(ranges: list[tuple[int, int]]) -> set[int]:
    return {seq for first, last in ranges for seq in range(first, last + 1)}


@given(
    lengths=LENGTHS,
    has_open=st.booleans(),
    keep=st.none() | st.integers(-1, 6),
    covered_seq=st.integers(0, 80),
    kept_from=st.integers(1, 80),
)
def test_only_old_scenes_covered_by_the_recap_are_hidden(
    lengths: list[tuple[int, bool]], has_open: bool, keep: int | None, covered_seq: int, kept_from: int
) -> None:
    scenes = scenes_of(lengths)
    ranges = choose_hidden(scenes, has_open=has_open, keep=keep, covered_seq=covered_seq, kept_from=kept_from)
    expected = set()
    for index, (first, last, told) in enumerate(scenes):
        newer = len(scenes) - 1 - index + has_open
        if keep is not None and keep >= 0 and newer >= keep and told and last <= covered_seq and last < kept_from:
            expected |= set(range(first, last + 1))
    assert members(ranges) == expected


@given(lengths=LENGTHS, has_open=st.booleans(), keep=st.integers(0, 6))
def test_hidden_ranges_do_not_touch_each_other(lengths: list[tuple[int, bool]], has_open: bool, keep: int) -> None:
    ranges = choose_hidden(scenes_of(lengths), has_open=has_open, keep=keep, covered_seq=1_000, kept_from=1_000)
    assert all(first > last + 1 for (_, last), (first, _) in pairwise(ranges))


@given(lengths=LENGTHS, keep=st.integers(0, 6))
def test_hidden_and_shown_ranges_are_the_whole_line(lengths: list[tuple[int, bool]], keep: int) -> None:
    scenes = scenes_of(lengths)
    last_seq = scenes[-1][1] + 3 if scenes else 3
    hidden = choose_hidden(scenes, has_open=True, keep=keep, covered_seq=last_seq, kept_from=last_seq)
    rest = find_rest(hidden, last_seq)
    assert members(hidden) | members(rest) == set(range(1, last_seq + 1))
    assert not members(hidden) & members(rest)


def test_the_open_scene_counts_among_the_newest() -> None:
    assert count_old(3, has_open=True, keep=2) == 2
    assert count_old(3, has_open=False, keep=2) == 1
    assert count_old(3, has_open=True, keep=0) == 3
    assert count_old(1, has_open=True, keep=5) == 0


def test_ranges_that_follow_each_other_are_one() -> None:
    assert join_ranges([(1, 3), (4, 6), (8, 9)]) == [(1, 6), (8, 9)]
    assert join_ranges([]) == []
