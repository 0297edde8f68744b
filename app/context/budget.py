"""Fits a context into `max_tokens`. Pure.

`trims.py` yields the chain: ever shorter contexts in a fixed order. The first one that fits is used. So if two contexts
are made from the same parts, the one with the smaller budget never contains anything that the other one leaves out.
"""

from collections.abc import Sequence
from typing import Literal

from app.context.blocks import BlockLayout
from app.context.formats import count_tokens_of, is_said, word
from app.context.merging import merge_contributions
from app.context.order import arrange
from app.context.parts import Fitted, Omission, Parts, build_segment
from app.context.segments import HistoryMessage, RenderOptions, Segment
from app.context.trims import shorten
from app.context.wording import is_blank


class BudgetTooSmallError(Exception):
    """Even the shortest context does not fit; it needs `needed_tokens`."""

    def __init__(self, needed_tokens: int) -> None:
        super().__init__(f"the context needs at least {needed_tokens} tokens")
        self.needed_tokens = needed_tokens


def fit(parts: Parts, max_tokens: int, render_options: RenderOptions) -> Fitted:
    """Return the longest context of the chain that has at most `max_tokens` tokens in its format, and its omissions.

    Raises BudgetTooSmallError, and ValueError if a segment follows an unknown segment.
    """
    contributions = [one for one in merge_contributions(parts.contributions) if one.items]
    segments = [*(build_segment(one) for one in contributions), *parts.segments]
    arrangement = arrange(segments, parts.history, parts.newest, parts.anchor_seq, render_options.tables)
    layout = word(arrangement, render_options)
    left = whole = Fitted(layout, contributions, _list_blank(parts, segments, layout))
    for left in shorten(whole, parts, max_tokens):
        if count_tokens_of(left.layout) <= max_tokens:
            return left
    raise BudgetTooSmallError(count_tokens_of(left.layout))


def _why_unsaid(entry: HistoryMessage) -> Literal["blank", "unanswered_call"]:
    """Return why a message is left out that has nothing to send."""
    return "unanswered_call" if entry.unanswered else "blank"


def _list_blank(parts: Parts, segments: Sequence[Segment], layout: BlockLayout) -> tuple[Omission, ...]:
    """Return an omission for each blank segment and each message without text and without answered tool calls.

    `layout` is rendered from `segments` and the messages of `parts`. It does not contain the blank ones.
    """
    messages = [*parts.history, *([parts.newest] if parts.newest else [])]
    if layout.count == len(segments) + len(messages):
        return ()
    return (
        *(Omission(one.name, "blank", one.tokens) for one in segments if is_blank(one.text)),
        *(Omission(f"message:{one.message_id}", _why_unsaid(one), one.tokens) for one in messages if not is_said(one)),
    )
