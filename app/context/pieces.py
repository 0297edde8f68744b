"""The pieces of a context: each segment and each message once it is put into words, with what it costs. Pure.

Every format is a row of pieces; tokens, breakpoints and hashes are counted on the row, and the format only
wraps it. A piece costs its text and the overhead of a message, also where it shares a message with its
neighbours: that pays for what joins them (two tokens at most were seen), so that costs simply add up
and a joined text never holds more tokens than its pieces.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from app.context.segments import Entry, Manner, Segment
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS

Part = Literal["prefix", "history", "in_chat", "volatile", "newest", "fixed"]


class Piece(NamedTuple):
    """One block of a context. A tuple, because a context makes some fifty of them.

    Attributes:
        of: What it says; None for a fixed text.
        part: Where it belongs.
        role: As the format names it.
        text: As the model reads it.
        tokens: o200k tokens of `text` and of the calls, without the overhead of a message.
        stable: False for what will stand elsewhere, or say something else, in the next turn.
        name: Who speaks, where the format has a field for it.
        tool_calls: The calls, where the format has a field for them.
        tool_call_id: The call that this is the result of, likewise.

    """

    of: Segment | Entry | None
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
        """`segment:<name>`, `message:<id>`, or empty."""
        if isinstance(self.of, Entry):
            return f"message:{self.of.message_id}"
        return f"segment:{self.of.name}" if self.of else ""


@dataclass(frozen=True, slots=True)
class Worded:
    """A plan in the words of one format: every text worded and counted once, nothing blank.

    Attributes:
        manner: What it was worded for.
        prefix: Before the messages, in order.
        history: One piece a message, oldest first, without `newest`.
        in_chat: What stands among the messages.
        volatile: After the history.
        newest: The last message if it is the user's.
        cut_seq: The plan's anchor.

    """

    manner: Manner
    prefix: list[Piece]
    history: list[Piece]
    in_chat: list[Piece]
    volatile: list[Piece]
    newest: Piece | None
    cut_seq: int

    @property
    def count(self) -> int:
        """The number of pieces, without the fixed texts of a format."""
        pieces = len(self.prefix) + len(self.history) + len(self.in_chat) + len(self.volatile)
        return pieces + (self.newest is not None)

    @property
    def entries(self) -> list[Entry]:
        """The messages of the history."""
        return [piece.of for piece in self.history if isinstance(piece.of, Entry)]

    @property
    def anchor_seq(self) -> int:
        """The seq of the first message that is sent; the plan's anchor if there is none."""
        first = self.history[0].of if self.history else self.newest.of if self.newest else None
        return first.seq if isinstance(first, Entry) else self.cut_seq


def count_text(of: Segment | Entry, text: str, count: Callable[[str], int]) -> int:
    """The tokens of `text`; what was not altered has been counted before."""
    return of.tokens if text is of.text else count(text)


def add_up(pieces: Iterable[Piece]) -> int:
    """What `pieces` cost, each with the overhead of a message, before the token factor."""
    return sum([piece.tokens + MESSAGE_OVERHEAD_TOKENS for piece in pieces])


def charge(tokens: int, factor: float) -> int:
    """`tokens` as they are held against `max_tokens`, rounded up; 10 times 1.1 is 11, whatever floats say."""
    return tokens if factor == 1 else math.ceil(round(tokens * factor, 6))
