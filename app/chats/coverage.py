"""What covers messages that are not sent. Pure."""

from dataclasses import dataclass
from typing import Literal

from app.chats.eligibility import Filters


@dataclass(frozen=True, slots=True)
class Coverage:
    """Something of a layer that covers a range of messages, or is to cover it.

    Attributes:
        first_seq: The first message of the range.
        last_seq: The last one, inclusive.
        kind: What it is: the status that the inclusion report gives to messages that it covers.
        id: Its id, or the number of a version; None for what does not exist yet, such as a batch that fills.
        state: `made` also for what is stale but shown; `empty` has no text.
        filters: What decides on eligibility in it; None where the chat's current settings do.
        expires: Whether it can leave the prompt while it is still valid, as a memo leaves the window.

    """

    first_seq: int
    last_seq: int
    kind: str
    id: str | None
    state: Literal["pending", "failed", "empty", "made"]
    filters: Filters | None = None
    expires: bool = False
