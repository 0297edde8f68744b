"""Pinned messages: kept verbatim in a segment of their own once they are out of the history. Pure.

A message is out of the history if it is before the anchor or hidden by scenes. Messages that `max_tokens` trims from
the history are not added: they were trimmed to save tokens, and the segment `pinned` is never trimmed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.chats.budgets import choose_newest_first
from app.chats.settings import ChatSettings
from app.context.parts import put
from app.context.segments import UNREAD, HistoryMessage, Segment, TranscriptStyle
from app.context.wording import word_line
from app.kit.tokens import count_tokens
from app.layers.contribution import IN_PROMPT, Placement

HEADING = "## Pinned Messages"


class PinnedLine(NamedTuple):
    """One pinned message as the segment contains it.

    Attributes:
        seq: Its seq on the line.
        message_id: The caller's id.
        text: The message with its speaker.
        tokens: o200k tokens of `text`; an estimate if the message's text was not read.
        is_read: Whether the message's text was read.

    """

    seq: int
    message_id: str
    text: str
    tokens: int
    is_read: bool = True


def choose_pinned(
    entries: Sequence[HistoryMessage], settings: ChatSettings, style: TranscriptStyle
) -> tuple[list[PinnedLine], list[PinnedLine]]:
    """Return the pinned messages that fit their budget, and those that exceed it.

    `entries` are all pinned messages that are out of the history, in seq order; both results keep this order.
    """
    if not entries:
        return [], []
    lines = [_line(entry, style) for entry in entries]
    budget = settings.pinned.budget
    limit = budget.tokens(settings.context_tokens) if budget else None
    kept = choose_newest_first([line.tokens for line in lines], limit)
    return (
        [line for index, line in enumerate(lines) if index in kept],
        [line for index, line in enumerate(lines) if index not in kept],
    )


def build_pinned(lines: Sequence[PinnedLine], placement: Placement = IN_PROMPT) -> Segment:
    """Return the segment `pinned` of at least one line, at a placement."""
    text = "\n\n".join((HEADING, *[line.text for line in lines]))
    tokens = count_tokens(text) + sum(line.tokens for line in lines if not line.is_read)
    segment = Segment("pinned", text, tokens, sources=tuple(f"message:{line.message_id}" for line in lines))
    return put(segment, placement)


def _line(entry: HistoryMessage, style: TranscriptStyle) -> PinnedLine:
    text = word_line(entry, style)
    if entry.text is UNREAD:
        return PinnedLine(entry.seq, entry.message_id, text, entry.tokens + count_tokens(text), is_read=False)
    return PinnedLine(entry.seq, entry.message_id, text, count_tokens(text))
