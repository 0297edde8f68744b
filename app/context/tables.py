"""The order of segments and the order of trimming: one table each. Pure.

What rarely changes comes first, so that the provider's cache pays for most of the prompt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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

TRIMS = ("recalled", "time", "diary", "memos", "summary", "recap", "facts", "blocks", "")
"""What is trimmed where `max_tokens` is small, first to last; "" are the caller's own segments.

After these the history is trimmed. What is neither here nor the history is never trimmed.
"""


@dataclass(frozen=True, slots=True)
class SegmentTables:
    """Both tables with the segments of some layers.

    Attributes:
        order: The names of all segments of the service, in the order of the prompt.
        trims: What is trimmed, first to last.
        instructions: What the model is told about a segment, by the segment's name, in the order of the instruction.

    """

    order: Sequence[str] = ORDER
    trims: Sequence[str] = TRIMS
    instructions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, specs: Iterable[SegmentSpec]) -> "SegmentTables":
        """The tables with `specs` inserted. Raises ValueError for a segment that has no position in one of them."""
        order, trims, specs = list(ORDER), list(TRIMS), list(specs)
        for spec in specs:
            if spec.name not in order:
                order.insert(_position(order, spec.after, spec.name) + 1, spec.name)
            if spec.name not in trims:
                trims.insert(_position(trims, spec.trimmed_before, spec.name), spec.name)
        described = [spec for spec in specs if spec.instruction]
        described.sort(key=lambda spec: (not spec.leads, order.index(spec.name)))
        return cls(tuple(order), tuple(trims), {spec.name: spec.instruction for spec in described})


def _position(table: Sequence[str], name: str | None, of: str) -> int:
    if name is None or name not in table:
        raise ValueError(f"the segment {of!r} has no position: {name!r} is not in the table")
    return table.index(name)


BASE = SegmentTables()
"""The tables without any layer."""
