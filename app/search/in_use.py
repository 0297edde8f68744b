"""The layers that searches of this process read, as the SQL statement of a search."""

from collections.abc import Sequence

from app.layers.layer import Layer
from app.search.queries import write_search

_statement = ""


def search_layers(layers: Sequence[Layer]) -> None:
    """Search the texts of these layers in this process. Called by `app/registry.py`."""
    global _statement
    _statement = write_search(layers)


def statement_in_use() -> str:
    """Return the statement. Raises RuntimeError if no layers are registered yet."""
    if not _statement:
        raise RuntimeError("no layers are registered for searches: import app.registry first")
    return _statement
