"""The chain of ever shorter contexts. Pure.

Each link leaves out what the one before it leaves out, and a little more. It goes in lumps, memos by five
and history by edges, so that a tight budget does not move the prompt's prefix with every turn.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from app.context.calls import inner_positions
from app.context.formats import word_segment
from app.context.parts import BuildMemos, Fitted, Omission, Parts
from app.context.pieces import Piece, Worded, add_up, charge
from app.context.segments import ORDER, Entry, Segment
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS
from app.memos.segment import MemoLine

MEMOS_IN_GROUP = 5

_BEFORE_MEMOS = ("recalled", "time", "diary")
_AFTER_MEMOS = ("summary", "recap", "facts", "blocks")


def shorten(whole: Fitted, parts: Parts, build_memos: BuildMemos, max_tokens: int) -> Iterator[Fitted]:
    """From everything to what is never left out; links that cannot fit into `max_tokens` may be skipped."""
    of_caller = dict.fromkeys(one.name for one in reversed(parts.segments) if one.name not in ORDER)
    trims: tuple[Callable[[Fitted], Iterator[Fitted]], ...] = (
        partial(_without_segments, names=_BEFORE_MEMOS),
        partial(_without_memos, build_memos=build_memos),
        partial(_without_segments, names=(*_AFTER_MEMOS, *of_caller)),
        partial(_without_history, edges=parts.edges, max_tokens=max_tokens),
    )
    left = whole
    yield left
    for trim in trims:
        for link in trim(left):
            left = link
            yield left


def _without_segments(left: Fitted, names: Sequence[str]) -> Iterator[Fitted]:
    for name in names:
        worded = left.worded
        rest = replace(
            worded,
            prefix=_drop(worded.prefix, name),
            in_chat=_drop(worded.in_chat, name),
            volatile=_drop(worded.volatile, name),
        )
        tokens = _sum_segments(worded) - _sum_segments(rest)
        if tokens:
            left = Fitted(rest, left.memos, (*left.omitted, Omission(name, "max_tokens", tokens)))
            yield left


def _without_memos(left: Fitted, build_memos: BuildMemos) -> Iterator[Fitted]:
    """Group by group, oldest first; pinned ones are groups of their own, after all others."""
    for group in sorted({_group_of(memo) for memo in left.memos}):
        kept = [memo for memo in left.memos if _group_of(memo) != group]
        tokens = sum(memo.tokens for memo in left.memos if _group_of(memo) == group)
        pinned, first = group
        name = f"{'pinned ' if pinned else ''}memos {first}–{first + MEMOS_IN_GROUP - 1}"
        left = Fitted(
            _with_memos(left.worded, build_memos(kept) if kept else None),
            kept,
            (*left.omitted, Omission(name, "max_tokens", tokens)),
        )
        yield left


def _without_history(left: Fitted, edges: Sequence[int], max_tokens: int) -> Iterator[Fitted]:
    """Edge by edge, then message by message.

    A history can be long, so its links are built only where the sum of their pieces, which knows nothing of
    the fixed texts of a format, leaves them a chance; and the last one, which tells what is needed.
    """
    worded = left.worded
    starts = _list_starts(worded.entries, edges, has_newest=worded.newest is not None)
    newest = [worded.newest] if worded.newest else []
    whole = add_up([*worded.prefix, *worded.history, *worded.in_chat, *worded.volatile, *newest])
    before = [0, *accumulate(piece.tokens for piece in worded.history)]
    for start in starts:
        rest = whole - before[start] - start * MESSAGE_OVERHEAD_TOKENS
        if start == starts[-1] or charge(rest, worded.manner.token_factor) <= max_tokens:
            yield Fitted(
                replace(worded, history=worded.history[start:]),
                left.memos,
                (*left.omitted, Omission("history", "max_tokens", before[start])),
            )


def _list_starts(history: Sequence[Entry], edges: Sequence[int], *, has_newest: bool) -> list[int]:
    """The indexes from which the history may be shown, ascending: those of the edges, behind them any.

    None parts a call from its result. Without a `newest` the last message of the history is the newest one,
    and stays.
    """
    inner = inner_positions(history)
    last = len(history) if has_newest else max((at for at in range(len(history)) if at not in inner), default=0)
    seqs = [entry.seq for entry in history]
    found = {bisect_left(seqs, edge) for edge in edges} - {0, len(history)} - inner
    at_edges = sorted(at for at in found if at <= last)
    behind = at_edges[-1] + 1 if at_edges else 1
    return [*at_edges, *(at for at in range(behind, last + 1) if at not in inner)]


def _drop(pieces: Sequence[Piece], name: str) -> list[Piece]:
    return [piece for piece in pieces if not _is_named(piece, name)]


def _with_memos(worded: Worded, memos: Segment | None) -> Worded:
    pieces = [word_segment(memos, "prefix", worded.manner)] if memos else []
    prefix = [new for piece in worded.prefix for new in (pieces if _is_named(piece, "memos") else [piece])]
    return replace(worded, prefix=prefix)


def _is_named(piece: Piece, name: str) -> bool:
    return isinstance(piece.of, Segment) and piece.of.name == name


def _sum_segments(worded: Worded) -> int:
    return sum(piece.tokens for piece in (*worded.prefix, *worded.in_chat, *worded.volatile))


def _group_of(memo: MemoLine) -> tuple[bool, int]:
    """Whether it is pinned, and the first number of its group."""
    return memo.pinned, memo.number - (memo.number - 1) % MEMOS_IN_GROUP
