"""What is known, and which of several scopes decides. Pure.

A statement is something that is known in a scope, such as a fact. A message *taught* a statement if the statement was
learnt from it. A statement that a person set is always live. Any other statement is live while at least one message
that taught it *counts*. A message counts while it still has the same text, is not hidden by a person, and is on the
line that is read, or on the current line of another chat (`liveness.py`).
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from app.chats.settings import Scope

SCOPES: Sequence[Scope] = ("chat", "character", "user", "global")
"""The names of the scopes, the nearest first; the position of a name is its rank."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Known(NamedTuple):
    """A live statement of a key in one scope: the newest one, unless a query also returns former ones.

    Attributes:
        rank: The rank of the scope (`SCOPES`).
        character: The current name of the character in the scope `character`; None in the others.
        key: The key, for example the name of a fact or the label of a block.
        statement_id: The statement's id, as a UUID, or as text if it was read from JSON.
        content: What it says; None if it says that the key has no value any more.
        tokens: The tokens of its line in a prompt.
        origin: Who wrote it.
        edited: Whether a person wrote it over a value of a tool or of the service.
        learnt_us: When it was learnt, in microseconds since 1970.
        operation: For a block, what it does with the text of the block; None for facts and memories, whose statements
            are whole values.
        pattern: What `search_replace` looks for; None for the other operations.

    """

    rank: int
    character: str | None
    key: str
    statement_id: Any
    content: str | None
    tokens: int
    origin: str
    edited: bool
    learnt_us: int
    operation: str | None = None
    pattern: str | None = None

    @property
    def scope(self) -> Scope:
        """The name of the scope."""
        return SCOPES[self.rank]

    @property
    def learnt_at(self) -> datetime:
        """When it was learnt."""
        return _EPOCH + timedelta(microseconds=self.learnt_us)


class Rating(NamedTuple):
    """The category, importance and tags of a fact that the service learnt; None and () if a person or a tool set it."""

    category: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] = ()


def choose_nearest(known: Iterable[Known], character: str | None) -> Mapping[str, Known]:
    """Return the statement that holds for each key: the newest one of the nearest scope.

    If the statement that decides takes the value away, the key is left out, even if a wider scope has a value for it.
    Statements of the scope `character` count only if they are about the given character; if it is None, none of them
    counts.
    """
    return {key: one for key, one in choose_deciding(known, character).items() if one.content is not None}


def choose_deciding(known: Iterable[Known], character: str | None) -> dict[str, Known]:
    """Return what `choose_nearest` returns, including statements that take a value away."""
    deciding: dict[str, Known] = {}
    for one in known:
        if one.character is not None and one.character != character:
            continue
        before = deciding.get(one.key)
        if before is None or _order(one) > _order(before):
            deciding[one.key] = one
    return deciding


def _order(one: Known) -> tuple[Any, ...]:
    return -one.rank, one.learnt_us, one.statement_id


class TextOfScope(Protocol):
    """A text that is known in a scope."""

    @property
    def rank(self) -> int:
        """The rank of the scope (`SCOPES`)."""

    @property
    def content(self) -> str:
        """The text."""


Text = TypeVar("Text", bound=TextOfScope)


def drop_repeated(found: Iterable[Text]) -> list[Text]:
    """Return texts, each once (`fold`): that of the nearest scope, and of several in this scope the first one.

    It takes the place of the first text that is equal to it.
    """
    nearest: dict[str, Text] = {}
    for one in found:
        folded = fold(one.content)
        if folded not in nearest or one.rank < nearest[folded].rank:
            nearest[folded] = one
    return list(nearest.values())


def fold(text: str) -> str:
    """Return a text in a form that is equal for duplicates: case, white space and compatibility forms do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
