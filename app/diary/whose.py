"""Whose diary a request means."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.kit.errors import Invalid

Cast = Sequence[Mapping[str, Any]]
"""`{"name", "persona"?, "disabled"?}` of each of a chat's characters."""


def choose_character(cast: Cast, given: str | None, *, part: str) -> str:
    """The name of the character that is meant; empty for the one diary of a chat that names no characters.

    `part` is where the request says it: `body` or `query`. Raises Invalid for a name that is none of the chat's, or
    for none where it could be one of several.
    """
    names = [character["name"] for character in cast]
    if given is not None:
        if names and given not in names:
            raise _unclear(part, f"is none of this chat's characters, which are {_listed(names)}")
        return given
    if not names:
        return ""
    only = find_only(cast)
    if only is None:
        raise _unclear(part, f"is needed to tell whose diary is meant: {_listed(names)}")
    return only


def find_only(cast: Cast) -> str | None:
    """The only character that is not disabled, if it is the only one."""
    active = [str(character["name"]) for character in cast if not character.get("disabled")]
    return active[0] if len(active) == 1 else None


def may_be_told(cast: Cast, name: str) -> bool:
    """Whether the diary can stand in a prompt: one of the chat's characters can be asked for, or nobody in particular.

    In a chat that names nobody, anybody can.
    """
    return not cast or not name or any(character["name"] == name for character in cast)


def is_active(cast: Cast, name: str) -> bool:
    """Whether the character is in the chat and not disabled; the diary of nobody is where nobody is named."""
    if not cast:
        return name == ""
    return any(character["name"] == name and not character.get("disabled") for character in cast)


def find_persona(cast: Cast, name: str) -> str:
    """Who the character is; empty if the chat does not say."""
    return next((character.get("persona", "") for character in cast if character["name"] == name), "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)


def _unclear(part: str, message: str) -> Invalid:
    return Invalid(f"character: {message}", errors=[{"loc": [part, "character"], "msg": message}])
