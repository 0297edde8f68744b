"""The stems of words."""

import pytest
import snowballstemmer

from app.search import stems
from app.search.stems import stemmer_of


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("en", ["lantern", "lanterns"]),
        ("en-GB", ["promise", "promised", "promising"]),
        ("DE", ["laterne", "laternen"]),
        ("es", ["gato", "gatos"]),
        ("ru", ["фонарь", "фонари"]),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, forms: list[str]) -> None:
    stem = stemmer_of(language)
    assert stem is not None
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("language", [None, "", "ja", "zh-Hant", "tlh"])
def test_languages_without_stems_compare_words_as_they_are(language: str | None) -> None:
    assert stemmer_of(language) is None


def test_the_library_has_each_algorithm() -> None:
    assert set(stems._ALGORITHMS.values()) <= set(snowballstemmer.algorithms())
