import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.facts.keys import MAX_KEY_CHARS, choose_key, normalise_key


@pytest.mark.parametrize(
    ("key", "normalised"),
    [
        ("Favourite colour", "favourite_colour"),
        ("  user-name ", "name"),
        ("user_birthday", "birthday"),
        ("user's dog.name", "dog_name"),
        ("user", "user"),
        ("user_settings", "settings"),
        ("username", "username"),
        ("__name__", "name"),
        ("Lieblingsgröße", "lieblingsgröße"),
        ("好きな色", "好きな色"),
        ("ＮＡＭＥ", "name"),
        ("?!", None),
        ("", None),
        ("word " * 30, "_".join(["word"] * 20)),
    ],
)
def test_a_key_is_short_and_in_lower_case(key: str, normalised: str | None) -> None:
    assert normalise_key(key) == normalised


@given(st.text(max_size=200) | st.lists(st.sampled_from(["user", "_", "s", "'", "X"])).map("".join))
def test_a_normalised_key_stays_the_same(key: str) -> None:
    once = normalise_key(key)
    assert once is None or (0 < len(once) <= MAX_KEY_CHARS and normalise_key(once) == once)


@pytest.mark.parametrize(
    ("given", "known", "key"),
    [
        ("user_birthday", [], "birthday"),
        ("user_birthday", ["birthday"], "birthday"),
        ("user_birthday", ["user_birthday", "birthday"], "user_birthday"),
        ("birthday", ["user_birthday"], "user_birthday"),
        ("favourite_colour", ["Favourite Colour"], "Favourite Colour"),
        ("🎂", ["birthday"], "🎂"),
    ],
)
def test_a_known_fact_keeps_its_key(given: str, known: list[str], key: str) -> None:
    assert choose_key(given, known) == key
