"""The chain: ever shorter contexts in a fixed order. Pure.

Each context of the chain leaves out everything that the previous one leaves out, and a little more. Items with the same
`Item.group` are left out together. Messages are left out up to an edge. So with a tight budget the prompt's prefix does
not change in every turn.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from app.context.blocks import Block, BlockLayout, add_up, charge
from app.context.calls import inner_positions
from app.context.formats import word_segment
from app.context.parts import Fitted, Omission, Parts, build_segment
from app.context.segments import HistoryMessage, Segment
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS
from app.layers.contribution import Contribution, Item


def shorten(whole: Fitted, parts: Parts, max_tokens: int) -> Iterator[Fitted]:
    """Yield the chain from the whole context to the shortest. Contexts that cannot fit `max_tokens` may be skipped."""
    tables = whole.layout.render_options.tables
    of_caller = dict.fromkeys(one.name for one in reversed(parts.segments) if one.name not in tables.order)
    names = [name for trim in tables.trims for name in ([trim] if trim else of_caller)]
    left = whole
    yield left
    if parts.keeps_messages is not None:
        for link in _without_history(left, parts.edges, max_tokens, keep=parts.keeps_messages):
            left = link
            yield left
    for name in names:
        for link in _with_shorter(left, name, parts.shorter.get(name, ())):
            yield link
        for link in _without_segment(left, name):
            left = link
            yield left
    for link in _without_history(left, parts.edges, max_tokens):
        left = link
        yield left


def _with_shorter(left: Fitted, name: str, versions: Iterable[Segment]) -> Iterator[Fitted]:
    """Yield contexts with ever shorter versions of the segment. Each adds one omission: all that the version lacks.

    Each context is made from `left`, not from the one before it. The next context of the chain, which lacks the whole
    segment, is also made from `left`.
    """
    whole = _sum_segments(left.layout)
    for version in versions:
        layout = _with_segment(left.layout, name, version)
        omission = Omission(name, "max_tokens", whole - _sum_segments(layout))
        yield replace(left, layout=layout, omitted=(*left.omitted, omission))


def _without_segment(left: Fitted, name: str) -> Iterator[Fitted]:
    """Yield contexts without the segment.

    Items with the same `_Lump` are left out together, one lump after the other. If no item has a group, and either all
    items are pinned or none is, the whole segment is left out at once.
    """
    contribution = next((one for one in left.contributions if one.segment == name), None)
    lumps = sorted({_lump_of(item) for item in contribution.items}) if contribution else []
    if contribution is None or (len(lumps) == 1 and lumps[0].is_rest):
        rest = _with_segment(left.layout, name, None)
        tokens = _sum_segments(left.layout) - _sum_segments(rest)
        if tokens:
            yield _leave_out(left, rest, name, (), Omission(name, "max_tokens", tokens))
        return
    for lump in lumps:
        kept = [item for item in contribution.items if _lump_of(item) != lump]
        tokens = sum(item.tokens for item in contribution.items if _lump_of(item) == lump)
        contribution = contribution._replace(items=kept)
        segment = build_segment(contribution) if kept else None
        layout = _with_segment(left.layout, name, segment)
        omission = Omission(lump.name or (f"pinned {name}" if lump.pinned else name), "max_tokens", tokens)
        left = _leave_out(left, layout, name, (contribution,) if kept else (), omission)
        yield left


class _Lump(NamedTuple):
    """The sort key of items that are left out together: unpinned before pinned, groups before items without one."""

    pinned: bool
    is_rest: bool
    order: int = 0
    name: str = ""


def _lump_of(item: Item) -> _Lump:
    return _Lump(item.pinned, is_rest=True) if item.group is None else _Lump(item.pinned, False, *item.group)


def _leave_out(
    left: Fitted, layout: BlockLayout, name: str, contributions: Sequence[Contribution], omission: Omission
) -> Fitted:
    """Return `left` with another `layout` and one more `omission`; `contributions` replace those of segment `name`."""
    others = [one for one in left.contributions if one.segment != name]
    return Fitted(layout, [*others, *contributions], (*left.omitted, omission))


def _without_history(left: Fitted, edges: Sequence[int], max_tokens: int, *, keep: int = 0) -> Iterator[Fitted]:
    """Yield contexts with a shorter history of at least `keep` messages: edge by edge, then message by message.

    A history can be long, so a context is built only if its blocks, without the format's fixed texts, fit `max_tokens`.
    The shortest context is always built, because it shows how many tokens are needed. The omission also counts the
    messages of the history that were left out before.
    """
    layout = left.layout
    has_newest = layout.newest is not None
    most = len(layout.entries) + has_newest - keep
    starts = [start for start in _list_starts(layout.entries, edges, has_newest=has_newest) if start <= most]
    if not starts:
        return
    former_tokens = sum(one.tokens for one in left.omitted if one.name == "history")
    others = tuple(one for one in left.omitted if one.name != "history")
    newest = [layout.newest] if layout.newest else []
    whole = add_up([*layout.prefix, *layout.history, *layout.in_chat, *layout.volatile, *newest])
    before = [0, *accumulate(block.tokens for block in layout.history)]
    for start in starts:
        rest = whole - before[start] - start * MESSAGE_OVERHEAD_TOKENS
        if start == starts[-1] or charge(rest, layout.render_options.token_factor) <= max_tokens:
            yield Fitted(
                replace(layout, history=layout.history[start:]),
                left.contributions,
                (*others, Omission("history", "max_tokens", former_tokens + before[start])),
            )


def _list_starts(history: Sequence[HistoryMessage], edges: Sequence[int], *, has_newest: bool) -> list[int]:
    """Return the indexes at which the history may begin, ascending: those of edges, then each one after the last edge.

    No index separates a tool call from its result. Without a `newest` message, the last message of the history is
    always kept.
    """
    inner = inner_positions(history)
    last = len(history) if has_newest else max((at for at in range(len(history)) if at not in inner), default=0)
    seqs = [entry.seq for entry in history]
    found = {bisect_left(seqs, edge) for edge in edges} - {0, len(history)} - inner
    at_edges = sorted(at for at in found if at <= last)
    behind = at_edges[-1] + 1 if at_edges else 1
    return [*at_edges, *(at for at in range(behind, last + 1) if at not in inner)]


def _with_segment(layout: BlockLayout, name: str, segment: Segment | None) -> BlockLayout:
    """Return `layout` with `segment` in place of the segment of that name; None removes it."""

    def exchange(blocks: Sequence[Block]) -> list[Block]:
        kept = []
        for block in blocks:
            if not _is_named(block, name):
                kept.append(block)
            elif segment is not None:
                kept.append(word_segment(segment, block.part, layout.render_options))
        return kept

    return replace(
        layout,
        prefix=exchange(layout.prefix),
        in_chat=exchange(layout.in_chat),
        volatile=exchange(layout.volatile),
    )


def _is_named(block: Block, name: str) -> bool:
    return isinstance(block.of, Segment) and block.of.name == name


def _sum_segments(layout: BlockLayout) -> int:
    return sum(block.tokens for block in (*layout.prefix, *layout.in_chat, *layout.volatile))
