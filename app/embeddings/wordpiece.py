"""WordPiece: the tokens that BERT models read. Pure.

From “BERT: Pre-training of Deep Bidirectional Transformers” (Devlin et al., 2019) and its uncased tokenizer: texts are
lowercased and lose their accents; punctuation and Chinese characters are words of their own; a word is divided from the
left into the longest known pieces.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache

_MAX_WORD_CHARS = 100
"""A longer word is unknown."""

_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
_ASCII_SYMBOLS = frozenset("$+<=>^`|~")
"""Characters that BERT counts as punctuation, and Unicode as symbols."""


class WordPieces:
    """A vocabulary of pieces. Pieces that continue a word begin with `##`."""

    def __init__(self, ids: Mapping[str, int], *, unknown: str = "[UNK]") -> None:
        self._ids = ids
        self._unknown = (ids[unknown],)
        self._longest = max(map(len, ids))
        self._pieces_of = lru_cache(maxsize=16_384)(self._divide)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the pieces of `text`, without those that mark its beginning and end."""
        return [piece for word in _list_words(text) for piece in self._pieces_of(word)]

    def _divide(self, word: str) -> tuple[int, ...]:
        if len(word) > _MAX_WORD_CHARS:
            return self._unknown
        pieces = []
        first = 0
        while first < len(word):
            prefix = "##" if first else ""
            for last in range(min(len(word), first + self._longest), first, -1):
                piece = self._ids.get(prefix + word[first:last])
                if piece is not None:
                    pieces.append(piece)
                    first = last
                    break
            else:
                return self._unknown
        return tuple(pieces)


def _list_words(text: str) -> Iterator[str]:
    spaced = "".join(map(_space, text))
    plain = unicodedata.normalize("NFD", spaced)
    # Each character is lowercased by itself, so a Σ at the end of a word becomes σ, not ς.
    plain = "".join(char.lower() for char in plain if unicodedata.category(char) != "Mn")
    for word in plain.split():
        yield from _split_punctuation(word)


@lru_cache(maxsize=4_096)
def _space(char: str) -> str:
    """Return white space as a space, nothing for control characters, and an ideograph between spaces."""
    if char in "\t\n\r":
        return " "
    code, category = ord(char), unicodedata.category(char)
    if code in (0, 0xFFFD) or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if category == "Zs":
        return " "
    return f" {char} " if any(first <= code <= last for first, last in _IDEOGRAPHS) else char


def _split_punctuation(word: str) -> Iterator[str]:
    if word.isalnum():
        yield word
        return
    start = 0
    for index, char in enumerate(word):
        if char in _ASCII_SYMBOLS or unicodedata.category(char).startswith("P"):
            if index > start:
                yield word[start:index]
            yield char
            start = index + 1
    if start < len(word):
        yield word[start:]
