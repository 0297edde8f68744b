"""The `text` format: one readable string, in which each message begins with its speaker. Pure."""

from collections.abc import Sequence

from app.context.blocks import Block, Part, count_text
from app.context.segments import HistoryMessage, RenderOptions, Segment
from app.context.wording import word_line, word_segment


def render_segment(segment: Segment, part: Part) -> tuple[str, str]:
    """Return the role and the text of a segment. Among the messages the text always begins with the role."""
    return segment.role, word_segment(segment) if part == "in_chat" else word_segment(segment, "system")


def render_message(entry: HistoryMessage, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of a message."""
    text = word_line(entry, render_options.style)
    return Block(entry, part, entry.role, text, count_text(entry, text, render_options.count))


def assemble(blocks: Sequence[Block]) -> str:
    """Return the whole text. Each message begins on a new line, and an empty line is around each segment."""
    parts: list[str] = []
    after_message = False
    for block in blocks:
        is_message = isinstance(block.of, HistoryMessage)
        if parts:
            parts.append("\n" if is_message and after_message else "\n\n")
        parts.append(block.text)
        after_message = is_message
    return "".join(parts)
