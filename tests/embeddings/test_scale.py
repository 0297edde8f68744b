"""The scale of a model: 0 for unrelated texts, 1 for the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.embeddings.scale import measure_unrelated, scale_similarity


def test_unrelated_texts_have_the_mean_of_all_pairs() -> None:
    assert measure_unrelated([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]) == pytest.approx((0.6 + 0.0 + 0.8) / 3)
    assert measure_unrelated([[1.0, 0.0], [-1.0, 0.0]]) == 0.0
    assert measure_unrelated([[1.0, 0.0], [1.0, 0.0]]) < 1.0, "also if a model answers the same vector for all texts"


@given(st.floats(0, 0.99), st.floats(-1, 1), st.floats(-1, 1))
def test_the_scale_keeps_the_order(unrelated: float, one: float, other: float) -> None:
    assert scale_similarity(unrelated, unrelated) == 0
    assert scale_similarity(1.0, unrelated) == pytest.approx(1.0)
    if one < other:
        assert scale_similarity(one, unrelated) <= scale_similarity(other, unrelated)
