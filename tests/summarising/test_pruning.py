"""Pruning keeps fewer sentences of older parts."""

from hypothesis import given
from hypothesis import strategies as st

from app.summarising.pruning import thin

LINES = st.lists(st.text("abcde", min_size=1, max_size=30), min_size=1, max_size=60)


@given(LINES)
def test_pruning_removes_lines_and_keeps_their_order(lines: list[str]) -> None:
    left = iter(lines)
    assert all(line in left for line in thin(lines))
    assert len(thin(lines)) < len(lines)


@given(LINES)
def test_the_newer_half_stays_and_so_does_the_first_line(lines: list[str]) -> None:
    left = thin(lines)
    newer = lines[max(len(lines) // 2, 2) :]
    assert left[len(left) - len(newer) :] == newer
    if len(lines) > 2:
        assert left[0] == lines[0]


def test_the_shortest_line_of_the_older_half_is_removed() -> None:
    assert thin(["first", "a long line", "no", "a longer line", "x", "y", "z", "."]) == [
        "first",
        "a long line",
        "a longer line",
        "x",
        "y",
        "z",
        ".",
    ]
