"""The stems of words, so that *lanterns* finds *lantern*, in the languages that the Snowball stemmers know.

Source: https://snowballstem.org/, by the library `snowballstemmer`.
"""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import snowballstemmer

_ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""The name of the algorithm by the first subtag of a language."""

Stem = Callable[[str], str] | None
"""A function that stems words (`stemmer_of`); None compares words as they are."""

_lock = threading.Lock()  # a stemmer stores the word that it works on, so it is not thread-safe


def with_stems(terms: Sequence[str], stem: Stem) -> list[str]:
    """Return the words to look up: the terms of a query, and after them their stems unless `stem` is None."""
    return [*terms, *(map(stem, terms) if stem else ())]


def stemmer_of(language: str | None) -> Stem:
    """Return the function that stems words of a language (BCP 47); None if there is no algorithm for the language.

    The words have to be normalised by `words.fold` before.
    """
    algorithm = _find_algorithm(language)
    return partial(_stem, algorithm) if algorithm else None


def stemmer_of_all(languages: Sequence[str | None]) -> Stem:
    """Return the function that stems the words of chats in these languages; None if they need different ones."""
    algorithms = {_find_algorithm(language) for language in languages}
    return stemmer_of(languages[0]) if len(algorithms) == 1 else None


def _find_algorithm(language: str | None) -> str | None:
    return _ALGORITHMS.get((language or "").partition("-")[0].lower())


@lru_cache(maxsize=65_536)
def _stem(algorithm: str, word: str) -> str:
    """Return the stem of a word. It takes some 40 microseconds, so stems are remembered."""
    with _lock:
        stem: str = _stemmer(algorithm).stemWord(word)
    return stem


@lru_cache
def _stemmer(algorithm: str) -> Any:
    return snowballstemmer.stemmer(algorithm)
