"""The blocks of a context: each segment and each message as rendered text, with its token count. Pure.

They are not the core blocks of `app/blocks`. In every format a context is a sequence of blocks. Tokens, breakpoints and
hashes are computed from the sequence, and the format only wraps it. The cost of a block is its text and the overhead of
a message. If the format joins two blocks, the overhead covers the separator between them (at most two tokens in our
measurements). So costs simply add up, and a joined text never has more tokens than its blocks cost.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from app.context.segments import UNREAD, HistoryMessage, RenderOptions, Segment
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS

Part = Literal["prefix", "history", "in_chat", "volatile", "newest", "fixed"]


class Block(NamedTuple):
    """One block of a context. It is a tuple because a context has about fifty of them.

    Attributes:
        of: The segment or message that it renders; None for a fixed text, which a format adds.
        part: Where it is in the context: a field of `BlockLayout`, or `fixed` for a fixed text.
        role: The role in the format.
        text: The text that the model reads.
        tokens: o200k tokens of `text` and of the tool calls, without the overhead of a message.
        stable: Whether its text and its position stay the same in the next turn.
        name: The speaker, if the format has a field for it.
        tool_calls: The tool calls, if the format has a field for them.
        tool_call_id: The id of the call whose result this is, if the format has a field for it.

    """

    of: Segment | HistoryMessage | None
    part: Part
    role: str
    text: str
    tokens: int
    stable: bool = True
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None

    @property
    def mark(self) -> str:
        """`segment:<name>`, `message:<id>`, or "" for a fixed text."""
        if isinstance(self.of, HistoryMessage):
            return f"message:{self.of.message_id}"
        return f"segment:{self.of.name}" if self.of else ""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """An `Arrangement` (`segments.py`) as the blocks of one format.

    Each text is rendered and counted once; blank texts are left out.

    Attributes:
        render_options: The options it was rendered with.
        prefix: Segments before the messages, in order.
        history: One block per message, oldest first, without `newest`.
        in_chat: Segments among the messages.
        volatile: Segments after the history.
        newest: The last message if it is the user's.
        anchor_seq: The chat's anchor, where the history begins.

    """

    render_options: RenderOptions
    prefix: list[Block]
    history: list[Block]
    in_chat: list[Block]
    volatile: list[Block]
    newest: Block | None
    anchor_seq: int

    @property
    def count(self) -> int:
        """The number of blocks, without the format's fixed texts."""
        blocks = len(self.prefix) + len(self.history) + len(self.in_chat) + len(self.volatile)
        return blocks + (self.newest is not None)

    @property
    def entries(self) -> list[HistoryMessage]:
        """The messages of the history."""
        return [block.of for block in self.history if isinstance(block.of, HistoryMessage)]

    @property
    def segments(self) -> list[Segment]:
        """The segments, wherever they are."""
        blocks = (*self.prefix, *self.in_chat, *self.volatile)
        return [block.of for block in blocks if isinstance(block.of, Segment)]

    @property
    def first_sent_seq(self) -> int:
        """The seq of the first message that is sent, or the anchor if none is sent."""
        first = self.history[0].of if self.history else self.newest.of if self.newest else None
        return first.seq if isinstance(first, HistoryMessage) else self.anchor_seq


def count_text(of: Segment | HistoryMessage, text: str, count: Callable[[str], int]) -> int:
    """Return the tokens of `text`, the rendered text of `of`. If rendering did not alter it, it is not counted again.

    For a message whose text was not read, the stored tokens of the text are added to those of its speaker and time. If
    it represents several messages, these tokens count for each of them.
    """
    if text is of.text:
        return of.tokens
    if isinstance(of, HistoryMessage) and of.text is UNREAD:
        return of.tokens + len(of.seqs) * (count(text) - count(UNREAD))
    return count(text)


def add_up(blocks: Iterable[Block]) -> int:
    """Return the tokens of `blocks`, each with the overhead of a message, before the token factor."""
    return sum([block.tokens + MESSAGE_OVERHEAD_TOKENS for block in blocks])


def charge(tokens: int, factor: float) -> int:
    """Return `tokens` times `factor`, rounded up, to compare with `max_tokens`. Float errors are removed first."""
    return tokens if factor == 1 else math.ceil(round(tokens * factor, 6))
