"""Pinned messages: kept word for word in a segment of their own once the history no longer has them. Pure.

Out of the history is what stands before the anchor or is hidden by scenes. A history that `max_tokens` trims
further hands nothing over: what it gives up to save tokens would come back in a segment that is never trimmed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.chats.budgets import choose_newest_first
from app.chats.settings import ChatSettings
from app.context.segments import Entry, Segment, Speech
from app.context.wording import word_line
from app.kit.tokens import count_tokens

HEADING = "## Pinned Messages"


class PinnedLine(NamedTuple):
    """One pinned message as it would be shown.

    Attributes:
        seq: Its place on the line.
        message_id: The caller's id.
        text: The message, with who says it.
        tokens: o200k tokens of `text`.

    """

    seq: int
    message_id: str
    text: str
    tokens: int


def choose_pinned(
    entries: Sequence[Entry], settings: ChatSettings, speech: Speech
) -> tuple[list[PinnedLine], list[PinnedLine]]:
    """Those of `entries`, all pinned messages outside of the history, that their budget takes; and what exceeds it.

    Both in story order, as `entries` are.
    """
    if not entries:
        return [], []
    lines = [_line(entry, speech) for entry in entries]
    budget = settings.pinned.budget
    limit = budget.tokens(settings.context_tokens) if budget else None
    kept = choose_newest_first([line.tokens for line in lines], limit)
    return (
        [line for index, line in enumerate(lines) if index in kept],
        [line for index, line in enumerate(lines) if index not in kept],
    )


def build_pinned(lines: Sequence[PinnedLine]) -> Segment:
    """The segment `pinned` of some lines, never of none."""
    text = "\n\n".join((HEADING, *[line.text for line in lines]))
    return Segment("pinned", text, count_tokens(text), sources=tuple(f"message:{line.message_id}" for line in lines))


def _line(entry: Entry, speech: Speech) -> PinnedLine:
    text = word_line(entry, speech)
    return PinnedLine(entry.seq, entry.message_id, text, count_tokens(text))
