"""How a message is worded where the format does not say who speaks, or when. Pure.

A model learns the form of its replies from its own former ones, so the name of a chat's sole character is
not written before them, or the next reply begins with it too. Every other given name is: before the user's
messages it teaches the model nothing of the kind, and left out it would be lost.
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
    """How the messages of a chat are worded."""
    return Speech(settings.timestamps, time_zone, find_sole(characters))


def is_blank(text: str) -> bool:
    """Whether there is nothing to read in it."""
    return not text or text.isspace()


def given_name(entry: Entry) -> str:
    """Who speaks, if it was said: on one line, so that no name can pose as another message; else empty."""
    name = entry.name or ""
    return name if name.isalnum() else " ".join(name.split())


def word_line(entry: Entry, speech: Speech) -> str:
    """A message as a line of a transcript, always with who says it: `Sakura: …`, `[Narrator] …`."""
    return _join(_stamp(entry, speech), _speaker(entry, speech), entry)


def word_lines(entries: Iterable[Entry], speech: Speech) -> list[str]:
    """`word_line` of each; who says it is put into words once for all that say the same of it."""
    speakers: dict[tuple[str, str | None], str] = {}
    lines = []
    for entry in entries:
        speaker = speakers.get((entry.role, entry.name))
        if speaker is None:
            speaker = speakers[entry.role, entry.name] = _speaker(entry, speech)
        lines.append(_join(_stamp(entry, speech), speaker, entry))
    return lines


def word_message(entry: Entry, speech: Speech) -> str:
    """A message whose role the format says: only a name that would be lost stands before it.

    Unchanged text is the very same object. With inline timestamps it is `word_line`.
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
    """A segment's text, marked with its role, `[System] …`, unless it is one of the `plain` roles."""
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
    except OverflowError:  # in the first or the last hours that a datetime can hold
        return at
