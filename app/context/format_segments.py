"""The `segments` format, and the list of segments that every format includes. Pure.

With this format the caller builds its own prompt: each segment has a role, and the history is one transcript.
"""

from collections.abc import Sequence
from typing import Any

from app.context.blocks import Part, Piece, count_text
from app.context.segments import Entry, Manner, Segment, Speech
from app.context.wording import word_line, word_lines, word_message


def say(entry: Entry, part: Part, manner: Manner) -> Piece:
    """Return the piece of a message: a transcript line, or only the text of the newest message, which has a role."""
    text = word_message(entry, manner.speech) if part == "newest" else word_line(entry, manner.speech)
    return Piece(entry, part, entry.role, text, count_text(entry, text, manner.count))


def list_segments(pieces: Sequence[Piece], stable: int, speech: Speech) -> list[dict[str, Any]]:
    """Return a row for each segment; the history is one row, whose text is a transcript and whose role is null.

    `tokens` counts the text in the context's format, without the overhead of messages. `stable` is the number of pieces
    at the start that stay the same in the next turn; only these are `cacheable`. A segment among the messages has a
    `depth`, because the transcript does not contain it.
    """
    rows: list[dict[str, Any]] = []
    history = [piece for piece in pieces if piece.part == "history"]
    for index, piece in enumerate(pieces):
        if piece.part == "history":
            if piece is history[0]:
                rows.append(_history_row(history, index < stable, speech))
        elif isinstance(piece.of, Segment):
            rows.append(_segment_row(piece.of, piece.tokens, index < stable))
        elif piece.part == "newest":
            rows.append(_row("newest", "user", piece.text, piece.tokens, index < stable, [piece.mark]))
    return rows


def _segment_row(segment: Segment, tokens: int, cacheable: bool) -> dict[str, Any]:
    row = _row(segment.name, segment.role, segment.text, tokens, cacheable, list(segment.sources))
    if segment.after == "in_chat":
        row["depth"] = segment.depth
    if segment.scan is not None:
        row["scan"] = segment.scan
    return row


def _history_row(history: Sequence[Piece], cacheable: bool, speech: Speech) -> dict[str, Any]:
    return _row(
        "history",
        None,
        "\n".join(word_lines([piece.of for piece in history if isinstance(piece.of, Entry)], speech)),
        sum([piece.tokens for piece in history]),
        cacheable,
        [piece.mark for piece in history],
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
