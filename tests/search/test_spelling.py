"""Words at an edit distance of 1."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.spelling import can_correct, choose_nearest, list_neighbours

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
words = st.text(alphabet="abcé", min_size=4, max_size=7)


def measure(one: str, other: str) -> int:
    """The Damerau-Levenshtein distance of two words, by its definition."""
    if not one or not other:
        return len(one) + len(other)
    found = [
        measure(one[1:], other) + 1,
        measure(one, other[1:]) + 1,
        measure(one[1:], other[1:]) + (one[0] != other[0]),
    ]
    if one[:2] == other[1::-1] and len(one) > 1 and len(other) > 1:
        found.append(measure(one[2:], other[2:]) + 1)
    return min(found)


def test_neighbours_are_all_words_at_a_distance_of_one() -> None:
    letters = "abx"
    near = {one for one in list_neighbours("abba") if set(one) <= set(letters)}
    every = ("".join(one) for size in range(3, 6) for one in itertools.product(letters, repeat=size))
    assert near == {one for one in every if measure("abba", one) == 1}


@given(words)
def test_each_neighbour_is_listed_once(word: str) -> None:
    near = list_neighbours(word)
    assert len(near) == len(set(near))
    assert bool(near) == can_correct(word)


@given(words.filter(can_correct), st.data())
def test_neighbours_differ_by_one_letter(word: str, data: st.DataObject) -> None:
    assert measure(word, data.draw(st.sampled_from(list_neighbours(word)))) == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fery", "ferry"), ("kandle", "candle"), ("recieved", "received"), ("lampp", "lamp"), ("пером", "перо")],
)
def test_a_slip_of_the_keyboard_is_corrected(typed: str, meant: str) -> None:
    assert choose_nearest(typed, {meant: 1, "harbour": 9}) == meant


def test_the_word_of_most_texts_is_chosen() -> None:
    assert choose_nearest("lamb", {"lamp": 3, "lamps": 9, "limb": 2, "lam": 0}) == "lamp"
    assert choose_nearest("lamb", {"lam": 0}) is None


@pytest.mark.parametrize("term", ["cat", "Will", "2024", "m4ny", "図書館員", "a" * 33])
def test_other_terms_are_not_corrected(term: str) -> None:
    assert list_neighbours(term) == []
