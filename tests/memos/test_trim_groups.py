"""Which memos are left out together, and in which order."""

from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.memos.trim_groups import MEMOS_IN_GROUP, group_memos


def _memos(*numbers: int) -> list[dict[str, Any]]:
    """Memos of batches in story order; a negative number is that of a memo that a person wrote."""
    return [{"number": abs(number), "first_seq": 1 if number > 0 else None} for number in numbers]


def _left_out(*numbers: int, pinned: bool = False) -> list[tuple[str, list[int]]]:
    """The groups in the order in which they are left out: the name of each, and its memos."""
    groups = group_memos(_memos(*numbers), pinned=pinned)
    in_order = sorted(zip(groups, numbers, strict=True), key=lambda pair: pair[0])
    return [(group.name, [n for _, n in found]) for group, found in groupby(in_order, key=lambda pair: pair[0])]


def test_memos_are_grouped_by_their_numbers() -> None:
    assert _left_out(4, 5, 6, 8, 11) == [("memos 1–5", [4, 5]), ("memos 6–10", [6, 8]), ("memos 11–15", [11])]
    assert _left_out(2, pinned=True) == [("pinned memos 1–5", [2])]


def test_backfilled_memos_are_left_out_in_story_order() -> None:
    assert _left_out(*range(8, 15), *range(1, 8)) == [
        ("memos 8–9", [8, 9]),
        ("memos 10–14", [10, 11, 12, 13, 14]),
        ("memos 1–5", [1, 2, 3, 4, 5]),
        ("memos 6–10", [6, 7]),
    ]
    assert _left_out(9, 8, 1, pinned=True) == [("pinned memos 8–9", [9, 8]), ("pinned memos 1–5", [1])]
    assert _left_out(4, 5, 6, 9, 7, 8) == [("memos 1–5", [4, 5]), ("memo 9", [9]), ("memos 6–10", [6, 7, 8])]


def test_a_persons_memo_is_in_the_group_of_its_number() -> None:
    assert _left_out(1, -12, 2, 6, -5) == [("memos 1–5", [1, 2, -5]), ("memos 6–10", [6]), ("memos 11–15", [-12])]


@st.composite
def books(draw: st.DrawFn) -> list[int]:
    """The numbers of batches in story order: those of a chat whose memos were off at first, and of two backfills."""
    regular = draw(st.integers(0, 12))
    late = draw(st.integers(0, 12))
    first, second = range(regular + 1, regular + late + 1), range(regular + late + 1, regular + 2 * late + 1)
    return [*second, *first, *range(1, regular + 1)]


@given(books())
def test_groups_are_left_out_in_story_order(book: list[int]) -> None:
    groups = _left_out(*book)
    assert [number for _, numbers in groups for number in numbers] == book
    assert all(len(numbers) <= MEMOS_IN_GROUP for _, numbers in groups)


@given(books(), st.integers(1, 9), st.integers(1, 9))
def test_a_group_keeps_its_memos_while_the_window_moves(book: list[int], gone: int, new: int) -> None:
    later = max(book, default=0) + 1
    before = [set(numbers) for _, numbers in _left_out(*book)]
    after = [set(numbers) for _, numbers in _left_out(*book[gone:], *range(later, later + new))]
    left = [numbers - set(book[:gone]) for numbers in before]
    assert [numbers & set(book) for numbers in after if numbers & set(book)] == [numbers for numbers in left if numbers]
