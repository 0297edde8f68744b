"""Breakpoints of the provider's prompt cache, and hashes that show whether the cached prefix still matches. Pure.

A provider caches a prompt up to a breakpoint and reuses it only if every byte before the breakpoint is unchanged. So no
breakpoint is set after a block that moves or changes in the next turn.
"""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate

from app.context.blocks import Block, BlockLayout, charge
from app.context.order import sort_key_of
from app.context.segments import Breakpoint, Segment
from app.context.tables import BASE, SegmentTables
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS

HISTORY_BLOCK_MESSAGES = 16
"""The breakpoint within the history is after a multiple of this many messages, so it rarely moves."""


def count_stable(blocks: Sequence[Block]) -> int:
    """Return the number of blocks at the start that stay the same in the next turn."""
    return next((index for index, block in enumerate(blocks) if not block.stable), len(blocks))


def place_breakpoints(blocks: Sequence[Block], stable: int, tables: SegmentTables = BASE) -> list[int]:
    """Return the indexes of the blocks that get a breakpoint: ascending, at most four, all among the first `stable`.

    Breakpoints come after `user`, after the last memory segment before the history, after the last complete group of 16
    messages of the history, and after `newest` or the end of the history. If one of these segments is missing, the
    nearest segment before it gets the breakpoint, if there is one.
    """
    last_of_user, last_of_memory = (tables.order.index("user"), 0), (tables.order.index("history") - 1, 0)
    user = memory = None
    for index, block in enumerate(blocks[:stable]):
        if block.part != "prefix":
            break
        if isinstance(block.of, Segment):
            at = sort_key_of(block.of, tables)
            user = index if at <= last_of_user else user
            memory = index if at <= last_of_memory else memory
    parts = [block.part for block in blocks[:stable]]
    history = [index for index, part in enumerate(parts) if part == "history"]
    end = parts.index("newest") if "newest" in parts else history[-1] if history else None
    whole = len(history) // HISTORY_BLOCK_MESSAGES * HISTORY_BLOCK_MESSAGES
    block_end = history[whole - 1] if whole else None
    return sorted({index for index in (user, memory, block_end, end) if index is not None})


def hash_prefixes(layout: BlockLayout, blocks: Sequence[Block], marked: Sequence[int]) -> tuple[list[Breakpoint], str]:
    """Return the breakpoints after the `marked` blocks, and the prefix hash; `blocks` are all blocks of `layout`.

    The prefix hash is a sha-256 over the format, the seq of the first message sent and the hash of everything before
    the history, including the caller's own segments there. Equal hashes mean that nothing before the history changed.
    """
    factor = layout.render_options.token_factor
    prefix = len(layout.prefix) - 1
    hashes = _hash_up_to(blocks, {*marked, prefix})
    costs = list(accumulate([block.tokens + MESSAGE_OVERHEAD_TOKENS for block in blocks]))
    breakpoints = [Breakpoint(blocks[index].mark, charge(costs[index], factor), hashes[index]) for index in marked]
    prefix_text = f"{layout.render_options.format} {layout.first_sent_seq} {hashes[prefix]}"
    return breakpoints, sha256(prefix_text.encode()).hexdigest()


def _hash_up_to(blocks: Sequence[Block], ends: Iterable[int]) -> dict[int, str]:
    """Return the sha-256 of the blocks up to each end (inclusive), computed in one pass; end -1 hashes no blocks."""
    hashes = {}
    digest = sha256()
    start = 0
    for end in sorted(ends):
        digest.update("".join([_frame(block) for block in blocks[start : end + 1]]).encode())
        hashes[end] = digest.hexdigest()
        start = end + 1
    return hashes


def _frame(block: Block) -> str:
    """Return the text of a block to be hashed. It contains lengths, so that two blocks never hash like one."""
    text, name = block.text, block.name or ""
    if not block.tool_calls and not block.tool_call_id:
        return f"{block.role} {len(name)} {len(text)}\n{name}{text}"
    calls = json.dumps([block.tool_calls, block.tool_call_id])
    return f"{block.role} {len(name)} {len(text)} {len(calls)}\n{name}{text}{calls}"
