"""The `segments` format, and the list of segments that every format includes. Pure.

With this format the caller builds its own prompt: each segment has a role, and the history is one transcript.
"""

from collections.abc import Sequence
from typing import Any

from app.context.blocks import Block, Part, count_text
from app.context.segments import HistoryMessage, RenderOptions, Segment, TranscriptStyle
from app.context.wording import word_line, word_lines, word_message


def render_message(entry: HistoryMessage, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of a message: a transcript line, which names the speaker.

    The newest message has a role of its own, so its text begins with the speaker only if the message has a name, or if
    timestamps are inline.
    """
    text = word_message(entry, render_options.style) if part == "newest" else word_line(entry, render_options.style)
    return Block(entry, part, entry.role, text, count_text(entry, text, render_options.count))


def list_segments(blocks: Sequence[Block], stable: int, style: TranscriptStyle) -> list[dict[str, Any]]:
    """Return a row for each segment; the history is one row, whose text is a transcript and whose role is null.

    `tokens` counts the text in the context's format, without the overhead of messages. `stable` is the number of blocks
    at the start that stay the same in the next turn. A segment is `cacheable` if it is one of these blocks; the history
    is `cacheable` if its first message is one of them. A segment among the messages is not in the transcript: its
    `depth` says where it belongs.
    """
    rows: list[dict[str, Any]] = []
    history = [block for block in blocks if block.part == "history"]
    for index, block in enumerate(blocks):
        if block.part == "history":
            if block is history[0]:
                rows.append(_history_row(history, index < stable, style))
        elif isinstance(block.of, Segment):
            rows.append(_segment_row(block.of, block.tokens, index < stable))
        elif block.part == "newest":
            rows.append(_row("newest", "user", block.text, block.tokens, index < stable, [block.mark]))
    return rows


def _segment_row(segment: Segment, tokens: int, cacheable: bool) -> dict[str, Any]:
    row = _row(segment.name, segment.role, segment.text, tokens, cacheable, list(segment.sources))
    if segment.after == "in_chat":
        row["depth"] = segment.depth
    if segment.scan is not None:
        row["scan"] = segment.scan
    return row


def _history_row(history: Sequence[Block], cacheable: bool, style: TranscriptStyle) -> dict[str, Any]:
    return _row(
        "history",
        None,
        "\n".join(word_lines([block.of for block in history if isinstance(block.of, HistoryMessage)], style)),
        sum([block.tokens for block in history]),
        cacheable,
        [block.mark for block in history],
    )


def _row(name: str, role: str | None, text: str, tokens: int, cacheable: bool, sources: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "text": text,
        "tokens": tokens,
        "cacheable": cacheable,
        "sources": sources,
    }
