"""Frequent words that are written as names."""

import pytest

from app.passages.keys import list_keys, list_wanted
from app.passages.names import find_names, is_name
from app.passages.words import find_search_terms, find_terms, find_terms_of_messages, list_patterns


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What did Will say in May?", ["Will", "May"]),
        ("Will went home. May came.", ["Will", "May"]),
        ("Will: I sail.", ["Will"]),
        ("Over: I sail.", ["Over"]),
        ("I know Will's dog, and Will.", ["Will", "Will"]),
        ("“Hello,” Will says.", ["Will"]),
        ("Will?", ["Will"]),
        ("Will you come? May I? Will it be so?", []),
        ("*nods* And then? What now? “You and I.”", []),
        ("We will come in may, and You're late.", []),
        ("WHAT DID WILL SAY?", []),
        ("What Did Will Say In May?", []),
    ],
)
def test_frequent_words_are_names_where_they_are_written_so(text: str, names: list[str]) -> None:
    assert find_names(text) == names
    assert all(map(is_name, names))


def test_a_name_of_the_chat_counts_at_the_beginning_too() -> None:
    assert find_terms("Can laughed.") == ["laughed"]
    assert find_terms("Can laughed.", names=["Can"]) == ["laughed", "Can"]
    assert find_terms_of_messages(["Can laughed."], names=["Can"]) == ["laughed", "Can"]
    assert find_terms("We can.", names=["Can"]) == []


@pytest.mark.parametrize("name", ["The Narrator", "The Doctor", "Her Majesty", "Can Yilmaz"])
def test_a_frequent_word_of_a_longer_name_is_no_name(name: str) -> None:
    assert find_terms("The storm came. Her ship sank. Can it float?", names=[name]) == [
        "storm",
        "came",
        "ship",
        "sank",
        "float",
    ]
    assert find_names("The storm came.", [name, "Will"]) == []


def test_other_languages_than_english_have_no_list() -> None:
    assert find_search_terms("Not will.", "de-AT") == ["not", "will"]
    assert find_search_terms("Not will.", "en-GB") == find_search_terms("Not will.") == []
    assert find_terms_of_messages(["Una once."], language="es") == ["una", "once"]
    assert "once" in list_keys("Son las once.", "es")
    assert "once" not in list_keys("Son las once.", "en")


def test_a_name_has_a_key_and_a_pattern_of_its_own() -> None:
    assert set(list_wanted(["Will"])) <= set(list_keys("I met Will."))
    assert not set(list_wanted(["Will"])) & set(list_keys("I will go, willingly."))
    assert list_patterns(["Will"]) == ["will"]


def test_a_name_is_a_term_of_a_long_query() -> None:
    words = [f"word{n:02}" for n in range(40)]
    assert "Will" in find_terms(f"{' '.join(words)} Will")
