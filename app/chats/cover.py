"""What stands for messages that are not sent. Pure."""

from dataclasses import dataclass
from typing import Literal

from app.chats.eligibility import Filters


@dataclass(frozen=True, slots=True)
class Cover:
    """Something of a layer that stands, or is to stand, for a range of messages.

    Attributes:
        first_seq: The first message of the range.
        last_seq: The last one, inclusive.
        kind: What it is.
        id: Its id, or the number of a version; None for what is not there yet, like a batch that fills.
        state: `made` also of what has gone stale but is shown; `empty` says nothing.
        filters: What decided on eligibility in it; None where the chat's settings of today do.

    """

    first_seq: int
    last_seq: int
    kind: Literal["memo", "summary", "recap"]
    id: str | None
    state: Literal["pending", "failed", "empty", "made"]
    filters: Filters | None = None
