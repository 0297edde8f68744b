"""Which of a chat's characters are active, which one is the sole character, and which one a request means. Pure.

A disabled character counts nowhere unless a request names it: it is not active, it is never the sole character and so
never the speaker of a message without a name, and no name is written or left out because of it. The chat still has it:
a request may name it, and its own messages keep its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Characters = Sequence[Mapping[str, Any]]
"""`{"name", "persona"?, "disabled"?}` of each of a chat's characters."""


def list_names(characters: Characters) -> list[str]:
    """Return the names of all characters, disabled ones too."""
    return [character["name"] for character in characters]


def list_active(characters: Characters) -> list[Mapping[str, Any]]:
    """Return the characters that are not disabled, in the chat's order."""
    return [character for character in characters if not character.get("disabled")]


def list_disabled(characters: Characters) -> list[str]:
    """Return the names of the disabled characters."""
    return [character["name"] for character in characters if character.get("disabled")]


def is_active(characters: Characters, name: str) -> bool:
    """Whether the chat has the character and it is not disabled.

    A chat that names no characters has one without a name, "", and that one is active.
    """
    return name in list_names(list_active(characters)) if characters else name == ""


def accepts(characters: Characters, name: str) -> bool:
    """Whether a request may name this character: one of the chat's, or any where the chat names no characters."""
    return not characters or name in list_names(characters)


def find_sole(characters: Characters) -> str | None:
    """Return the name of the sole character, the only active one; None if there are none or several."""
    active = list_active(characters)
    return str(active[0]["name"]) if len(active) == 1 else None


def find_meant(characters: Characters, named: str | None) -> str | None:
    """Return the character that a request means: the one that it names, even a disabled one, else the sole one."""
    return find_sole(characters) if named is None else named


def find_persona(characters: Characters, name: str) -> str:
    """Return the character's persona; empty if the chat has none of it."""
    return next((character.get("persona", "") for character in characters if character["name"] == name), "")
