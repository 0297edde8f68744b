"""What goes into the budget and what comes out of it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.context.pieces import Worded
from app.context.segments import Entry, Segment
from app.memos.segment import MemoLine

BuildMemos = Callable[[Sequence[MemoLine]], Segment]
"""Makes the segment `memos` of some lines, never of none."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that could go into a context.

    Attributes:
        segments: The service's and the caller's, in any order, but for `memos`, `history` and `newest`.
            A caller's is told by its name, which is not in `ORDER`; of several the last is left out first.
            One of the service's goes when its name's turn comes, wherever it stands.
        memos: In the order of the story.
        history: The messages from the anchor on, oldest first, without `newest`.
        newest: The last message if it is the user's.
        anchor_seq: Where the history begins by the last cut.
        edges: The seqs where a cut may fall, in any order.

    """

    segments: Sequence[Segment] = ()
    memos: Sequence[MemoLine] = ()
    history: Sequence[Entry] = ()
    newest: Entry | None = None
    anchor_seq: int = 1
    edges: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Omission:
    """Something left out, why, and the o200k tokens of its text.

    `name` is that of a segment, `memos 1–5`, `history`, or `message:<id>`.
    """

    name: str
    why: Literal["blank", "budget", "max_tokens"]
    tokens: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown, ready to render; the memos in it; what was left out, in the order of leaving."""

    worded: Worded
    memos: Sequence[MemoLine]
    omitted: tuple[Omission, ...]
