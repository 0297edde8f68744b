"""Snippets of search results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.snippets import MARK, SNIPPET_CHARS, make_snippet
from app.search.stems import stemmer_of

FILLER = "we sail on and on " * 40


@pytest.mark.parametrize(
    ("text", "terms", "snippet"),
    [
        ("The Lantern fell.", ["lantern"], "The **Lantern** fell."),
        ("one\n  two", ["two"], "one **two**"),
        ("The lanterm fell.", ["lantern"], "The **lanterm** fell."),
        ("She fell.", ["lantern"], "She fell."),
        ("猫が好きです", ["猫が"], "**猫が**好きです"),
        ("日本語の猫", ["本語", "語の"], "日**本語の**猫"),
        ("ＬＡＭＰ here", ["lamp"], "**ＬＡＭＰ** here"),
        ("㌔㌔ and ｶﾞｽ", ["キロ"], "㌔㌔ and ｶﾞｽ"),
    ],
)
def test_terms_are_marked(text: str, terms: list[str], snippet: str) -> None:
    assert make_snippet(text, terms) == snippet


def test_forms_of_a_word_are_marked_by_their_stem() -> None:
    assert make_snippet("We will ask Will.", ["Will"], stemmer_of("en")) == "We will ask **Will**."
    assert make_snippet("She promised it.", ["promises"], stemmer_of("en")) == "She **promised** it."


def test_the_part_with_the_most_terms_is_chosen() -> None:
    text = f"The lamp. {FILLER} The ferry brought the lamp to us. {FILLER}"
    snippet = make_snippet(text, ["lamp", "ferry"])
    assert "The **ferry** brought the **lamp** to us" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_the_term_itself_is_preferred_to_similar_words() -> None:
    text = f"The garden was quiet. {FILLER} Then the gardener found the gardens. {FILLER}"
    assert "the **gardener** found" in make_snippet(text, ["gardener"])
    assert make_snippet(text, ["garden"]).startswith("The **garden**")


def test_a_similar_word_beside_a_term_counts() -> None:
    text = f"The lamp. {FILLER} A lamp on the lanterm. {FILLER}"
    assert "A **lamp** on the **lanterm**" in make_snippet(text, ["lamp", "lantern"])


def test_a_word_longer_than_the_snippet_is_not_marked() -> None:
    word = "x" * (SNIPPET_CHARS + 1)
    assert MARK not in make_snippet(f"The lamp. {FILLER} {word} {FILLER}", [word])


def test_only_words_that_begin_like_a_term_are_stemmed() -> None:
    stemmed: list[str] = []

    def stem(word: str) -> str:
        stemmed.append(word)
        return word

    make_snippet(f"{FILLER} lamps", ["lamp"], stem)
    assert set(stemmed) == {"lamp", "lamps"}


@given(
    st.lists(st.sampled_from(["lamp", "Ferry", "lamps", "日本語の猫", "sea,", "x" * 300, "ẞ", "ﬃ", "㌔"]), max_size=60),
    st.lists(st.sampled_from(["lamp", "ferry", "本語", "ss", "キロ"]), unique=True, max_size=4),
)
def test_a_snippet_is_a_part_of_the_text(words: list[str], terms: list[str]) -> None:
    text = " ".join(words)
    snippet = make_snippet(text, terms)
    plain = snippet.replace(MARK, "").removeprefix("…").removesuffix("…")
    assert plain in text
    assert len(plain) <= SNIPPET_CHARS
    if any(term in text.lower().split() for term in terms):
        assert MARK in snippet
