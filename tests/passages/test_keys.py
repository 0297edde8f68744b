"""The keys of texts: by which words a text is found."""

from uuid import UUID, uuid4

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.kit.db import Connection
from app.passages.keys import HASH, MAX_KEYS, hash_keys, list_keys, list_wanted
from app.passages.words import fold, is_frequent, split_words

LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=7, max_size=14)
CHAT = UUID(int=7)


def are_shared(text: str, *terms: str) -> bool:
    return bool(set(list_keys(text)) & set(list_wanted(terms)))


@given(st.text())
def test_a_text_is_found_by_each_of_its_words(text: str) -> None:
    words = [word for word in split_words(text) if not is_frequent(word) and len(word) > 2]
    assert all(are_shared(text, word) for word in words)


@given(LETTERS, st.integers(1, 13), st.sampled_from("qz"))
def test_one_wrong_letter_of_a_word_does_no_harm(word: str, at: int, letter: str) -> None:
    assume(at < len(word) and not is_frequent(word))
    assert are_shared(word, word[:at] + letter + word[at + 1 :])


@given(LETTERS, st.integers(1, 13))
def test_a_missing_letter_does_no_harm_either(word: str, at: int) -> None:
    assume(at < len(word) and not is_frequent(word))
    assert are_shared(word, word[:at] + word[at + 1 :])
    assert are_shared(word[:at] + word[at + 1 :], word)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("The lanterns burn.", "lantern"),
        ("She walked home.", "walk"),
        ("I lost both keys.", "key"),
        ("Bo sails at 7.", "bo"),
        ("Bo sails at 7.", "7"),
        ("日本語の猫", "猫"),
        ("日本語の猫", "本語"),
        ("Fuß", fold("FUSS")),
    ],
)
def test_other_forms_and_scripts_are_found(text: str, term: str) -> None:
    assert are_shared(text, term)


def test_words_that_are_in_most_texts_are_no_keys() -> None:
    assert list_keys("You and I would go to the, of course!") == ["course", "^cour", "^cou", "c~rse"]


def test_a_very_long_text_has_a_limited_number_of_keys() -> None:
    assert len(list_keys(" ".join(f"w{n:06}" for n in range(5_000)))) == MAX_KEYS


def test_each_chat_has_its_own_numbers() -> None:
    numbers = hash_keys(CHAT, ["lantern", "^lant", "lantern"])
    assert len(numbers) == 2
    assert not set(numbers) & set(hash_keys(uuid4(), ["lantern", "^lant"]))


async def test_python_and_sql_make_the_same_numbers(connection: Connection) -> None:
    keys = ["lantern", "^lant", "l~ern", "日本", "ß", "7", "''", "\\"]
    made = await connection.fetch(
        f"SELECT {HASH.format(chat_key='$1::uuid', key='k.key')} FROM unnest($2::text[]) WITH ORDINALITY AS k (key, n) "
        "ORDER BY n",
        CHAT,
        keys,
    )
    assert [row[0] for row in made] == hash_keys(CHAT, keys)
