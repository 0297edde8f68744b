"""Decides for which characters the service writes an entry about a period (`changes.py`). Pure."""

from collections.abc import Iterable

from app.chats.characters import Characters, find_sole, list_active, list_names


def choose_writers(characters: Characters, speakers: Iterable[str | None]) -> list[str]:
    """Return the active characters that spoke, in the chat's order.

    A chat that names no characters has one unnamed diary. A message without a name belongs to the sole character.
    """
    spoke = set(speakers)
    if not characters:
        return [""] if spoke else []
    if None in spoke and (sole := find_sole(characters)):
        return [sole]
    return [name for name in list_names(list_active(characters)) if name in spoke]
