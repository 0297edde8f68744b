"""Selects a chat's active characters, the sole character, and the character that a request means. Pure.

An active character is one that is not disabled; the sole character is the only active one. A disabled character is
ignored unless a request names it: a message without a name is never its message, and a context does not count the
character when it decides whether to write the names of speakers. The character's own messages keep its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Characters = Sequence[Mapping[str, Any]]
"""Each of a chat's characters, as `character_list.py` describes it."""


SPEAKING_ROLES = frozenset({"assistant", "narrator", "system"})
"""The roles whose messages have the name of a character. A user message has the name of a person, a tool message has
the name of a function."""


class Renamed(NamedTuple):
    """A character whose messages are hashed with another name than its present one (`character_list.py` says when).

    Attributes:
        name: Its current name.
        hashed_name: The name with which its messages are hashed.

    """

    name: str
    hashed_name: str


def list_names(characters: Characters) -> list[str]:
    """Return the names of all characters, disabled ones too."""
    return [character["name"] for character in characters]


def list_known_names(characters: Characters, user_name: str | None) -> list[str]:
    """Return the names of all characters, disabled ones too, and of the user, if it has one."""
    return [*list_names(characters), *([user_name] if user_name else ())]


def list_aliases(character: Mapping[str, Any]) -> list[str]:
    """Return the former names of a character, newest last."""
    return list(character.get("aliases") or ())


def map_renamed(characters: Characters) -> dict[str, Renamed]:
    """Return the characters with a `hashed_name`, by their current names and by their former ones."""
    return {
        name: Renamed(character["name"], character["hashed_name"])
        for character in characters
        if "hashed_name" in character
        for name in (*list_aliases(character), character["name"])
    }


def list_active(characters: Characters) -> list[Mapping[str, Any]]:
    """Return the characters that are not disabled, in the chat's order."""
    return [character for character in characters if not character.get("disabled")]


def list_disabled(characters: Characters) -> list[str]:
    """Return the names of the disabled characters."""
    return [character["name"] for character in characters if character.get("disabled")]


def is_active(characters: Characters, name: str) -> bool:
    """Return whether the chat has the character and it is not disabled.

    A chat without named characters has one character, whose name is "" and which is active.
    """
    return name in list_names(list_active(characters)) if characters else name == ""


def accepts(characters: Characters, name: str) -> bool:
    """Return whether a request may name this character: one of the chat's, or any if the chat has none."""
    return not characters or current_name(characters, name) in list_names(characters)


def word_unknown(characters: Characters) -> str:
    """Return what is wrong with a name that `accepts` refuses, as the end of a sentence that begins with the field."""
    return f"must be one of this chat's characters: {quote_names(characters)}"


def quote_names(characters: Characters) -> str:
    """Return the names of all characters in quotation marks, as errors list them."""
    return ", ".join(f"“{name}”" for name in list_names(characters))


def current_name(characters: Characters, named: str) -> str:
    """Return the current name of a character, given any of its names; another name is returned as it is."""
    return next((str(one["name"]) for one in characters if named in list_aliases(one)), named)


def find_sole(characters: Characters) -> str | None:
    """Return the name of the only active character; None if there are none or several."""
    active = list_active(characters)
    return str(active[0]["name"]) if len(active) == 1 else None


def find_meant(characters: Characters, named: str | None) -> str | None:
    """Return the character that a request means: the one it names, even if disabled, or else the sole one."""
    return find_sole(characters) if named is None else current_name(characters, named)


def find_persona(characters: Characters, name: str) -> str:
    """Return the persona of a character; empty if it has none, or if the chat has no such character."""
    return next((character.get("persona", "") for character in characters if character["name"] == name), "")


def name_speakers(characters: Characters, user_name: str | None) -> dict[str, str]:
    """Return, by role, the name that a message gets if it has none of its own."""
    return {
        "user": " ".join((user_name or "").split()) or "User",
        "assistant": find_sole(characters) or "Assistant",
        "narrator": "Narrator",
    }


def word_spoken(text: str, role: str | None, name: str | None, speakers: Mapping[str, str]) -> str:
    """Return a text; if it is the text of a message, which has a role, the speaker precedes it."""
    if role is None:
        return text
    speaker = " ".join((name or "").split()) or speakers.get(role, role)
    return f"{speaker}: {text}"
