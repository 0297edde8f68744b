"""The input and the output of fitting a context into a budget. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.context.blocks import BlockLayout
from app.context.segments import HistoryMessage, Segment
from app.kit.tokens import count_tokens
from app.layers.contribution import Contribution, Placement


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that can go into a context.

    Attributes:
        segments: The caller's segments, and those that the service makes itself, except `history` and `newest`, which
            have fields of their own. A segment is the caller's if `SegmentTables.order` does not contain its name. If
            there is not enough room, the caller's last segment is left out before the caller's others.
        contributions: The layers' contributions to segments, in the order of the registry.
        history: The messages from the anchor on, oldest first, without `newest`.
        newest: The last message if it is the user's.
        anchor_seq: The chat's anchor, where the history begins.
        edges: The seqs at which a trimmed history preferably begins, in any order.
        keeps_messages: If it is set, the history is trimmed before anything else, but only down to this many messages,
            which are trimmed last. If it is None, the whole history is trimmed last. It is set while a forced cut is
            delayed, because the long history would otherwise displace all memories.
        shorter: For the name of a segment, ever shorter versions of this segment. They are tried in this order before
            the segment is left out, and are read only if the whole segment does not fit.

    """

    segments: Sequence[Segment] = ()
    contributions: Sequence[Contribution] = ()
    history: Sequence[HistoryMessage] = ()
    newest: HistoryMessage | None = None
    anchor_seq: int = 1
    edges: Sequence[int] = ()
    keeps_messages: int | None = None
    shorter: Mapping[str, Iterable[Segment]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that was left out, the reason, and the o200k tokens of its text.

    `name` is the name of a segment, of an item or of a group of items (`memos 1–5`), `history`, or `message:<id>`.
    """

    name: str
    why: Literal["blank", "unanswered_call", "budget", "max_tokens", "no_vectors"]
    tokens: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """A version of a context, complete or shortened. The first version that fits into the limit is used.

    Attributes:
        layout: Its content, ready to render.
        contributions: The layers' items in it, one contribution for each segment.
        omitted: Everything that was left out, in the order in which it was left out.

    """

    layout: BlockLayout
    contributions: Sequence[Contribution]
    omitted: tuple[Omission, ...]


def build_segment(contribution: Contribution) -> Segment:
    """Return the segment of a contribution with at least one item."""
    items = contribution.items
    if len(items) == 1 and not contribution.heading:
        text, tokens = items[0].text, items[0].tokens
    else:
        text = "\n\n".join((*((contribution.heading,) if contribution.heading else ()), *[item.text for item in items]))
        tokens = count_tokens(text)
    sources = tuple(source for item in items for source in item.sources)
    return put(Segment(contribution.segment, text, tokens, sources=sources), contribution.placement)


def put(segment: Segment, placement: Placement) -> Segment:
    """Return the segment at a placement. Only a segment among the messages has a role of its own."""
    among = placement.position == "in_chat"
    return segment._replace(
        role=placement.role if among else "system",
        after=None if placement.position == "in_prompt" else placement.position,
        depth=placement.depth if among else 0,
        scan=placement.scan,
    )
