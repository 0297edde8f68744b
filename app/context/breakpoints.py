"""Where a provider should keep the prompt, and the hashes that tell whether it still can. Pure.

A provider keeps a prompt up to a marked place and finds it again only while every byte before that place
is the same. So nothing is marked behind a piece that moves or changes with the next turn.
"""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate

from app.context.order import place_of
from app.context.pieces import Piece, Worded, charge
from app.context.segments import Breakpoint, Segment
from app.context.tables import BASE, SegmentTables
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS

HISTORY_BLOCK_MESSAGES = 16
"""A place in the history is marked after every so many messages, so that it stays while the history grows."""


def count_stable(pieces: Sequence[Piece]) -> int:
    """How many pieces, from the first on, say the same in the next turn."""
    return next((index for index, piece in enumerate(pieces) if not piece.stable), len(pieces))


def place(pieces: Sequence[Piece], stable: int, tables: SegmentTables = BASE) -> list[int]:
    """The indexes of the pieces to mark, ascending, at most four, all among the first `stable`.

    After `user`, after `memos`, after the newest 16th message of the history, and after `newest` or the end
    of the history. A segment that is missing leaves its mark to the nearest one before it, or to none.
    """
    last_of_user, last_of_memory = (tables.order.index("user"), 0), (tables.order.index("history") - 1, 0)
    user = memory = None
    for index, piece in enumerate(pieces[:stable]):
        if piece.part != "prefix":
            break
        if isinstance(piece.of, Segment):
            at = place_of(piece.of, tables)
            user = index if at <= last_of_user else user
            memory = index if at <= last_of_memory else memory
    parts = [piece.part for piece in pieces[:stable]]
    history = [index for index, part in enumerate(parts) if part == "history"]
    end = parts.index("newest") if "newest" in parts else history[-1] if history else None
    whole = len(history) // HISTORY_BLOCK_MESSAGES * HISTORY_BLOCK_MESSAGES
    block = history[whole - 1] if whole else None
    return sorted({index for index in (user, memory, block, end) if index is not None})


def seal(worded: Worded, pieces: Sequence[Piece], marked: Sequence[int]) -> tuple[list[Breakpoint], str]:
    """The marked places of `pieces`, the whole of `worded`, with all that stands up to each; the prefix hash.

    That is a sha-256 over format, anchor and the hash of everything before the history, so also of what the
    caller placed behind `memos`: equal ones mean that nothing before the history changed.
    """
    factor = worded.manner.token_factor
    prefix = len(worded.prefix) - 1
    hashes = _hash_up_to(pieces, {*marked, prefix})
    costs = list(accumulate([piece.tokens + MESSAGE_OVERHEAD_TOKENS for piece in pieces]))
    breakpoints = [Breakpoint(pieces[index].mark, charge(costs[index], factor), hashes[index]) for index in marked]
    told = f"{worded.manner.format} {worded.anchor_seq} {hashes[prefix]}"
    return breakpoints, sha256(told.encode()).hexdigest()


def _hash_up_to(pieces: Sequence[Piece], ends: Iterable[int]) -> dict[int, str]:
    """The sha-256 of the pieces up to each end, inclusive, in one pass; -1 is the hash of nothing."""
    hashes = {}
    digest = sha256()
    start = 0
    for end in sorted(ends):
        digest.update("".join([_frame(piece) for piece in pieces[start : end + 1]]).encode())
        hashes[end] = digest.hexdigest()
        start = end + 1
    return hashes


def _frame(piece: Piece) -> str:
    """A piece as bytes are made of it, with its lengths, so that no text can pose as two."""
    text, name = piece.text, piece.name or ""
    if not piece.tool_calls and not piece.tool_call_id:
        return f"{piece.role} {len(name)} {len(text)}\n{name}{text}"
    calls = json.dumps([piece.tool_calls, piece.tool_call_id])
    return f"{piece.role} {len(name)} {len(text)} {len(calls)}\n{name}{text}{calls}"
