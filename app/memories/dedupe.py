"""Finds out whether a statement is already known. Pure.

The similarity is that of PostgreSQL's `pg_trgm`: the share of the three-letter groups that two texts have in common,
each word padded with two spaces before and one after. Chinese and Japanese words are not divided by spaces, and a group
of three of their characters would be too coarse, so they are compared in groups of two. `pg_trgm` itself is not used:
in a database with the LC_CTYPE C it ignores all letters that are not ASCII. Databases that were created before ADR
0038, or by an operator, can have this LC_CTYPE.
"""

import re
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, NamedTuple, TypeVar

from app.knowledge.known import fold

DEDUPE_THRESHOLD = 0.85

Id = TypeVar("Id", bound=Hashable)

_SPACELESS = "々\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "\u0300-\u036f\u0900-\u0963\u0966-\u0e7f"  # vowel signs and accents, which \w does not match
_WORD = re.compile(rf"(?P<spaceless>[{_SPACELESS}]+)|(?:[^\W_{_SPACELESS}]|[{_MARKS}])+")
_LETTERS = re.compile(rf"(?:[^\W\d_]|[{_MARKS}])+")
_ENDS_SENTENCE = re.compile(r"[.!?…:\n]")

# English and German write these words with a capital, but they are not names. So if a new text differs from a known one
# only in the date, it is a correction of that text, and supersedes it.
_DATE = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai"
    r"|juni|juli|oktober|dezember|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend"
)


@dataclass(frozen=True)
class Known(Generic[Id]):
    """A text that a new statement is compared with: that of a live statement, or a forgotten one.

    Attributes:
        id: Identifies it.
        content: The text.
        stays: Whether it is never superseded, because a person wrote it.
        is_forgotten: Whether it is a forgotten text. A new text with the same names in another order then counts as the
            same, because to learn what was forgotten is worse than to learn too little.

    """

    id: Id
    content: str
    stays: bool = False
    is_forgotten: bool = False

    @cached_property
    def groups(self) -> frozenset[str]:
        """The groups of letters of its text."""
        return find_groups(self.content)

    @cached_property
    def words(self) -> "Words":
        """The words of its text."""
        return Words.of(self.content)

    @cached_property
    def folded(self) -> str:
        """Its text without differences in case, white space and compatibility forms (`fold`)."""
        return fold(self.content)


class Words(NamedTuple):
    """The words of a text in lower case, each once and in their order, and those of them that seem to be names.

    A word seems to be a name if it begins with a capital although it does not begin a sentence. Single letters, and the
    months and days in `_DATE`, do not count as names. In a text without small letters, and in scripts that have none,
    no word seems to be a name.
    """

    all: Mapping[str, None]
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Return the words of a text."""
        text = unicodedata.normalize("NFKC", text)
        has_small = any(char.islower() for char in text)
        words, names, end = dict[str, None](), set[str](), None
        for found in _LETTERS.finditer(text):
            word = found[0].casefold()
            begins = end is None or _ENDS_SENTENCE.search(text, end, found.start())
            if has_small and not begins and len(word) > 1 and found[0][0].isupper() and not _DATE.fullmatch(word):
                names.add(word)
            words[word] = None
            end = found.end()
        return cls(words, frozenset(names))

    def names_others(self, other: "Words") -> bool:
        """Return whether each of two texts has a name that the other does not contain."""
        return bool(self.names - other.all.keys()) and bool(other.names - self.all.keys())

    def orders_differently(self, other: "Words") -> bool:
        """Return whether the names that both texts contain are in different orders.

        An example is “Sam loves Mira” and “Mira loves Sam”. Only the first occurrence of a name in a text counts. A
        word that seems to be a name in one of the texts counts as a name in both.
        """
        names = self.names | other.names
        return [word for word in self.all if word in names and word in other.all] != [
            word for word in other.all if word in names and word in self.all
        ]


@dataclass(frozen=True, slots=True)
class Verdict(Generic[Id]):
    """What to do with a new statement.

    Attributes:
        outcome: `new`: store it. `duplicate`: add its sources to the statement `id`. `supersedes`: store it in place
            of the statement `id`, which becomes its history.
        id: The known statement, or None if the outcome is `new`.
        similarity: The similarity to the known statement, from 0 to 1; 0 if the outcome is `new`.

    """

    outcome: Literal["new", "duplicate", "supersedes"]
    id: Id | None
    similarity: float


def compare(content: str, known: Sequence[Known[Id]], *, threshold: float = DEDUPE_THRESHOLD) -> Verdict[Id]:
    """Return what to do with a new statement; `known` are the statements to compare it with, oldest first.

    Statements are duplicates if they have the same characters, except for case, white space and compatibility forms.
    Otherwise the most similar known statement is superseded if its similarity is above `threshold`; if several are
    equally similar, the newest. A statement that `stays` is never superseded. Nor is a statement if each of the two
    texts has a name that the other lacks (“Ida”, “Eva”), or if the names that both contain are in different orders
    (`Words.orders_differently`; for a forgotten text, the order does not matter). Such texts can be about other people,
    or about the same people in other roles. A text with other numbers counts as a correction.
    """
    written = fold(content)
    for other in reversed(known):
        if other.folded == written:
            return Verdict("duplicate", other.id, 1.0)
    groups, words = find_groups(content), Words.of(content)
    best: Verdict[Id] = Verdict("new", None, 0.0)
    for other in reversed(known):
        if other.stays:
            continue
        found = share(groups, other.groups)
        if found <= max(threshold, best.similarity) or words.names_others(other.words):
            continue
        if other.is_forgotten or not words.orders_differently(other.words):
            best = Verdict("supersedes", other.id, found)
    return best


def similarity(one: str, other: str) -> float:
    """Return how similar two texts are, from 0 to 1; texts without letters and digits are not similar to any."""
    return share(find_groups(one), find_groups(other))


def find_groups(text: str) -> frozenset[str]:
    """Return the groups of letters that `similarity` compares."""
    return frozenset(list_groups(unicodedata.normalize("NFKC", text).lower()))


def list_groups(text: str) -> Iterator[str]:
    """Yield the groups of letters of a normalised text in lower case; a group can be there more than once."""
    for word in _WORD.finditer(text):
        padded, letters = (f" {word[0]} ", 2) if word["spaceless"] else (f"  {word[0]} ", 3)
        yield from (padded[at : at + letters] for at in range(len(padded) - letters + 1))


def share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which share of the groups of two sets is in both of them, from 0 to 1; 0 if both are empty."""
    either = len(one | other)
    return len(one & other) / either if either else 0.0
