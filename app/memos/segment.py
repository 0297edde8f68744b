"""Makes the segment `memos` of a context from the memos that are cached on the line's row. Pure."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.chats.budgets import choose_newest_first
from app.layers.contribution import (
    Contributed,
    Contribution,
    Item,
    SegmentSpec,
    TrimGroup,
    View,
    list_gaps,
    placement_of,
)
from app.memos.settings import MemoSettings
from app.memos.trim_groups import group_memos

HEADING = "## Memo Book"
WINDOW_PARTS = ("memos", "pinned")

SEGMENT = SegmentSpec(
    "memos",
    instruction='"Memo Book" is what you remember of this conversation before the messages below, oldest first. It was '
    "said or happened on the days in brackets (month/day), or the user wrote it down for you.",
)

EDGES = """
    ARRAY(
        SELECT b.last_seq + 1 FROM memos b
        WHERE b.chat_key = c.chat_key AND b.line_id = c.line_id AND b.first_seq >= (
            SELECT coalesce(max(a.first_seq), 0) FROM memos a
            WHERE a.chat_key = c.chat_key AND a.line_id = c.line_id AND a.first_seq <= c.anchor_seq)
    )"""
"""A scalar subquery for the seq after each batch, starting with the last batch that begins at or before the anchor."""


def contribute(view: View) -> Contributed:
    """Return the memos of the window and the pinned memos, each kind within its own budget."""
    settings = MemoSettings.of(view.settings)
    placement = placement_of(settings)
    edges = view.queried or ()
    gaps = list_gaps(view.cached)
    if placement is None:
        return Contributed(gaps=gaps, edges=edges)
    items: list[Item] = []
    left_out: list[Item] = []
    for part, budget in zip(WINDOW_PARTS, (settings.budget, settings.pinned_budget), strict=True):
        stored = [memo for memo in view.cached.get(part, ()) if view.is_known(_last_seq(memo))]
        limit = budget.tokens(view.settings.context_tokens) if budget else None
        kept = choose_newest_first([memo["tokens"] for memo in stored], limit)
        groups = group_memos(stored, pinned=part == "pinned")
        for index, memo in enumerate(stored):
            item = _item(memo, groups[index], pinned=part == "pinned")
            if index in kept:
                items.append(item)
            else:
                left_out.append(item._replace(name=f"memo {memo['number']}"))
    segment = Contribution("memos", items, HEADING, left_out, placement, is_window=True)
    return Contributed((segment,), gaps, edges)


def _last_seq(memo: Mapping[str, Any]) -> int:
    """Return the last seq that a memo covers, or the seq that it follows if it covers no messages."""
    last_seq: int = memo["sort_key"] // 2 if memo["first_seq"] is None else memo["last_seq"]
    return last_seq


def source_of(memo_id: UUID | str) -> str:
    """Return the name of a memo in the sources of a context."""
    return f"memo:{memo_id}"


def _item(memo: Mapping[str, Any], group: TrimGroup, *, pinned: bool) -> Item:
    number = memo["number"]
    first_seq = memo["first_seq"]
    covers = None if first_seq is None else (first_seq, memo["last_seq"])
    sources = (source_of(memo["id"]),)
    return Item(memo["text"], memo["tokens"], sources, "", group, covers, (memo["sort_key"], number), pinned)
