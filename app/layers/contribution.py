"""The contribution of a layer to a context: items of named segments. Pure.

A segment has a heading and items from one or several layers. A layer decides where the segment goes, in which order its
items are, which of them exceed its own budget, and which are trimmed together to fit `max_tokens`. `app.context` does
the rest for all layers.
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
    # the numbers that SillyTavern uses for these positions
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
        instruction: The text about it in the segment `instruction`; "" for none.
        after: The segment that it follows in the prompt; None if the tables of `app.context.tables` contain `name`.
            Segments that follow the same one are in the order of the registry.
        trimmed_before: If a context exceeds `max_tokens`, this segment is trimmed first, and then the segment with the
            name `trimmed_before`; None if the tables contain `name`.
        leads: Whether the text in `instruction` comes before those of segments that do not have this flag. It is set
            for a segment that is placed before the whole prompt by default.

    """

    name: str
    instruction: str = ""
    after: str | None = None
    trimmed_before: str | None = None
    leads: bool = False


class TrimGroup(NamedTuple):
    """Items that are trimmed together.

    Attributes:
        order: The sort key: groups of a segment are trimmed in ascending order, those of pinned items last.
        name: The name of the group in the response's `omitted`.

    """

    order: int
    name: str


class Item(NamedTuple):
    """One text of a segment. It is a tuple because a context has dozens of them.

    Attributes:
        text: The text that the model reads.
        tokens: o200k tokens of `text`.
        sources: The sources of the text: `memo:…`, `summary:3`.
        name: Its name in the response's `omitted` if the layer's budget leaves it out.
        group: The group that it is trimmed with. Items without a group are trimmed together, after the groups of the
            segment. Unpinned items are trimmed before pinned ones. If no item has a group and all or none are pinned,
            the whole segment is trimmed at once.
        covers: The range of messages that it covers (inclusive), or None.
        order: Its sort key among the items of the segment from all layers. Items with equal keys are in the order of
            the registry, then of the contribution.
        pinned: Whether it is trimmed after the unpinned items of the segment.

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
        position: `in_prompt` for its position in the order of segments, `before_prompt` for before everything,
            `in_chat` for among the messages.
        depth: With `in_chat`: how many messages follow it.
        role: With `in_chat`: its role.
        scan: Whether the caller's lorebook should scan it; None if that is not set.

    """

    position: Position = "in_prompt"
    depth: int = 0
    role: Literal["system", "user", "assistant"] = "system"
    scan: bool | None = None


IN_PROMPT = Placement()


class Contribution(NamedTuple):
    """The items of one segment.

    Several layers can contribute to one segment. In the order of the registry, the first of them sets its placement,
    and the first heading that is not "" becomes its heading.

    Attributes:
        segment: The segment's name: one of the layer's `SegmentSpec`s, or any other in the tables of `app.context`.
        items: In any order; `Item.order` sorts them.
        heading: The heading before the items; "" if the items contain their own.
        left_out: The items that exceed the layer's own budget.
        placement: Where the segment goes.
        is_window: Whether the response's `memo_window` counts the segment's items.

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
        gaps: Ranges before the history (inclusive) that the layer should cover but does not.
        edges: The seqs at which the history may be trimmed; used only if the chat uses this layer's edges.

    """

    segments: Sequence[Contribution] = ()
    gaps: Sequence[Range] = ()
    edges: Sequence[int] = ()


class View(NamedTuple):
    """The data that a layer gets to contribute to a context.

    Attributes:
        cached: The data that its `refresh_cache` stored on the line's row.
        queried: The result of its query (`Layer.context_query`); None without one, or if the query was skipped
            (`Layer.queried_if`).
        settings: The chat's settings.
        character: The character whose prompt it is, if known.
        before_seq: The seq of the message that the context is for: the layer leaves out what was made from that
            message or later ones. None for the next message.

    """

    cached: Mapping[str, Any]
    queried: Any
    settings: ChatSettings
    character: str | None = None
    before_seq: int | None = None

    def is_known(self, last_seq: int) -> bool:
        """Return whether a memory was known before the message that the context is for.

        `last_seq` is the seq of the last message that the memory is about.
        """
        return self.before_seq is None or last_seq < self.before_seq


def placement_of(settings: PlacementSettings) -> Placement | None:
    """Return the placement that the settings give a segment, or None if the context must not contain it."""
    position = _POSITIONS[settings.position]
    if position is None:
        return None
    if position == "in_chat":
        return Placement(position, settings.depth, settings.role, settings.scan)
    return Placement(position, scan=settings.scan)


def list_gaps(cached: Mapping[str, Any]) -> list[Range]:
    """Return the gaps that a layer stored on the line's row."""
    return [(first, last) for first, last in cached.get("gaps", ())]
