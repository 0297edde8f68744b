"""The head of a line: what an append reads and writes of a chat's row. Pure.

`advance` counts new messages in; everything that follows from them (batches, the cut) looks at the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.chats.eligibility import Filters, is_sent
from app.chats.settings import ChatSettings


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that is being appended, counted and hashed; `seq` is 0 until it has a place."""

    message_id: str
    role: str
    content: str
    tokens: int
    sent_at: datetime
    identity: bytes
    digest: bytes
    blank: bool = False
    name: str | None = None
    kind: str | None = None
    importance: float | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None
    metadata: str | None = None
    seq: int = 0
    excluded: bool = False
    hidden_by: str | None = None
    deleted: bool = False


class RangeMessage(NamedTuple):
    """What of a stored message decides whether it is summarised, and what it says, as a digest."""

    seq: int
    message_id: str
    role: str
    name: str | None
    kind: str | None
    tokens: int
    blank: bool
    excluded: bool
    hidden_by: str | None
    deleted: bool
    digest: bytes


@dataclass(slots=True)
class Head:
    """The columns of a chat's row that an append may change, with what it needs to judge by.

    Attributes:
        chat_key: The chat.
        line_id: The line whose head it is.
        tenant: Whose it is.
        settings: As they take effect.
        filters: What of the settings decides on eligibility.
        head_seq: The newest seq; 0 for an empty chat.
        anchor_seq: The first seq that is still sent verbatim.
        history_messages: How many messages are sent from the anchor on.
        cut_waits: Whether a full cut waits for something to settle.
        last_cut: `{"at_seq", "reason", "at"}` of the last cut.
        awaits_reply: Whether the user spoke last, so that a reply completes a turn.
        cursors: What each layer keeps here, by its name, and the cut; small, opaque to everyone else.
        last_active_at: When something was appended last, by the service's clock.
        is_current: Whether the line is its chat's current one; a job can find that it was left meanwhile.

    """

    chat_key: UUID
    line_id: UUID
    tenant: str
    settings: ChatSettings
    filters: Filters
    last_active_at: datetime
    head_seq: int = 0
    anchor_seq: int = 1
    history_messages: int = 0
    message_count: int = 0
    turn_count: int = 0
    token_count: int = 0
    memo_count: int = 0
    memo_number: int = 0
    awaits_reply: bool = False
    cut_waits: bool = False
    last_cut: dict[str, Any] | None = None
    cursors: dict[str, Any] = field(default_factory=dict)
    is_current: bool = True

    @property
    def line(self) -> tuple[UUID, UUID]:
        """The line whose head it is, as statements take it."""
        return self.chat_key, self.line_id


@dataclass(frozen=True, slots=True)
class Advance:
    """New messages have been appended to a line.

    Attributes:
        head: The head as it is now; followers change it, it is written last.
        fresh: The new messages in seq order.
        now: The service's time.
        cold: Whether the provider's cache was gone before the first of them.
        former_head_seq: The newest seq before them.
        former_history_messages: How many messages were sent before them.

    """

    head: Head
    fresh: Sequence[NewMessage]
    now: datetime
    cold: bool
    former_head_seq: int
    former_history_messages: int


def advance(head: Head, fresh: Sequence[NewMessage], *, now: datetime, created: bool) -> Advance:
    """Count `fresh` into `head` (changed in place) and say what the append was like."""
    silence_s = (now - head.last_active_at).total_seconds()
    outcome = Advance(
        head=head,
        fresh=fresh,
        now=now,
        cold=not created and silence_s > head.settings.cache_ttl_s,
        former_head_seq=head.head_seq,
        former_history_messages=head.history_messages,
    )
    for message in fresh:
        head.head_seq = message.seq
        head.message_count += 1
        head.token_count += message.tokens
        head.history_messages += is_sent(message)
        if message.role == "user":
            head.awaits_reply = True
        elif message.role == "assistant" and head.awaits_reply and message.kind is None:
            head.awaits_reply = False
            head.turn_count += 1
    head.last_active_at = max(now, head.last_active_at)
    return outcome
