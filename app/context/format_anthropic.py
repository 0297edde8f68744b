"""The `anthropic` format: system blocks before the history, then alternating user and assistant messages. Pure.

The format has no other roles and no names, so they are written into the text. Every piece is a separate block, so that
it can have `cache_control`. Trailing white space is removed from all assistant texts: the API rejects a prefill that
ends with it, and a message must not change when it is no longer the last one, or the cache after it is lost.
"""

from collections.abc import Container, Sequence
from typing import Any

from app.context.blocks import Part, Piece, count_text
from app.context.segments import Entry, Manner, Segment
from app.context.wording import word_message, word_segment

OPENING = "[The conversation so far]"
"""The user text inserted before a conversation that begins with the assistant."""

CLOSING = "[Continue]"
"""The user text appended to a conversation that ends with the assistant, unless it is a prefill."""


def put(segment: Segment, part: Part) -> tuple[str, str]:
    """Return the role and the text of a segment. If its role is not possible in this part, the text begins with it."""
    if part == "prefix":
        return "system", word_segment(segment, "system")
    if part == "volatile":
        return "user", word_segment(segment, "system", "user")
    if segment.role == "assistant":
        return "assistant", segment.text.rstrip()
    return "user", word_segment(segment, "user")


def say(entry: Entry, part: Part, manner: Manner) -> Piece:
    """Return the piece of a message."""
    text = word_message(entry, manner.speech)
    role = "assistant" if entry.role == "assistant" else "user"
    if role == "assistant":
        text = text.rstrip()
    return Piece(entry, part, role, text, count_text(entry, text, manner.count))


def complete(talk: list[Piece], manner: Manner) -> list[Piece]:
    """Return the conversation so that it begins with the user and, unless it is a prefill, ends with the user.

    Volatile segments come before the newest message or before the closing text. In a prefill they go into the last
    user message.
    """
    said = [piece for piece in talk if piece.part != "volatile"]
    if not said or said[-1].role != "assistant":
        return _open(talk, manner)
    if not manner.prefill:
        return [*_open(talk, manner), _fixed(CLOSING, manner)]
    said = _open(said, manner)
    last = max(index for index, piece in enumerate(said) if piece.role == "user")
    return [*said[:last], *(piece for piece in talk if piece.part == "volatile"), *said[last:]]


def lay(pieces: Sequence[Piece], breaks: Container[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the system blocks and the messages, with `cache_control` on the pieces whose indexes are in `breaks`."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for index, piece in enumerate(pieces):
        block: dict[str, Any] = {"type": "text", "text": piece.text}
        if index in breaks:
            block["cache_control"] = {"type": "ephemeral"}
        if piece.part == "prefix":
            system.append(block)
        elif messages and messages[-1]["role"] == piece.role:
            messages[-1]["content"].append(block)
        else:
            messages.append({"role": piece.role, "content": [block]})
    return system, messages


def _open(talk: list[Piece], manner: Manner) -> list[Piece]:
    return [_fixed(OPENING, manner), *talk] if talk and talk[0].role == "assistant" else talk


def _fixed(text: str, manner: Manner) -> Piece:
    return Piece(None, "fixed", "user", text, manner.count(text))
