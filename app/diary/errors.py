"""What can be wrong with a request about diaries."""

from app.kit.errors import NotFound


class EntryNotFound(NotFound):
    """There is no such entry in the diaries of this chat."""

    code = "entry_not_found"
    title = "Unknown diary entry"
