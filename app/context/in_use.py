"""What the layers in use mean for the contexts of this process: the tables of segments, and the one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.context.tables import BASE, SegmentTables
from app.layers.layer import Layer


@dataclass(frozen=True, slots=True)
class InUse:
    """What follows from the layers.

    Attributes:
        tables: The order of segments, and that of trimming.
        queries: The scalar subqueries of the layers that have one, by the layer's name.

    """

    tables: SegmentTables = BASE
    queries: Mapping[str, str] | None = None


_in_use = InUse()


def use_layers(layers: Sequence[Layer]) -> None:
    """Have the contexts of this process be made of these layers; `app/registry.py` calls it."""
    global _in_use
    specs = [spec for layer in layers for spec in layer.segments]
    queries = {layer.name: layer.context_query for layer in layers if layer.context_query}
    _in_use = InUse(SegmentTables.of(specs), queries)


def in_use() -> InUse:
    """What follows from the layers in use. Raises RuntimeError before the registry was imported."""
    if _in_use.queries is None:
        raise RuntimeError("contexts have no layers yet: import app.registry first")
    return _in_use
