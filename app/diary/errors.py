"""Problems of the diary."""

from app.kit.errors import Conflict, NotFound


class EntryNotFound(NotFound):
    """The diaries of the chat have no entry with this id."""

    code = "entry_not_found"
    title = "Unknown diary entry"


class NothingToFold(Conflict):
    """Diaries are off, or the diary has no fold to make again and is short enough to be shown whole."""

    code = "nothing_to_fold"
    title = "Nothing to fold yet"
