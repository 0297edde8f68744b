"""Chooses the most important memories, each from the nearest scope that has it. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from app.knowledge.known import drop_repeated

LEAST_IMPORTANCE = 0.7
"""A memory is important from this importance on. When one arrives, the most important memories are chosen again."""

MOST = 50
"""The maximum number of memories that are read from one scope, and that are chosen from all scopes."""

MOST_EXAMINED = 200
"""The maximum number of statements below LEAST_IMPORTANCE that are examined in one scope, live or not."""


class Important(NamedTuple):
    """One of the most important memories of a scope.

    Attributes:
        rank: The rank of the scope (`known.SCOPES`).
        character: The current name of the character in the scope `character`; None in the others.
        key: The id of the memory.
        statement_id: The id of the statement with its text, as a UUID, or as text if it was read from JSON.
        content: The text.
        importance: From 0 to 1.
        learnt_us: When the text was learnt, in microseconds since 1970.

    """

    rank: int
    character: str | None
    key: str
    statement_id: Any
    content: str
    importance: float
    learnt_us: int


def choose_important(found: Iterable[Important], character: str | None) -> list[Important]:
    """Return the memories that count, up to `MOST`: the most important first, and of equal ones the newest first.

    If several scopes have a memory, or memories with the same text, that of the nearest scope counts. Of memories with
    the same text, it takes the place of the most important one. Memories of the scope `character` count only if they
    are about the given character; if it is None, none of them counts.
    """
    nearest: dict[str, Important] = {}
    for one in found:
        if one.character not in (None, character):
            continue
        before = nearest.get(one.key)
        if before is None or (-one.rank, *_age(one)) > (-before.rank, *_age(before)):
            nearest[one.key] = one
    listed = sorted(nearest.values(), key=lambda one: (one.importance, *_age(one)), reverse=True)
    if len({one.rank for one in listed}) > 1:
        listed = drop_repeated(listed)
    return listed[:MOST]


def sort_by_age(memories: Iterable[Important]) -> Sequence[Important]:
    """Return memories, the oldest first."""
    return sorted(memories, key=_age)


def _age(one: Important) -> tuple[int, Any]:
    return one.learnt_us, one.statement_id
