"""How long texts are divided for their vectors."""

from hypothesis import example, given
from hypothesis import strategies as st

from app.kit.tokens import count_tokens
from app.passages.parts import MAX_PARTS, PART_TOKENS, divide


@given(st.text(max_size=600))
def test_a_short_text_is_one_part(text: str) -> None:
    assert divide(text) == [text]


WORDS = st.lists(st.sampled_from(["walk", "shore.", "日本語の猫が", "🦊", "a" * 90]), min_size=300, max_size=1_000)


@given(WORDS)
def test_the_parts_of_a_long_text_overlap_and_have_all_words(words: list[str]) -> None:
    text = " ".join(f"{n}{word}" for n, word in enumerate(words))
    parts = divide(text)
    ends = 0
    for part in parts:
        at = text.find(part)
        assert 0 <= at <= ends + 1
        ends = at + len(part)
    assert ends == len(text) or len(parts) == MAX_PARTS


def test_parts_have_about_400_tokens() -> None:
    text = "The lantern of the north pier is made of green glass. " * 300
    tokens = [count_tokens(part) for part in divide(text)]
    assert all(PART_TOKENS * 0.7 <= one <= PART_TOKENS for one in tokens[:-1])
    assert sum(tokens) > 1.15 * count_tokens(text)


STRETCHES = st.tuples(
    st.sampled_from(["lantern ", "猫の", "🦊👩‍👩‍👧", "a", "Zx9", "\u0e01\u0e33", "\n", " ", "꙰"]), st.integers(1, 1_500)
)


@given(st.lists(STRETCHES, min_size=1, max_size=6))
@example([("lantern ", 3_000), ("猫の", 750)])
def test_no_part_exceeds_the_token_limit_in_any_script(stretches: list[tuple[str, int]]) -> None:
    text = "".join(piece * times for piece, times in stretches)
    assert all(count_tokens(part) <= PART_TOKENS for part in divide(text))


def test_a_text_of_any_length_has_a_limited_number_of_parts() -> None:
    assert len(divide("word " * 100_000)) == MAX_PARTS
