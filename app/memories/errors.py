"""The errors of memories."""

from app.kit.errors import NotFound


class MemoryNotFound(NotFound):
    """No memory with this id holds."""

    code = "memory_not_found"
    title = "Unknown memory"
