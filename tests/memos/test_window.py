from collections.abc import Sequence
from itertools import pairwise
from typing import Any, overload
from uuid import UUID

import orjson
from hypothesis import given
from hypothesis import strategies as st

from app.chats.ranges import is_any_inside, join_ranges
from app.memos.window import Calendar, make_window

UTC = Calendar(None, "UTC")

_ranges = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 8)), max_size=8).map(
    lambda drawn: sorted((first, first + more) for first, more in drawn)
)


def _memo(number: int, **more: Any) -> dict[str, Any]:
    memo = {
        "memo_id": UUID(int=number),
        "number": number,
        "sort_key": 16 * number,
        "first_seq": 8 * number,
        "last_seq": 8 * number + 7,
        "text": f"Memo {number}.",
        "tokens": 3,
        "stale": False,
        "first_sent_at": None,
        "last_sent_at": None,
    }
    return memo | more


@given(_ranges)
def test_joined_ranges_cover_the_same_seqs_without_overlap(ranges: list[tuple[int, int]]) -> None:
    joined = join_ranges(ranges)
    assert {seq for first, last in joined for seq in range(first, last + 1)} == {
        seq for first, last in ranges for seq in range(first, last + 1)
    }
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(joined))
    assert join_ranges(joined) == joined


def test_touching_ranges_join_and_a_seq_between_separates_them() -> None:
    assert join_ranges([(1, 8), (9, 16), (18, 24)]) == [(1, 16), (18, 24)]
    assert join_ranges([(1, 8), (3, 4), (5, 9)]) == [(1, 9)]
    assert join_ranges([]) == []


@given(st.lists(st.integers(1, 40), unique=True).map(sorted), st.integers(1, 40), st.integers(0, 8))
def test_a_range_holds_one_of_some_seqs_or_none(seqs: list[int], first: int, more: int) -> None:
    assert is_any_inside(seqs, first, first + more) == any(first <= seq <= first + more for seq in seqs)


class Counted(Sequence[int]):
    """Seqs that count how often one of them is looked at."""

    def __init__(self, seqs: range) -> None:
        self._seqs = seqs
        self.looks = 0

    def __len__(self) -> int:
        return len(self._seqs)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> range: ...
    def __getitem__(self, at: int | slice) -> int | range:
        self.looks += 1
        return self._seqs[at]


def test_of_many_seqs_only_a_few_are_looked_at_for_a_range() -> None:
    seqs = Counted(range(1, 2_000, 2))
    assert not is_any_inside(seqs, 1_000, 1_000)
    assert is_any_inside(seqs, 1_000, 1_001)
    assert 0 < seqs.looks < 2 * 12


def test_a_window_is_in_story_order_and_lists_its_gaps() -> None:
    window = make_window([_memo(1), _memo(4)], [_memo(2)], [(24, 31), (32, 39)], UTC)
    assert [memo["number"] for memo in window["memos"]] == [1, 4]
    assert [memo["number"] for memo in window["pinned"]] == [2]
    assert window["gaps"] == [[24, 39]]


def test_a_window_is_json_as_the_row_keeps_it() -> None:
    person = _memo(1, first_seq=None, last_seq=None, origin="person", edited=False)
    window = make_window([person], [], iter(()), UTC)
    assert orjson.loads(orjson.dumps(window)) == window
    assert window["memos"] == [
        {
            "id": "00000000-0000-0000-0000-000000000001",
            "number": 1,
            "sort_key": 16,
            "first_seq": None,
            "last_seq": None,
            "text": "Memo 1.",
            "tokens": 3,
            "stale": False,
        }
    ]


def test_an_empty_book_has_an_empty_window() -> None:
    assert make_window([], [], [], UTC) == {"memos": [], "pinned": [], "gaps": []}
