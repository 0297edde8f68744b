"""The keys by which a text is found: its words, and their beginnings and edges. Pure.

A key is a word, its beginning (`^lant`), or its edges: the first letter with the last three letters (`l~ern`), or with
the last four in words of more than seven letters. Keys have no accents, because many people type none. A word with
accents is one more key as it is, so that words without them, which may be far more frequent, do not hide it (`sûr` and
`sur`). Other forms of a word have the same beginning. If one letter after the first is wrong in a word of seven or more
letters, the word still has the beginning or the edges of the right word.
In the index, a key is a number: a hash of `chat_key` and the key, so that one index serves all chats and a search reads
only the chat's own rows. Two keys with the same hash do no harm: a search compares the texts that it has found.

A frequent word is a key only where it is written as a name (`names.py`).

A speaker's name is no key of what is said, because half of a chat would have it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from app.passages.names import find_names, is_name
from app.passages.words import drop_accents, has_frequent, is_frequent, is_spaceless, split_words
from app.summarising.frequent import SHORT

MAX_KEYS = 4_000
"""The most keys of a text; further words of a very long text are not found by the index."""

ANALYSIS = 3
"""The version of `list_keys`. An index of version 1 does not record it, and its keys include no names (`names.py`).
The keys of version 2 all have accents."""

_BEGINNING = 4
_SHORT_BEGINNING = 3  # by this key, a query's word of three letters finds its longer forms: `run` finds `runs`
_MOST_WITH_SHORT = 6  # longer words do not get the key `^` with _SHORT_BEGINNING letters
_LEAST_WITH_EDGES = 6
_MOST_WITH_SHORT_EDGE = 7


def list_keys(text: str, language: str | None = None) -> list[str]:
    """Return the keys of a text, each once; at most MAX_KEYS.

    `language` is that of the chat (BCP 47). In English, or if it is unknown, frequent words are keys only as names.
    """
    keys: dict[str, None] = dict.fromkeys(find_names(text) if has_frequent(language) else ())
    for word in split_words(text):
        if word not in keys and word not in SHORT and not is_frequent(word, language):
            keys |= dict.fromkeys([*_keys_of(drop_accents(word)), word])
            if len(keys) >= MAX_KEYS:
                break
    return list(keys)[:MAX_KEYS]


def name_analysis(language: str | None) -> str:
    """Return a name for the rules by which `list_keys` makes keys from texts in a language (BCP 47).

    The index of a chat records this name. If the recorded name differs, the index is made again. `ANALYSIS` rises when
    a release finds other keys.
    """
    return f"{ANALYSIS}{'-frequent' if has_frequent(language) else ''}"


def list_wanted(terms: Iterable[str]) -> list[str]:
    """Return the keys to look up: those of the terms, of their other forms, and of similar words.

    Terms with accents are looked up without them, and as they are. So a text with the same accents has more of the
    keys, and in an index of a former version, which has no other keys, it is found.
    """
    words = [word for term in terms for word in (drop_accents(term), term)]
    return list(dict.fromkeys(key for word in dict.fromkeys(words) for key in _wanted_of(word)))


def hash_keys(chat_key: UUID, keys: Sequence[str]) -> list[int]:
    """Return the number of each key in the index of a chat, without repetitions; `HASH` is the same in SQL."""
    of_chat = hashlib.md5(str(chat_key).encode(), usedforsecurity=False)
    return list(dict.fromkeys(_hash(of_chat.copy(), key) for key in keys))


HASH = "('x' || left(md5({chat_key}::text || {key}), 8))::bit(32)::int4"
"""The number of a key, in SQL."""

SHARE = "CASE WHEN k.key ~ '^(\\^|.~)' THEN 0.25 ELSE 1 END"
"""The weight of a key `k.key` in a search, in SQL: 1 for a word, less for the beginning or the edges of a word."""


def _hash(of_chat: "hashlib._Hash", key: str) -> int:
    of_chat.update(key.encode())
    return int.from_bytes(of_chat.digest()[:4], "big", signed=True)


def _keys_of(word: str) -> Iterator[str]:
    yield word
    if is_spaceless(word) or len(word) < _BEGINNING:
        return
    yield f"^{word[:_BEGINNING]}"
    if len(word) <= _MOST_WITH_SHORT:
        yield f"^{word[:_SHORT_BEGINNING]}"
    if len(word) >= _LEAST_WITH_EDGES:
        yield _edges(word, len(word))


def _wanted_of(term: str) -> Iterator[str]:
    yield term
    if is_name(term) or is_spaceless(term) or len(term) < _SHORT_BEGINNING:
        return
    yield f"^{term[:_BEGINNING]}"
    if len(term) >= _LEAST_WITH_EDGES:  # a similar word can have one letter more or less
        yield from {_edges(term, letters): None for letters in range(len(term) - 1, len(term) + 2)}


def _edges(word: str, letters: int) -> str:
    return f"{word[0]}~{word[-3:] if letters <= _MOST_WITH_SHORT_EDGE else word[-4:]}"
