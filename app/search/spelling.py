"""Words that differ from a word by one slip of the keyboard. Pure.

The index of words contains only numbers (`passages/keys.py`), so the words of a chat cannot be listed. But all words at
an edit distance of 1 can be: a word of seven letters has about 400, and one lookup finds which of them the chat has.
At a distance of 2 there would be 80,000.
"""

from collections.abc import Iterator, Mapping

from app.passages.names import is_name

LEAST_CHARS = 4
"""Shorter words are not corrected: they differ from too many other words by one letter."""

MOST_CHARS = 32
"""Longer words are not corrected either."""

_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюяё", "αβγδεζηθικλμνξοπρστυφχψω")


def can_correct(term: str) -> bool:
    """Return whether a term of a query may be a misspelt word: only letters, most of them of one of the alphabets."""
    return LEAST_CHARS <= len(term) <= MOST_CHARS and not is_name(term) and _find_alphabet(term) is not None


def list_neighbours(word: str) -> list[str]:
    """Return the words at a Damerau-Levenshtein distance of 1, each once.

    One letter is left out, or two neighbouring letters are exchanged, or a letter is replaced or inserted. New letters
    are those of the word's alphabet, and of the word itself. Empty if `can_correct` is false.
    """
    return list(dict.fromkeys(one for one in _list_edits(word) if one != word)) if can_correct(word) else []


def choose_nearest(word: str, known: Mapping[str, int]) -> str | None:
    """Return the neighbour of a word that occurs in the most texts; None if no neighbour occurs in a text.

    If several occur in equally many texts, the first one of `list_neighbours` is chosen: one with a letter less, or
    with two letters exchanged, comes before the others. `known` contains the number of texts by word.
    """
    found = [one for one in list_neighbours(word) if known.get(one)]
    return max(found, key=lambda one: known[one], default=None)


def _list_edits(word: str) -> Iterator[str]:
    alphabet = dict.fromkeys((_find_alphabet(word) or "") + word)
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    yield from (first + last[1:] for first, last in halves if last)
    yield from (first + last[1] + last[0] + last[2:] for first, last in halves if len(last) > 1)
    yield from (first + letter + last for first, last in halves for letter in alphabet)
    yield from (first + letter + last[1:] for first, last in halves if last for letter in alphabet)


def _find_alphabet(word: str) -> str | None:
    """Return the alphabet that has most letters of a word; None if there is none, or if a character is not a letter."""
    if not word.isalpha():
        return None
    best = max(_ALPHABETS, key=lambda alphabet: sum(letter in alphabet for letter in word))
    return best if 2 * sum(letter in best for letter in word) > len(word) else None
