"""How much of each text is compared with a query."""

from hypothesis import given
from hypothesis import strategies as st

from app.search.cutting import MOST_CHARS, cut_texts


@given(st.lists(st.integers(0, MOST_CHARS), max_size=12))
def test_short_texts_leave_their_share_to_long_ones(lengths: list[int]) -> None:
    texts = ["x" * one for one in lengths]
    cut = [len(one) for one in cut_texts(texts)]
    assert sum(cut) <= MOST_CHARS
    if cut != lengths:
        assert sum(cut) > MOST_CHARS - len(lengths)
        assert {one for one, length in zip(cut, lengths, strict=True) if one < length} == {max(cut)}


def test_a_long_text_among_short_ones_is_compared_as_a_whole() -> None:
    texts = ["a note in the garden"] * 500 + ["x" * 100_000] * 19
    assert cut_texts(texts) == texts


def test_a_text_is_cut_at_its_end() -> None:
    assert cut_texts(["ab" * MOST_CHARS]) == ["ab" * (MOST_CHARS // 2)]
