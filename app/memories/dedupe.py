"""Finds out whether a statement is already known. Pure.

The similarity is that of PostgreSQL's `pg_trgm`: the share of the three-letter groups that two texts have in common,
each word padded with two spaces before and one after. Chinese and Japanese words are not divided by spaces, and a group
of three of their characters would be too coarse, so they are compared in groups of two. `pg_trgm` itself is not used:
in a database with the LC_CTYPE C it ignores all letters that are not ASCII. Databases that were created before ADR
0038, or by an operator, can have this LC_CTYPE.
"""

import re
import unicodedata
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

from app.knowledge.known import fold
from app.memories.opposites import say_opposite
from app.memories.words import MARKS, Words

DEDUPE_THRESHOLD = 0.85

Id = TypeVar("Id", bound=Hashable)

_SPACELESS = "々\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"(?P<spaceless>[{_SPACELESS}]+)|(?:[^\W_{_SPACELESS}]|[{MARKS}])+")


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
    def folded(self) -> str:
        """Its text without differences in case, white space and compatibility forms (`fold`)."""
        return fold(self.content)


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


def compare(
    content: str,
    known: Sequence[Known[Id]],
    *,
    threshold: float = DEDUPE_THRESHOLD,
    known_names: Collection[str] = (),
) -> Verdict[Id]:
    """Return what to do with a new statement; `known` are the statements to compare it with, oldest first.

    Statements are duplicates if they have the same characters, except for case, white space and compatibility forms.
    Otherwise the most similar known statement is superseded if its similarity is above `threshold`; if several are
    equally similar, the newest. A statement that `stays` is never superseded. Nor is a statement if each of the two
    texts has a name that the other lacks (“Ida”, “Eva”; `Words`), or if the names that both contain are in different
    orders (`Words.orders_differently`; for a forgotten text, the order does not matter). Such texts can be about other
    people, or about the same people in other roles. A forgotten text is not superseded if the two texts say the
    opposite (`say_opposite`). A text with other numbers counts as a correction. `known_names` are names of people that
    the texts may contain. In scripts without small letters, no other names are recognised.
    """
    written = fold(content)
    for other in reversed(known):
        if other.folded == written:
            return Verdict("duplicate", other.id, 1.0)
    groups, words = find_groups(content), Words.of(content, known_names)
    best: Verdict[Id] = Verdict("new", None, 0.0)
    for other in reversed(known):
        if other.stays:
            continue
        found = share(groups, other.groups)
        if found <= max(threshold, best.similarity):
            continue
        others = Words.of(other.content, known_names)
        if words.names_others(others, is_forgotten=other.is_forgotten):
            continue
        is_other = say_opposite(content, other.content) if other.is_forgotten else words.orders_differently(others)
        if not is_other:
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
