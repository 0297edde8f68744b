"""Chooses the diary that a request refers to."""

from app.chats.characters import Characters, accepts, find_meant, quote_names, word_unknown
from app.kit.errors import Invalid


def choose_diary(characters: Characters, named: str | None, *, part: str) -> str:
    """Return the name of the character whose diary a request refers to; empty if neither names one.

    `part` is the part of the request that names it: `body` or `query`. Raises Invalid if the chat has characters, but
    none of that name, or if the request names none and the chat has no sole character.
    """
    if named is not None and not accepts(characters, named):
        raise _unclear(part, word_unknown(characters))
    meant = find_meant(characters, named)
    if meant is None and characters:
        raise _unclear(part, f"is required to choose a diary: {quote_names(characters)}")
    return meant or ""


def _unclear(part: str, message: str) -> Invalid:
    return Invalid(f"character: {message}", errors=[{"loc": [part, "character"], "msg": message}])
