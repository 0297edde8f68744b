"""The order of segments and the order of trimming. Pure.

Segments that rarely change come first, so that the provider can cache most of the prompt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from app.layers.contribution import SegmentSpec

ORDER = (
    "system",
    "character",
    "user",
    "instruction",
    "blocks",
    "facts",
    "pinned",
    "diary",
    "recap",
    "summary",
    "memos",
    "history",
    "recalled",
    "time",
    "newest",
)
"""The names of the segments in the order of the prompt; a layer can insert its own (`SegmentSpec.after`)."""

OWN = frozenset({"system", "character", "user", "instruction", "pinned", "history", "recalled", "time", "newest"})
"""The segments that the service makes itself; layers contribute to all others."""

TRIMS = ("recalled", "time", "diary", "memos", "summary", "recap", "facts", "blocks", "")
"""The segments that are trimmed to fit `max_tokens`, first to last; "" means the caller's own segments.

The history is trimmed last. If `Parts.keeps_messages` is set, the history is trimmed twice: first of all, down to that
many messages, and again after all segments. Segments that are not listed here are never trimmed.
"""


@dataclass(frozen=True)
class SegmentTables:
    """The order of segments and the order of trimming, including the segments of some layers.

    Attributes:
        order: The names of all segments except the caller's own, in the order of the prompt.
        trims: The segments that are trimmed, first to last.
        instructions: For the name of a segment, the instruction about it. The instructions are in the order in which
            the segment `instruction` contains them.

    """

    order: Sequence[str] = ORDER
    trims: Sequence[str] = TRIMS
    instructions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def prefix(self) -> frozenset[str]:
        """The names of the segments before the history."""
        return frozenset(self.order[: self.order.index("history")])

    def keep_recalled(self) -> "SegmentTables":
        """Return the tables for a context with a query: `recalled` is trimmed after the memos, not before."""
        others = [name for name in self.trims if name != "recalled"]
        at = others.index("memos") + 1
        return replace(self, trims=(*others[:at], "recalled", *others[at:]))

    @classmethod
    def of(cls, specs: Iterable[SegmentSpec]) -> "SegmentTables":
        """Return the tables with `specs` inserted. Specs at the same position keep their order.

        Raises ValueError if `find_unplaced` returns any problem.
        """
        specs = list(specs)
        if unplaced := find_unplaced(specs):
            raise ValueError(unplaced[0])
        order, trims = _order_of(specs), _trims_of(specs)
        described = [spec for spec in specs if spec.instruction]
        described.sort(key=lambda spec: (not spec.leads, order.index(spec.name)))
        return cls(order, trims, {spec.name: spec.instruction for spec in described})


def find_unplaced(specs: Sequence[SegmentSpec]) -> list[str]:
    """Return an error message for each segment that has no position in the prompt, or none in the trimming order."""
    order, trims = _order_of(specs), _trims_of(specs)
    return [
        *(f"the segment {one.name!r} follows an unknown one: {one.after!r}" for one in specs if one.name not in order),
        *(
            f"the segment {one.name!r} is trimmed before an unknown one: {one.trimmed_before!r}"
            for one in specs
            if one.name not in trims
        ),
    ]


def _order_of(specs: Iterable[SegmentSpec]) -> tuple[str, ...]:
    followers = _group((spec.after, spec.name) for spec in specs if spec.name not in ORDER)

    def expand(name: str) -> list[str]:
        return [name, *(one for follower in followers.get(name, ()) for one in expand(follower))]

    return tuple(one for name in ORDER for one in expand(name))


def _trims_of(specs: Iterable[SegmentSpec]) -> tuple[str, ...]:
    earlier = _group((spec.trimmed_before, spec.name) for spec in specs if spec.name not in TRIMS)

    def expand(name: str) -> list[str]:
        return [*(one for before in earlier.get(name, ()) for one in expand(before)), name]

    return tuple(one for name in TRIMS for one in expand(name))


def _group(pairs: Iterable[tuple[str | None, str]]) -> Mapping[str | None, Sequence[str]]:
    """Return the second values of the pairs, grouped by the first."""
    groups: dict[str | None, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


BASE = SegmentTables()
"""The tables without the segments of layers."""
