"""The texts that the service itself puts into a context. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from app.chats.characters import Characters, list_active

_USE = (
    "Let it all shape what you know, feel and say; do not recite it, "
    "and do not claim to remember what neither it nor the messages say."
)

_PINNED = (
    'Under "Pinned Messages" stand earlier messages of this conversation, word for word; they are to be kept in mind.'
)


def word_instruction(own: str | None, present: Collection[str], instructions: Mapping[str, str]) -> str:
    """How the model is to use its memory, of which the segments of the names in `present` are in the context.

    `instructions` says something of each, by the segment's name. Nothing where there is no memory; `own` (if not None)
    instead of all of it.
    """
    if own is not None:
        return own if present else ""
    parts = [text for name, text in instructions.items() if name in present]
    memory = ["\n".join([*parts, _USE])] if parts else []
    return "\n\n".join([*memory, _PINNED] if "pinned" in present else memory)


def word_characters(characters: Characters) -> str:
    """The personas of all active characters, each under its name."""
    told = [c for c in list_active(characters) if c.get("persona", "").strip()]
    return "\n\n".join(f"## {character['name']}\n\n{character['persona']}" for character in told)


def word_user(persona: str | None) -> str:
    """Who the user is."""
    return f"## User\n\n{persona}" if persona and persona.strip() else ""


def word_time(now: datetime, time_zone: str) -> str:
    """The time of the chat, to the minute."""
    return f"It is {now.astimezone(ZoneInfo(time_zone)):%A, %d %B %Y, %H:%M}."
