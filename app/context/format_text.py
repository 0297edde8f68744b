"""The `text` format: one readable string, each message a line that begins with who says it. Pure."""

from collections.abc import Sequence

from app.context.pieces import Part, Piece, count_text
from app.context.segments import Entry, Manner, Segment
from app.context.wording import word_line, word_segment


def put(segment: Segment, part: Part) -> tuple[str, str]:
    """Role and text of a segment; among the messages it says who speaks, as they do."""
    return segment.role, word_segment(segment) if part == "in_chat" else word_segment(segment, "system")


def say(entry: Entry, part: Part, manner: Manner) -> Piece:
    """The piece of a message."""
    text = word_line(entry, manner.speech)
    return Piece(entry, part, entry.role, text, count_text(entry, text, manner.count))


def lay(pieces: Sequence[Piece]) -> str:
    """The whole text: a line a message, an empty line around each segment."""
    parts: list[str] = []
    after_message = False
    for piece in pieces:
        is_message = isinstance(piece.of, Entry)
        if parts:
            parts.append("\n" if is_message and after_message else "\n\n")
        parts.append(piece.text)
        after_message = is_message
    return "".join(parts)
