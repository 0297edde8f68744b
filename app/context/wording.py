"""Renders a message as text that contains its speaker or its time, for formats without fields for these. Pure.

A model imitates its earlier replies. If they began with a name, its next reply would too, so the name of a chat's sole
character is left out before its messages. All other names are written: names before the user's messages do not have
this effect, and without them the information would be lost.
"""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from app.chats.characters import Characters, find_sole
from app.chats.settings import ChatSettings
from app.context.calls import tell_calls
from app.context.segments import Entry, Segment, SegmentRole, Speech

_BRACKETED = {"narrator": "Narrator", "system": "System", "tool": "tool"}


def speech_of(settings: ChatSettings, characters: Characters, time_zone: str) -> Speech:
    """Return how to render the messages of a chat."""
    return Speech(settings.timestamps, time_zone, find_sole(characters))


def is_blank(text: str) -> bool:
    """Return whether the text is empty or only white space."""
    return not text or text.isspace()


def given_name(entry: Entry) -> str:
    """Return the message's name on one line, or "". Line breaks could make a name look like another message."""
    name = entry.name or ""
    return name if name.isalnum() else " ".join(name.split())


def word_line(entry: Entry, speech: Speech) -> str:
    """Return a message as a line of a transcript, always with its speaker: `Sakura: …`, `[Narrator] …`."""
    return _join(_stamp(entry, speech), _speaker(entry, speech), entry)


def word_lines(entries: Iterable[Entry], speech: Speech) -> list[str]:
    """Return `word_line` of each message. Each speaker is rendered only once."""
    speakers: dict[tuple[str, str | None], str] = {}
    lines = []
    for entry in entries:
        speaker = speakers.get((entry.role, entry.name))
        if speaker is None:
            speaker = speakers[entry.role, entry.name] = _speaker(entry, speech)
        lines.append(_join(_stamp(entry, speech), speaker, entry))
    return lines


def word_message(entry: Entry, speech: Speech) -> str:
    """Return the text of a message whose role is a field of the format; a name is added if it would be lost otherwise.

    Returns the same object if the text is unchanged. With inline timestamps this is `word_line`.
    """
    if speech.timestamps == "inline":
        return word_line(entry, speech)
    if entry.role in _BRACKETED:
        return _join("", _speaker(entry, speech), entry)
    name = given_name(entry)
    if not name or (entry.role == "assistant" and name == speech.character):
        return _join("", "", entry)
    return _join("", f"{name}: ", entry)


def word_segment(segment: Segment, *plain: SegmentRole) -> str:
    """Return a segment's text, prefixed with its role (`[System] …`) unless that is one of the `plain` roles."""
    return segment.text if segment.role in plain else f"[{segment.role.capitalize()}] {segment.text}"


def _join(stamp: str, speaker: str, entry: Entry) -> str:
    text = entry.text
    if entry.tool_calls:
        told = tell_calls(entry)
        text = told if is_blank(text) else f"{text}\n{told}"
    return text if is_blank(text) or not (stamp or speaker) else f"{stamp}{speaker}{text}"


def _speaker(entry: Entry, speech: Speech) -> str:
    name = given_name(entry)
    if entry.role in _BRACKETED:
        return f"[{name or _BRACKETED[entry.role]}] "
    if entry.role == "assistant":
        return f"{name or speech.character or 'Assistant'}: "
    return f"{name or speech.user_name or 'User'}: "


def _stamp(entry: Entry, speech: Speech) -> str:
    if speech.timestamps == "off":
        return ""
    at = _local(datetime.fromisoformat(entry.sent_at), speech.time_zone)
    return f"[{at.month:02}/{at.day:02} {at.hour:02}:{at.minute:02}] "


def _local(at: datetime, time_zone: str) -> datetime:
    try:
        return at.astimezone(ZoneInfo(time_zone))
    except OverflowError:  # within hours of the first or last datetime that Python can represent
        return at
