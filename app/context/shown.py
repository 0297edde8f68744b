"""Whose prompt a context is. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any


def choose_character(characters: Sequence[Mapping[str, Any]], asked: str | None) -> str | None:
    """Whose prompt it is: who was asked for, else the only character that is not disabled, else nobody."""
    if asked is not None:
        return asked
    names: list[str] = [character["name"] for character in characters if not character.get("disabled")]
    return names[0] if len(names) == 1 else None
