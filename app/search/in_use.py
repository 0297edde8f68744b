"""The layers that searches of this process read, as the SQL statements of searches."""

from collections.abc import Sequence

from app.layers.layer import Layer
from app.search.queries import Statements, write_search

_statements: Statements | None = None


def search_layers(layers: Sequence[Layer]) -> None:
    """Search the texts of these layers in this process. Called by `app/registry.py`."""
    global _statements
    _statements = write_search(layers)


def statements_in_use() -> Statements:
    """Return the statements. Raises RuntimeError if no layers are registered yet."""
    if _statements is None:
        raise RuntimeError("no layers are registered for searches: import app.registry first")
    return _statements
