"""The errors of memories."""

from app.kit.errors import Conflict, NotFound


class MemoryNotFound(NotFound):
    """There is no memory with this id, or it was forgotten."""

    code = "memory_not_found"
    title = "Unknown memory"


class MemoryOfCharacter(Conflict):
    """A chat with several characters cannot change what one of them knows, because all of them would see it."""

    code = "memory_of_character"
    title = "Memory of one character"
