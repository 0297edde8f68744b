"""Vectors and batches, without a server; and what PostgreSQL makes of a vector."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.embeddings.batches import split_texts
from app.embeddings.vectors import format_halfvec, normalise
from app.kit.db import Connection

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(FINITE, min_size=1, max_size=40))
def test_a_vector_has_length_one_and_its_direction(numbers: list[float]) -> None:
    made = normalise(numbers)
    length = math.hypot(*numbers)
    if length:
        assert math.hypot(*made) == pytest.approx(1)
        assert [number * length for number in made] == pytest.approx(numbers, abs=length * 1e-9)
    else:
        assert made == [0.0] * len(numbers)


@pytest.mark.parametrize("numbers", [[math.nan], [math.inf, 1.0], [1e308, 1e308, 1e308, 1e308]])
def test_a_vector_without_finite_length_is_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        normalise(numbers)


async def test_postgresql_reads_a_vector_as_it_is(connection: Connection) -> None:
    numbers = [math.sin(n * n) * 10.0 ** -(n % 6) for n in range(1, 400)]
    exact = await connection.fetchval("SELECT $1::real[]::halfvec::text", numbers)
    assert await connection.fetchval("SELECT $1::text::halfvec::text", format_halfvec(numbers)) == exact


async def test_the_inner_product_is_the_cosine(connection: Connection) -> None:
    one, other = normalise([3, 4]), normalise([8, 6])
    product = await connection.fetchval(
        "SELECT -($1::text::halfvec <#> $2::text::halfvec)", format_halfvec(one), format_halfvec(other)
    )
    assert product == pytest.approx(0.96, abs=1e-3)


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(1, 7), st.integers(1, 60))
def test_batches_hold_all_texts_within_their_limits(texts: list[str], max_texts: int, max_chars: int) -> None:
    batches = [list(batch) for batch in split_texts(texts, max_texts=max_texts, max_chars=max_chars)]
    assert [text for batch in batches for text in batch] == texts
    for batch, following in zip(batches, [*batches[1:], [""]], strict=False):
        assert 1 <= len(batch) <= max_texts
        assert len(batch) == 1 or _chars(batch) <= max_chars
        is_full = len(batch) == max_texts or _chars(batch) + len(following[0]) > max_chars
        assert is_full or batch is batches[-1]


def _chars(texts: Sequence[str]) -> int:
    return sum(map(len, texts))
