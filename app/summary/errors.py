"""Problems of the summary."""

from app.kit.errors import Conflict


class SummaryEdited(Conflict):
    """A person wrote the summary, and the request does not allow replacing it."""

    code = "summary_edited"
    title = "Written by a person"


class NothingToFold(Conflict):
    """Every message is still sent verbatim, so a summary would repeat them."""

    code = "nothing_to_fold"
    title = "No messages to summarise yet"
