"""The layers that the contexts of this process use: their segment tables, and their parts of the SQL statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.context.tables import BASE, SegmentTables
from app.knowledge.liveness import keep_to_chat
from app.layers.layer import Layer


@dataclass(frozen=True, slots=True)
class InUse:
    """The segment tables and subqueries of the registered layers.

    Attributes:
        tables: The order of segments and the order of trimming.
        query_tables: The same for contexts with a query: what it found is trimmed after the memos.
        queries: The scalar subqueries of the layers that have one, by the layer's name; None before registration.
        current_queries: The same for contexts of the current line that are not before a message.
        least_queries: The same for those of a line that does not need the queries of layers with a condition.
        own_queries: The queries for callers who see only the chat itself.
        needs_all: The condition on which a line needs `current_queries`; None if no layer has a condition.

    """

    tables: SegmentTables = BASE
    query_tables: SegmentTables = BASE
    queries: Mapping[str, str] | None = None
    current_queries: Mapping[str, str] | None = None
    least_queries: Mapping[str, str] | None = None
    own_queries: Mapping[str, str] | None = None
    needs_all: str | None = None


_in_use = InUse()

_NOTHING = "NULL::text"


def use_layers(layers: Sequence[Layer]) -> None:
    """Use these layers for the contexts of this process. Called by `app/registry.py`."""
    global _in_use
    specs = [spec for layer in layers for spec in layer.segments]
    queries = {layer.name: layer.context_query for layer in layers if layer.context_query}
    faster = {layer.name: layer.current_query for layer in layers if layer.current_query}
    conditions = {layer.name: layer.queried_if for layer in layers if layer.queried_if}
    own = {layer.name: keep_to_chat(layer.own_query or layer.context_query) for layer in layers if layer.context_query}
    tables = SegmentTables.of(specs)
    _in_use = InUse(
        tables,
        tables.keep_recalled(),
        queries,
        queries | faster,
        queries | faster | dict.fromkeys(conditions, _NOTHING),
        own,
        " OR ".join(f"({condition})" for condition in dict.fromkeys(conditions.values())) or None,
    )


def in_use() -> InUse:
    """Return the tables and subqueries of the layers in use. Raises RuntimeError if no layers are registered yet."""
    if _in_use.queries is None:
        raise RuntimeError("no layers are registered for contexts: import app.registry first")
    return _in_use
