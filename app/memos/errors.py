"""What can be wrong with a request about memos."""

from app.kit.errors import Conflict, NotFound


class MemoNotFound(NotFound):
    """There is no such memo in this book."""

    code = "memo_not_found"
    title = "Unknown memo"


class MemoEdited(Conflict):
    """A person wrote or edited it: a model rewrites it only if asked to."""

    code = "memo_edited"
    title = "Memo was edited by a person"


class NothingToSummarise(Conflict):
    """It covers no messages, so no model can make it."""

    code = "memo_without_messages"
    title = "Memo covers no messages"
