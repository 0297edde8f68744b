"""The texts that the service itself puts into a context. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

INSTRUCTION = """\
Under "Memo Book" stands what you remember of this conversation before the messages below, oldest first. \
It was said or happened there, or the user wrote it so. Let it shape what you know, feel and say; do not recite it, \
and do not claim to remember what neither it nor the messages say."""


PINNED_INSTRUCTION = """\
Under "Pinned Messages" stand earlier messages of this conversation, word for word; they are to be kept in mind."""


def word_instruction(own: str | None, *, memos: bool, pinned: bool) -> str:
    """How the model is to use what it remembers; nothing where there is nothing, `own` (if not None) instead."""
    if own is not None:
        return own if memos or pinned else ""
    return "\n\n".join([INSTRUCTION] * memos + [PINNED_INSTRUCTION] * pinned)


def word_characters(characters: Sequence[Mapping[str, Any]]) -> str:
    """The personas of all characters that are not disabled, each under its name."""
    told = [c for c in characters if c.get("persona", "").strip() and not c.get("disabled")]
    return "\n\n".join(f"## {character['name']}\n\n{character['persona']}" for character in told)


def word_user(persona: str | None) -> str:
    """Who the user is."""
    return f"## User\n\n{persona}" if persona and persona.strip() else ""


def word_time(now: datetime, time_zone: str) -> str:
    """The time of the chat, to the minute."""
    return f"It is {now.astimezone(ZoneInfo(time_zone)):%A, %d %B %Y, %H:%M}."
