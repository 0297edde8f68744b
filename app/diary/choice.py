"""Chooses the diary that a request refers to."""

from collections.abc import Sequence

from app.chats.characters import Characters, accepts, find_meant, list_names
from app.kit.errors import Invalid


def choose_diary(characters: Characters, named: str | None, *, part: str) -> str:
    """Return the name of the character whose diary a request refers to; empty if neither names one.

    `part` is the part of the request that names it: `body` or `query`. Raises Invalid if the chat has characters, but
    none of that name, or if the request names none and the chat has no sole character.
    """
    if named is not None and not accepts(characters, named):
        raise _unclear(part, f"must be one of this chat's characters: {_quoted(list_names(characters))}")
    meant = find_meant(characters, named)
    if meant is None and characters:
        raise _unclear(part, f"is required to choose a diary: {_quoted(list_names(characters))}")
    return meant or ""


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)


def _unclear(part: str, message: str) -> Invalid:
    return Invalid(f"character: {message}", errors=[{"loc": [part, "character"], "msg": message}])
