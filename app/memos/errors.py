"""The errors of memos."""

from app.kit.errors import Conflict, NotFound


class MemoNotFound(NotFound):
    """The memo book has no memo with this id."""

    code = "memo_not_found"
    title = "Unknown memo"


class MemoEdited(Conflict):
    """A person edited the memo; it is regenerated only with `replace_edited`."""

    code = "memo_edited"
    title = "Memo was edited by a person"


class MemosOff(Conflict):
    """Memos are switched off, so no memos can be made."""

    code = "memos_off"
    title = "Memos are off"


class NothingToSummarise(Conflict):
    """The memo covers no messages, so it cannot be regenerated."""

    code = "memo_without_messages"
    title = "Memo covers no messages"
