"""Renders a message as text that contains its speaker or its time, for formats without fields for these. Pure.

A model imitates its earlier replies. If they began with a name, its next reply would too, so in formats with roles a
sole character's name is left out, unless times are inline. All other names are written: names before the user's
messages do not have this effect, and without them the model would not know who speaks.
"""

from collections.abc import Iterable
from datetime import datetime

from app.chats.characters import Characters, find_sole
from app.chats.settings import ChatSettings
from app.context.calls import word_calls
from app.context.segments import HistoryMessage, Segment, SegmentRole, TranscriptStyle
from app.summarising.times import to_local

_BRACKETED = {"narrator": "Narrator", "system": "System", "tool": "tool"}


def style_of(settings: ChatSettings, characters: Characters, time_zone: str, user_name: str | None) -> TranscriptStyle:
    """Return how to render the messages of a chat."""
    return TranscriptStyle(settings.timestamps, time_zone, find_sole(characters), " ".join((user_name or "").split()))


def is_blank(text: str) -> bool:
    """Return whether the text is empty or only white space."""
    return not text or text.isspace()


def given_name(entry: HistoryMessage) -> str:
    """Return the message's name on one line, or "". Line breaks could make a name look like another message."""
    name = entry.name or ""
    return name if name.isalnum() else " ".join(name.split())


def word_line(entry: HistoryMessage, style: TranscriptStyle) -> str:
    """Return a message as a line of a transcript, always with its speaker: `Sakura: …`, `[Narrator] …`."""
    return _join(_stamp(entry, style), _speaker(entry, style), entry)


def word_lines(entries: Iterable[HistoryMessage], style: TranscriptStyle) -> list[str]:
    """Return `word_line` of each message. A speaker's prefix (`Sakura: `) is computed once for all of its lines."""
    speakers: dict[tuple[str, str | None], str] = {}
    lines = []
    for entry in entries:
        speaker = speakers.get((entry.role, entry.name))
        if speaker is None:
            speaker = speakers[entry.role, entry.name] = _speaker(entry, style)
        lines.append(_join(_stamp(entry, style), speaker, entry))
    return lines


def word_message(entry: HistoryMessage, style: TranscriptStyle) -> str:
    """Return the text of a message for a format with a field for the role. A name that would be lost is added.

    Returns the same object if the text is unchanged. With inline timestamps this is `word_line`.
    """
    if style.timestamps == "inline":
        return word_line(entry, style)
    if entry.role in _BRACKETED:
        return _join("", _speaker(entry, style), entry)
    name = given_name(entry)
    if not name or (entry.role == "assistant" and name == style.character):
        return _join("", "", entry)
    return _join("", f"{name}: ", entry)


def word_segment(segment: Segment, *plain: SegmentRole) -> str:
    """Return a segment's text, prefixed with its role (`[System] …`) unless that is one of the `plain` roles."""
    return segment.text if segment.role in plain else f"[{segment.role.capitalize()}] {segment.text}"


def _join(stamp: str, speaker: str, entry: HistoryMessage) -> str:
    text = entry.text
    if entry.tool_calls:
        calls_text = word_calls(entry)
        text = calls_text if is_blank(text) else f"{text}\n{calls_text}"
    return text if is_blank(text) or not (stamp or speaker) else f"{stamp}{speaker}{text}"


def _speaker(entry: HistoryMessage, style: TranscriptStyle) -> str:
    name = given_name(entry)
    if entry.role in _BRACKETED:
        return f"[{name or _BRACKETED[entry.role]}] "
    if entry.role == "assistant":
        return f"{name or style.character or 'Assistant'}: "
    return f"{name or style.user_name or 'User'}: "


def _stamp(entry: HistoryMessage, style: TranscriptStyle) -> str:
    if style.timestamps == "off":
        return ""
    at = to_local(datetime.fromisoformat(entry.sent_at), style.time_zone)
    return f"[{at.month:02}/{at.day:02} {at.hour:02}:{at.minute:02}] "
