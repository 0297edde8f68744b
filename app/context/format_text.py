"""The `text` format: one readable string, in which each message begins with its speaker. Pure."""

from collections.abc import Sequence

from app.context.blocks import Part, Piece, count_text
from app.context.segments import Entry, Manner, Segment
from app.context.wording import word_line, word_segment


def put(segment: Segment, part: Part) -> tuple[str, str]:
    """Return the role and the text of a segment. Among the messages the text always begins with the role."""
    return segment.role, word_segment(segment) if part == "in_chat" else word_segment(segment, "system")


def say(entry: Entry, part: Part, manner: Manner) -> Piece:
    """Return the piece of a message."""
    text = word_line(entry, manner.speech)
    return Piece(entry, part, entry.role, text, count_text(entry, text, manner.count))


def lay(pieces: Sequence[Piece]) -> str:
    """Return the whole text, with one message per line and an empty line around each segment."""
    parts: list[str] = []
    after_message = False
    for piece in pieces:
        is_message = isinstance(piece.of, Entry)
        if parts:
            parts.append("\n" if is_message and after_message else "\n\n")
        parts.append(piece.text)
        after_message = is_message
    return "".join(parts)
