from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe.bpe import openai

from app.kit.tokens import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("Hello, world!", 4), ("<|endoftext|>", 7), ("hello world" * 100, 200)],
)
def test_tokens_are_those_of_o200k(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(), st.integers(1, 100))
def test_a_remembered_count_equals_the_length_of_the_encoding(text: str, times: int) -> None:
    encoded = openai.o200k_base().encode(text * times)
    assert count_tokens(text * times) == count_tokens(text * times) == len(encoded)


@given(st.text(min_size=401), st.text(min_size=401))
def test_texts_of_equal_length_are_not_confused(one: str, other: str) -> None:
    encode = openai.o200k_base().encode
    assert [count_tokens(one), count_tokens(other)] == [len(encode(one)), len(encode(other))]


@pytest.mark.parametrize("length", [1, 1_000])
def test_a_lone_surrogate_cannot_be_counted(length: int) -> None:
    with pytest.raises(UnicodeEncodeError):
        count_tokens("\ud800" * length)


def test_threads_may_count_at_once() -> None:
    texts = [f"{n} {'the lamp was lit by Mira tonight ' * 3}" for n in range(200)]
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(count_tokens, texts * 4))
    assert counts == [count_tokens(text) for text in texts] * 4
