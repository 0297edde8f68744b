"""What a layer puts into a context: items of named segments. Pure.

A segment is its heading and its items, of one layer or of several. The layer says where the segment goes, in which
order its items are, which of them its own budget left out, and which are trimmed together where `max_tokens` is small;
`app.context` does the rest for all layers alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from app.chats.ranges import Range
from app.chats.settings import ChatSettings, PlacementSettings

Position = Literal["in_prompt", "before_prompt", "in_chat"]

_POSITIONS: Mapping[str | int, Position | None] = {
    "none": None,
    "before_prompt": "before_prompt",
    "in_prompt": "in_prompt",
    "in_chat": "in_chat",
    -1: None,
    2: "before_prompt",
    0: "in_prompt",
    1: "in_chat",
}


@dataclass(frozen=True, slots=True)
class SegmentSpec:
    """A segment that a layer contributes to.

    Attributes:
        name: Its name, unique among all segments.
        instruction: What the model is told about it in the segment `instruction`; "" says nothing.
        after: The segment that it follows in the prompt; None where the tables of `app.context.tables` have its name.
            Of several that follow the same one the first in the registry comes first.
        trimmed_before: The segment before which it is trimmed; None likewise.
        leads: Whether its instruction comes first, as it goes ahead of the whole prompt by default.

    """

    name: str
    instruction: str = ""
    after: str | None = None
    trimmed_before: str | None = None
    leads: bool = False


class TrimGroup(NamedTuple):
    """Items that are trimmed together.

    Attributes:
        order: Groups of a segment are trimmed in ascending order, those of pinned items after all others.
        name: How `omitted` names the group.

    """

    order: int
    name: str


class Item(NamedTuple):
    """One text of a segment. A tuple, because a context makes dozens of them.

    Attributes:
        text: What the model reads.
        tokens: o200k tokens of `text`.
        sources: What it was made of: `memo:…`, `summary:3`.
        name: How `omitted` names it where the layer's budget leaves it out.
        group: The items it is trimmed with. Items of a segment that have none are trimmed together, after its groups;
            if no item has one, the segment is trimmed as a whole.
        covers: The range of messages that it covers (inclusive), or None.
        order: Its sort key among the items of the segment, of all layers. Items with the same key keep the order of
            the registry, and of the contribution.
        pinned: Whether it is trimmed after the items of the segment that are not pinned.

    """

    text: str
    tokens: int
    sources: tuple[str, ...] = ()
    name: str = ""
    group: TrimGroup | None = None
    covers: Range | None = None
    order: tuple[int, ...] = ()
    pinned: bool = False


class Placement(NamedTuple):
    """Where a segment goes.

    Attributes:
        position: `in_prompt` at its position in the order of segments; `before_prompt` ahead of everything; `in_chat`
            among the messages.
        depth: With `in_chat`: how many messages follow it.
        role: With `in_chat`: who says it.
        scan: Whether the caller's lorebook should scan it; None leaves it open.

    """

    position: Position = "in_prompt"
    depth: int = 0
    role: Literal["system", "user", "assistant"] = "system"
    scan: bool | None = None


IN_PROMPT = Placement()


class Contribution(NamedTuple):
    """The items of one segment.

    Several layers can contribute to one segment. It goes where the first of them places it, in the order of the
    registry, under the first heading that is not "".

    Attributes:
        segment: The segment's name: one of the layer's `SegmentSpec`s, or any other in the tables of `app.context`.
        items: In any order; `Item.order` sorts them.
        heading: Comes before the items; "" where they bring their own.
        left_out: What exceeds the layer's own budget.
        placement: Where the segment goes.
        is_window: Whether the answer's `memo_window` counts the segment's items.

    """

    segment: str
    items: Sequence[Item]
    heading: str = ""
    left_out: Sequence[Item] = ()
    placement: Placement = IN_PROMPT
    is_window: bool = False


class Contributed(NamedTuple):
    """Everything that a layer contributes to a context.

    Attributes:
        segments: Its segments.
        gaps: Ranges before the history (inclusive) that it should cover and does not.
        edges: Where the history may be trimmed; counts only for chats whose `history.edges` are this layer's.

    """

    segments: Sequence[Contribution] = ()
    gaps: Sequence[Range] = ()
    edges: Sequence[int] = ()


class View(NamedTuple):
    """What a layer sees of the context that it contributes to.

    Attributes:
        cached: What its `refresh_cache` left on the chat's row.
        queried: What its `context_query` returned; None without one.
        settings: The chat's settings.
        character: Whose prompt it is, if that is known.

    """

    cached: Mapping[str, Any]
    queried: Any
    settings: ChatSettings
    character: str | None = None


def place(settings: PlacementSettings) -> Placement | None:
    """Where the settings put a segment; None if it is not to be in the context."""
    position = _POSITIONS[settings.position]
    if position is None:
        return None
    if position == "in_chat":
        return Placement(position, settings.depth, settings.role, settings.scan)
    return Placement(position, scan=settings.scan)


def list_gaps(cached: Mapping[str, Any]) -> list[Range]:
    """The gaps that a layer left on the chat's row."""
    return [(first, last) for first, last in cached.get("gaps", ())]
