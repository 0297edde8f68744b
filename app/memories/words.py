"""Finds the names in the text of a memory. Pure."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from app.summarising.frequent import FREQUENT, SHORT

MARKS = "\u0300-\u036f\u0900-\u0963\u0966-\u0e7f"
"""Vowel signs and accents, which `\\w` does not match, for a character class of a regular expression."""

_LETTERS = re.compile(rf"(?:[^\W\d_]|[{MARKS}])+")
_ENDS_SENTENCE = re.compile(r"[.!?…:\n]")
_FREQUENT = FREQUENT | SHORT
_NO_NAMES = _FREQUENT | {"user"}
_VERB = re.compile(r"(.{3,}?)(?:ed|es|ing|s)")

# English and German write these words with a capital, but they are not names. So if a new text differs from a known one
# only in the date, it is a correction of that text, and supersedes it.
_DATE = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai"
    r"|juni|juli|oktober|dezember|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend"
)


class Words(NamedTuple):
    """The words of a text in lower case, each once and in their order, and those of them that seem to be names.

    A word within a sentence seems to be a name if it begins with a capital. At the beginning of a sentence, where every
    word has a capital, it seems to be one unless it is a frequent word of English or one of the texts that are compared
    has it in small letters. Single letters, and the months and days in `_DATE`, do not count as names. In a text
    without small letters, and in scripts that have none, only known names are recognised.

    Attributes:
        all: The words; the values are None.
        names: The words that are names in any case.
        first: The other words that begin a sentence and can be names.
        small: The words that the text has in small letters.

    """

    all: Mapping[str, None]
    names: frozenset[str]
    first: frozenset[str]
    small: frozenset[str]

    @classmethod
    def of(cls, text: str, known_names: Collection[str] = ()) -> "Words":
        """Return the words of a text; `known_names` are names of people that it may contain."""
        text = unicodedata.normalize("NFKC", text)
        has_small = any(char.islower() for char in text)
        found, names, first, small, end = [*_find_known(text, known_names)], set[str](), set[str](), set[str](), None
        names.update(name for _, name in found)
        for word in _LETTERS.finditer(text):
            folded = word[0].casefold()
            begins = end is None or _ENDS_SENTENCE.search(text, end, word.start())
            end = word.end()
            found.append((word.start(), folded))
            if word[0][0].islower():
                small.add(folded)
            elif has_small and len(folded) > 1 and word[0][0].isupper() and not _DATE.fullmatch(folded):
                if not begins:
                    names.add(folded)
                elif folded not in _NO_NAMES:
                    first.add(folded)
        in_order = dict.fromkeys(word for _, word in sorted(found))
        return cls(in_order, frozenset(names), frozenset(first - small - names), frozenset(small))

    def names_others(self, other: "Words", *, is_forgotten: bool = False) -> bool:
        """Return whether each of two texts has a name that the other does not contain.

        Words that begin a sentence are the same if they are two forms of an English verb (“works”, “worked”). If one of
        the texts is a forgotten one (`is_forgotten`), they are also the same if their first four letters are.
        """
        own, others = self._names_beside(other) - other.all.keys(), other._names_beside(self) - self.all.keys()
        pairs = product(own & self.first, others & other.first)
        same = [pair for pair in pairs if _is_same(*pair, is_forgotten=is_forgotten)]
        return bool(own - {one for one, _ in same}) and bool(others - {one for _, one in same})

    def orders_differently(self, other: "Words") -> bool:
        """Return whether the names that both texts contain are in different orders.

        An example is “Sam loves Mira” and “Mira loves Sam”. Only the first occurrence of a name in a text counts. A
        word that seems to be a name in one of the texts counts as a name in both.
        """
        names = self._names_beside(other) | other._names_beside(self)
        return [word for word in self.all if word in names and word in other.all] != [
            word for word in other.all if word in names and word in self.all
        ]

    def _names_beside(self, other: "Words") -> frozenset[str]:
        """Return the words that seem to be names, if the text is compared with another one."""
        return self.names | (self.first - other.small)


def _is_same(one: str, other: str, *, is_forgotten: bool) -> bool:
    """Return whether two words that begin a sentence are the same, as `names_others` says."""
    verbs = _VERB.fullmatch(one), _VERB.fullmatch(other)
    is_verb = verbs[0] is not None and verbs[1] is not None and verbs[0][1] == verbs[1][1]
    return is_verb or (is_forgotten and one[:4] == other[:4])


def _find_known(text: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield the position and the case-folded form of each known name in a text.

    A name in a script without small letters is found wherever its characters are, because such scripts often write
    words without spaces, or names with endings. Of other names, the single words are found, of a name with capitals
    only those with a capital (not “de la”). A word that is frequent in English counts only with a capital, and only if
    it is the whole name.
    """
    patterns = sorted(filter(None, map(_write_pattern, names)), key=len, reverse=True)
    for found in re.finditer("|".join(patterns), text, re.I) if patterns else ():
        if not (found[0][0].islower() and found[0].casefold() in _FREQUENT):
            yield found.start(), found[0].casefold()


def _write_pattern(name: str) -> str:
    """Return a regular expression for the words of a known name; empty if it has none that can be found."""
    name = " ".join(unicodedata.normalize("NFKC", name).split())
    if name.upper() == name.lower():
        return re.escape(name) if len(name) > 1 else ""
    words = _LETTERS.findall(name)
    is_single = len(words) == 1
    if any(word[0].isupper() for word in words):
        words = [word for word in words if not word[0].islower()]
    found = [word for word in words if len(word) > 1 and (is_single or word.casefold() not in _FREQUENT)]
    return rf"\b(?:{'|'.join(map(re.escape, found))})\b" if found else ""
