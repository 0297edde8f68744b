"""The texts that the service itself adds to a context. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from app.chats.characters import Characters, list_active

_USE = (
    "Let all of this shape what you know, feel and say, but do not recite it. "
    "Do not claim to remember anything that neither this nor the messages say."
)

_PINNED = '"Pinned Messages" are earlier messages of this conversation, word for word. Keep them in mind.'

_STAMPS = (
    "The date, the time and the name before each message are added by the service. "
    "Do not write them at the beginning of your reply."
)


def word_instruction(
    own: str | None, present: Collection[str], instructions: Mapping[str, str], *, stamped: bool = False
) -> str:
    """Return the instruction that explains the memory segments to the model, or "" if there is nothing to explain.

    `present` has the names of the memory segments to explain, and `instructions` the text about each, by the segment's
    name. With `stamped`, messages have inline timestamps, and the instruction says that the service adds them. If `own`
    is not None, it replaces the whole instruction.
    """
    if own is not None:
        return own if present or stamped else ""
    parts = [text for name, text in instructions.items() if name in present]
    memory = ["\n".join([*parts, _USE])] if parts else []
    return "\n\n".join([*memory, *([_PINNED] if "pinned" in present else []), *([_STAMPS] if stamped else [])])


def word_characters(characters: Characters) -> str:
    """Return the personas of all active characters, each under its name."""
    described = [c for c in list_active(characters) if c.get("persona", "").strip()]
    return "\n\n".join(f"## {character['name']}\n\n{character['persona']}" for character in described)


def word_user(persona: str | None) -> str:
    """Return the user's persona under a heading, or "" if there is none."""
    return f"## User\n\n{persona}" if persona and persona.strip() else ""


def word_time(now: datetime, time_zone: str) -> str:
    """Return a sentence with the time in the chat's time zone, to the minute."""
    return f"It is {now.astimezone(ZoneInfo(time_zone)):%A, %d %B %Y, %H:%M}."
