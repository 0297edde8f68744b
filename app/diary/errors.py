"""Problems of the diary."""

from app.kit.errors import NotFound


class EntryNotFound(NotFound):
    """The diaries of the chat have no entry with this id."""

    code = "entry_not_found"
    title = "Unknown diary entry"
