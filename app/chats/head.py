"""The head of a line: the columns of its row that an append reads and writes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from app.chats.characters import SPEAKING_ROLES, Renamed
from app.chats.eligibility import Filters
from app.chats.hashes import content_digest
from app.chats.settings import ChatSettings

CutReason = Literal["full", "cold", "forced", "session", "rewind"]


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the history, with what a cut depends on.

    Attributes:
        seq: Its seq.
        is_user: Whether its role is `user`.
        calls: The ids of the tool calls it makes.
        answers: The id of the tool call whose result it is.
        only_calls: Whether it makes tool calls and has no text, so that it is sent only with a result of a call.

    """

    seq: int
    is_user: bool = False
    calls: tuple[str, ...] = ()
    answers: str | None = None
    only_calls: bool = False


class NewMessage(NamedTuple):
    """A message to append, with its tokens and hashes; `seq` is 0 until it is assigned.

    `swipes` has all of its texts, including the selected one, which is `content`; it is empty if none were given.
    """

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
    swipes: Sequence[str] = ()
    selected_swipe: int = 0


class RangeMessage(NamedTuple):
    """A stored message: what decides whether it is summarised, and the digest of its content."""

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
    """The columns of a line's row that an append may change, and the settings that an append depends on.

    Attributes:
        chat_key: The chat's key.
        line_id: The line's id.
        tenant: The chat's tenant.
        settings: The settings, as they take effect.
        filters: The eligibility filters from the settings and the characters.
        head_seq: The newest seq; 0 for an empty chat.
        anchor_seq: The first seq that is still sent verbatim.
        history_messages: How many messages are sent from the anchor on.
        message_count: The number of messages that are not deleted.
        turn_count: The number of turns: a user's message and the reply to it.
        token_count: The tokens of the messages that are not deleted.
        memo_count: The number of memos in the memo book.
        memo_number: The highest number of a memo so far.
        cut_waits: Whether the history is full and its cut waits, for memories that cover the old messages or for an
            edge.
        last_cut: `{"at_seq", "reason", "at"}` of the last cut.
        awaits_reply: Whether the user spoke last, so that a reply completes a turn.
        cursors: Small states by name: of layers, of the cut (`cut`), of `bindings`, of `knowledge`, of the messages'
            `vectors`, and of the `pauses` between calls of the model.
        last_active_at: When messages were last appended, or when the chat was created or forked if that is later, by
            the service's clock.
        is_current: Whether the line is its chat's current one. A job can read a line that is no longer current.
        user_id: The chat's user; None if the chat has none.
        sole_character: The name of the chat's only active character; None if there are none or several.
        time_zone: The chat's time zone, an IANA name.
        renamed: The characters that have a `hashed_name` (`character_list.py`). The keys are their current and their
            former names. Empty in most chats.

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
    user_id: str | None = None
    sole_character: str | None = None
    time_zone: str = "UTC"
    renamed: Mapping[str, Renamed] = field(default_factory=dict)

    @property
    def line(self) -> tuple[UUID, UUID]:
        """The chat's key and the line's id, as statements take them."""
        return self.chat_key, self.line_id

    def current_name(self, name: str) -> str:
        """Return the current name of a character, given any of its names; another name is returned as it is."""
        renamed = self.renamed.get(name)
        return renamed.name if renamed else name

    def with_current_name(self, message: NewMessage) -> NewMessage:
        """Return a message with the current name of its speaker, if a former one was given."""
        if message.name is None or message.name not in self.renamed or message.role not in SPEAKING_ROLES:
            return message
        name = self.renamed[message.name].name
        return message._replace(name=name, digest=self.digest(message.role, name, message.content))

    def digest(self, role: str, name: str | None, content: str) -> bytes:
        """Return the digest of a message's content.

        For a message of a renamed character, the digest is the same as before the rename.
        """
        renamed = self.renamed.get(name) if name is not None and role in SPEAKING_ROLES else None
        return content_digest(role, renamed.hashed_name if renamed else name, content)
