"""Describes which messages an object of a layer covers, such as a memo. Pure."""

from dataclasses import dataclass
from typing import Literal

from app.chats.eligibility import Filters


@dataclass(frozen=True, slots=True)
class Coverage:
    """A range of messages that an object of a layer covers or will cover.

    Attributes:
        first_seq: The first message of the range.
        last_seq: The last message of the range, inclusive.
        kind: The kind of the object, such as `memo`. The inclusion report gives it as the status of messages that the
            object covers.
        id: The object's id, or the number of a version; None if it does not exist yet, for example the memo of a batch
            that still lacks messages.
        state: A `pending` object is not made yet, a `failed` one has failed for good, and an `empty` one has no text.
            A stale object is `made`, too, if it stays in the prompt or will not be made again. A fact or memory that
            was `learnt` from messages does not cover them: the report names it for messages that nothing covers.
        filters: The eligibility filters of the object; None if the chat's current settings decide.
        expires: Whether the object can leave the prompt while it is still valid, as a memo leaves the memo window.

    """

    first_seq: int
    last_seq: int
    kind: str
    id: str | None
    state: Literal["pending", "failed", "empty", "made", "learnt"]
    filters: Filters | None = None
    expires: bool = False
