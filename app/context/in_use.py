"""The layers that the contexts of this process use: their segment tables, and their parts of the SQL statement.

A context reads the row of a line with one statement. If a layer needs data that is not on the row, the statement has a
subquery for this layer (`Layer.context_query`). A subquery may have a condition (`Layer.queried_if`). If the condition
is not true for a line, the subquery would find nothing, so a context of the current line can do without the subquery
(`queries.find_current`). The results of some subqueries are remembered in this process until a revision rises
(`Layer.changes_with`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.context.tables import BASE, SegmentTables
from app.knowledge.liveness import keep_to_chat
from app.layers.layer import Layer
from app.layers.recent_chats import RecentChats


@dataclass(frozen=True, slots=True)
class InUse:
    """The segment tables and subqueries of the registered layers.

    Attributes:
        tables: The order of segments and the order of trimming.
        query_tables: The same for contexts with the option `query`: the segment `recalled` is trimmed after the memos.
        queries: The subquery of each layer that has one, by the layer's name; None before registration.
        current_queries: The subqueries for contexts of the current line without the option `before`.
        least_queries: `current_queries`, but NULL for all layers with a condition.
        other_queries: `current_queries`, but NULL for the layers in `remembered`.
        own_queries: The subqueries for callers who see only the chat itself.
        remembered: The layers with a condition whose results are remembered.
        changes_with: The names in the row's column `changed` on which the remembered results depend.
        conditions: (name of a column, SQL condition). The column `needs_remembered` is true if a line needs the
            subquery of a layer in `remembered`. The column `needs_others` is true if the line needs the subquery of
            another layer with a condition.
        recent: The remembered results, for the chats that this process has read last.

    """

    tables: SegmentTables = BASE
    query_tables: SegmentTables = BASE
    queries: Mapping[str, str] | None = None
    current_queries: Mapping[str, str] | None = None
    least_queries: Mapping[str, str] | None = None
    other_queries: Mapping[str, str] | None = None
    own_queries: Mapping[str, str] | None = None
    remembered: Sequence[str] = ()
    changes_with: Sequence[str] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    recent: RecentChats = field(default_factory=lambda: RecentChats(max_chats=10_000, max_bytes=16_000_000))


_in_use = InUse()

_NOTHING = "NULL::text"


def use_layers(layers: Sequence[Layer]) -> None:
    """Use these layers for the contexts of this process. Called by `app/registry.py`."""
    global _in_use
    specs = [spec for layer in layers for spec in layer.segments]
    queries = {layer.name: layer.context_query for layer in layers if layer.context_query}
    faster = {layer.name: layer.current_query for layer in layers if layer.current_query}
    current = queries | faster
    conditional = [layer for layer in layers if layer.queried_if]
    remembered = [layer for layer in conditional if layer.changes_with]
    others = [layer for layer in conditional if not layer.changes_with]
    own = {layer.name: keep_to_chat(layer.own_query or layer.context_query) for layer in layers if layer.context_query}
    tables = SegmentTables.of(specs)
    _in_use = InUse(
        tables=tables,
        query_tables=tables.keep_recalled(),
        queries=queries,
        current_queries=current,
        least_queries=current | _leave_out(conditional),
        other_queries=current | _leave_out(remembered),
        own_queries=own,
        remembered=[layer.name for layer in remembered],
        changes_with=list(dict.fromkeys(name for layer in remembered for name in layer.changes_with)),
        conditions=(("needs_remembered", _join(remembered)), ("needs_others", _join(others))),
    )


def _leave_out(layers: Sequence[Layer]) -> dict[str, str]:
    return {layer.name: _NOTHING for layer in layers}


def _join(layers: Sequence[Layer]) -> str:
    """Return the SQL condition that is true if a line needs the subquery of any of these layers."""
    return " OR ".join(dict.fromkeys(f"({layer.queried_if})" for layer in layers)) or "false"


def in_use() -> InUse:
    """Return the tables and subqueries of the layers in use. Raises RuntimeError if no layers are registered yet."""
    if _in_use.queries is None:
        raise RuntimeError("no layers are registered for contexts: import app.registry first")
    return _in_use
