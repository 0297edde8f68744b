"""Decides to which reply the content that a tool wrote belongs. Pure.

A reply is a message of the assistant that is not a thought and makes no tool calls. A message that makes calls is not
the reply, even if it has a text: the reply is the message that ends the chain of calls. A binding connects a call with
its reply, and is open until this reply is stored.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

MAX_QUOTED_CHARS = 120
"""A quotation of what a call wrote has at most this many characters between its quotation marks."""

HASH_BYTES = 16

TEXT_HASH = f"substr(sha256(convert_to(m.content, 'UTF8')), 1, {HASH_BYTES})"
"""SQL for the hash of the text of the message `m`, as `hash_text` computes it."""


class Speaker(Protocol):
    """The fields that decide whether a message is a reply of a character; rows and new messages both have them."""

    @property
    def role(self) -> str: ...  # noqa: D102 - fields
    @property
    def name(self) -> str | None: ...  # noqa: D102
    @property
    def kind(self) -> str | None: ...  # noqa: D102
    @property
    def tool_calls(self) -> object: ...  # noqa: D102


class Appended(Speaker, Protocol):
    """A message that was appended."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - fields
    @property
    def message_id(self) -> str: ...  # noqa: D102


class LogMessage(NamedTuple):
    """A stored message: the newest one when a tool is called, the one that the call names, or one that was restored."""

    seq: int
    message_id: str
    role: str
    name: str | None
    kind: str | None
    tool_calls: bool
    text_hash: bytes
    sent_at: datetime


class Target(NamedTuple):
    """The reply that a call names: the id of a message, and whether the reply is that message's next swipe."""

    message_id: str | None = None
    next_swipe: bool = False


class Placement(NamedTuple):
    """The reply of a call, or what an open call waits for; see `Binding`."""

    message_id: str | None
    at_seq: int
    text_hash: bytes | None = None
    next_swipe: bool = False
    awaits_user: bool = False
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Open:
    """An open binding; `turn_seq` is a seq in the turn of its reply, as `find_turn_seq` returns it."""

    binding_id: UUID
    layer: str
    character: str
    message_id: str | None
    next_swipe: bool
    awaits_user: bool
    at_seq: int
    asked_id: str | None
    turn_seq: int


class Changed(Protocol):
    """A message after a change."""

    @property
    def message_id(self) -> str: ...  # noqa: D102 - fields
    @property
    def deleted(self) -> bool: ...  # noqa: D102
    @property
    def hidden_by(self) -> str | None: ...  # noqa: D102


Outcome = Literal["bound", "dropped", "waits"]


class Resolved(NamedTuple):
    """The outcome for an open binding when messages are appended.

    Attributes:
        outcome: `bound` to `message_id`, `dropped`, or `waits` for later messages.
        awaits_user: The new value of `awaits_user`, if the binding stays open.

    """

    outcome: Outcome
    message_id: str | None = None
    awaits_user: bool = False


def is_reply(message: Speaker, character: str) -> bool:
    """Return whether a message is a reply of the character.

    A reply without a name is a reply of any character. If `character` is empty, every reply counts.
    """
    if message.role != "assistant" or message.kind is not None or message.tool_calls:
        return False
    return not character or message.name is None or message.name == character


def find_turn_seq(newest: LogMessage | None, named: LogMessage | None) -> int:
    """Return a seq of the turn to which an awaited reply will belong.

    An open call and its reply are in the turn of the message that the call follows. If that message is itself a
    finished reply, they are in the next turn, which begins at the next seq.

    Args:
        newest: The newest message when the tool was called; None if there was none, and the result is then 0.
        named: The message whose next swipe is awaited; None if the call awaits a new message.

    """
    if named:
        return named.seq
    if newest is None:
        return 0
    return newest.seq + is_reply(newest, "")


def choose_placement(newest: LogMessage | None, named: LogMessage | None, target: Target) -> Placement:
    """Return the reply of a call that is made now, or what the call waits for.

    Args:
        newest: The newest message that is not deleted, not a thought and not hidden by a person; None if there is none.
        named: The message whose id the call gives; None if the call gives no id, or if the message is not stored yet.
            With `target.next_swipe`, never None: if the call gives no id, `named` is the newest message.
        target: What the call says about its reply.

    In a chat without messages, a call belongs to no reply, unless it names one.
    """
    at_seq = newest.seq if newest else 0
    if named and target.next_swipe:
        return Placement(named.message_id, max(at_seq, named.seq), next_swipe=True, is_open=True)
    if named:
        return Placement(named.message_id, named.seq, named.text_hash)
    if target.message_id is not None:
        awaits_user = newest is None or newest.role != "user"
        return Placement(target.message_id, at_seq, awaits_user=awaits_user, is_open=True)
    if newest and is_reply(newest, ""):
        return Placement(newest.message_id, newest.seq, newest.text_hash)
    return Placement(None, at_seq, is_open=newest is not None)


def resolve(one: Open, fresh: Sequence[Appended]) -> Resolved:
    """Return what becomes of an open binding when `fresh` messages are appended, in this order.

    If the call names one of these messages, the binding is bound to it, or dropped if the message is not
    the assistant's. A call that names no message is bound to the first reply of the character. If a user message comes
    before the reply, the call is dropped, unless it awaits that message (`awaits_user`). Messages that a re-import
    inserted before the call do not count.
    """
    if one.message_id is not None and not one.next_swipe:
        named = next((message for message in fresh if message.message_id == one.message_id), None)
        if named:
            return Resolved("bound" if named.role == "assistant" else "dropped", named.message_id)
    awaits_user = one.awaits_user
    for message in fresh:
        if message.seq <= one.at_seq:
            continue
        if message.role == "user":
            if not awaits_user:
                return Resolved("dropped")
            awaits_user = False
        elif one.message_id is None and is_reply(message, one.character):
            return Resolved("bound", message.message_id)
    return Resolved("waits", awaits_user=awaits_user)


def resolve_texts(waiting: Iterable[Open], texts: Iterable[tuple[str, str]]) -> list[tuple[UUID, str, str]]:
    """Return (binding_id, message_id, text) of the open bindings that wait for the next alternative of a message.

    `texts` are (message_id, text): a text that was added to the message.
    """
    fresh = dict(texts)
    return [
        (one.binding_id, one.message_id, fresh[one.message_id])
        for one in waiting
        if one.next_swipe and one.message_id in fresh
    ]


def is_discarded(one: Open, changed: Iterable[Changed]) -> bool:
    """Return whether an open call is to be dropped because one of the `changed` messages was deleted or hidden.

    - A call for the next alternative of a message is dropped if that message is deleted.
    - A call that names its reply is never dropped here: the reply is recognised by its id, whatever precedes it.
    - Any other call waits for the reply to the message that was the newest when the tool was called. It is dropped if
      that message is deleted, or hidden by a person, because the next reply then answers another message.
    """
    if one.next_swipe:
        return any(message.deleted for message in changed if message.message_id == one.message_id)
    if one.message_id is not None:
        return False
    return any(
        message.deleted or message.hidden_by == "user" for message in changed if message.message_id == one.asked_id
    )


def hash_text(content: str) -> bytes:
    """Return the hash of a reply's text; `TEXT_HASH` computes the same."""
    return hashlib.sha256(content.encode()).digest()[:HASH_BYTES]


def quote(text: str) -> str:
    """Return a text, shortened to MAX_QUOTED_CHARS, on one line in quotation marks, for `Layer.describe_writes`."""
    words = " ".join(text.split())
    return f"“{words if len(words) <= MAX_QUOTED_CHARS else f'{words[: MAX_QUOTED_CHARS - 1]}…'}”"
