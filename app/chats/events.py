"""Typed events of a chat, and functions that count appended and changed messages in the line's head. Pure.

An operation on a chat defers an event. `app/pipeline.py` has a function, the follower, for each type of deferred event.
The follower runs in the same transaction before the commit. So what it writes, such as batches, work items and marks
of stale memories, is committed together with the messages or not at all. `SettingsChanged` and `AnchorMoved` are not
deferred: the layers' handlers are called with them directly.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from app.chats.eligibility import is_sent, only_calls
from app.chats.head import CutReason, Head, NewMessage, RangeMessage
from app.chats.prompt_cache import find_ttl_s, note_pause

Pair = tuple[RangeMessage, RangeMessage]
"""A message before and after a change."""

SessionReason = Literal["first", "idle", "daily", "turns", "manual"]
"""Why a session begins: `first` if it is the chat's first one; otherwise why the session before it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEvent:
    """The base of events on a line.

    Attributes:
        head: The line's head, locked, with the event counted in. Handlers may change it; it is written last.
        now: The service's time.
        settle_s: How many seconds to wait for further edits before a worker may do the work that the event causes.

    """

    head: Head
    now: datetime
    settle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAppended(LineEvent):
    """New messages were appended.

    Attributes:
        fresh: The new messages in seq order.
        cold: Whether the provider's cache had expired before the first of them.
        former_head_seq: The newest seq before them.
        former_history_messages: How many messages the history (the part that is sent word for word) contained before
            them.
        former_active_at: When messages were last appended before them; see `Head.last_active_at`.
        former_awaits_reply: Whether the user spoke last before them.
        moved: The seqs of those messages in `fresh` that a re-import moved here from the former line. Messages that it
            restored are not among them.

    """

    fresh: Sequence[NewMessage]
    cold: bool
    former_head_seq: int
    former_history_messages: int
    former_active_at: datetime
    former_awaits_reply: bool
    moved: frozenset[int] = frozenset()

    @property
    def answers_calls(self) -> bool:
        """Whether a result of a tool call is new, so that a message that only makes calls may be sent from now on."""
        return any(message.tool_call_id is not None for message in self.fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsAdded(LineEvent):
    """Messages got new texts, by added swipes or edits. Selecting a swipe that a message already has adds no text.

    `MessagesChanged` follows if the selected text of a message is another one now.

    Attributes:
        texts: (message id, text) of each message. If several texts were added to a message, the text is the selected
            one, or the first one if none of them is selected.

    """

    texts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesChanged(LineEvent):
    """Messages were edited, deleted, restored, hidden, un-hidden, excluded or included, or got another time.

    The event also reports that auto-hide may hide a message again (`unpinned`), and that tool calls may have other
    results (`relinked`).

    Attributes:
        pairs: Each changed message before and after, in seq order. The two are equal if only the time changed.
        redated: The seqs of the messages whose times have changed.
        unpinned: Whether a person had made a message visible for good and has taken this back, so that auto-hide may
            hide it. If nothing else about the message changed, it is not in `pairs`.
        relinked: Whether a message now makes other tool calls, or is now the result of another call. A message that
            only makes calls may thus gain or lose its result. If nothing else about a message changed, it is not in
            `pairs`.

    """

    pairs: Sequence[Pair]
    redated: frozenset[int] = frozenset()
    unpinned: bool = False
    relinked: bool = False

    @property
    def alters_history(self) -> bool:
        """Whether a message may join or leave the messages that are sent."""
        return self.relinked or any(
            is_sent(before) != is_sent(after) or only_calls(before) != only_calls(after) for before, after in self.pairs
        )

    @property
    def by_scenes(self) -> bool:
        """Whether any of the messages is hidden by scenes, before or after the change."""
        return any("scenes" in (before.hidden_by, after.hidden_by) for before, after in self.pairs)

    @property
    def changed_seqs(self) -> list[int]:
        """The seqs, in order, of the messages for which `content_changed` is true."""
        return [pair[1].seq for pair in self.pairs if content_changed(pair)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTruncated(LineEvent):
    """The end of the line was cut off: no message is left from `from_seq` (inclusive) on.

    Attributes:
        from_seq: The first seq without a message.
        copied_from: The line that was copied, up to `from_seq`, if this line is a new copy; else None.

    """

    from_seq: int
    copied_from: tuple[UUID, UUID] | None = None

    @property
    def former_line(self) -> tuple[UUID, UUID]:
        """The line that has all rows from before the truncation.

        It is `copied_from` if this line is a new copy, because a copy can lack some of the rows; otherwise this line.
        """
        return self.copied_from or self.head.line


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesMoved(LineEvent):
    """A re-import copied messages of another line of the chat to a new line, where they can have other seqs.

    Attributes:
        from_line_id: The other line.
        kept_seq: The last seq up to which both lines have the same messages at the same seqs.
        seqs: (seq on the other line, seq on this one) of each message that moved, sorted by the first.

    """

    from_line_id: UUID
    kept_seq: int
    seqs: Sequence[tuple[int, int]]

    def seq_here(self, seq: int) -> int:
        """Convert a seq of the other line into one of this line.

        Find the last message at or before `seq` that both lines have, and return its seq on this line.
        """
        before = bisect_right(self.seqs, seq, key=lambda pair: pair[0])
        return min(seq, self.kept_seq) if before == 0 else self.seqs[before - 1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanged(LineEvent):
    """A PUT may have changed the chat's settings, characters or time zone, or a vault was imported as the chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterRenamed(LineEvent):
    """A character has a new name: in the list, in its messages and in `head`. No hash of a message changes.

    Attributes:
        former: The name until now.
        name: The name from now on.

    """

    former: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorMoved(LineEvent):
    """The history begins at another message.

    Attributes:
        reason: Why the history was cut; None if the anchor only moved past messages that are not sent.

    """

    reason: CutReason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBroken(LineEvent):
    """A session ended, by hand or before a message of the append that is being handled.

    Attributes:
        session_id: The id of the session that ended.
        number: Its number.
        first_seq: The seq at which it began.
        last_seq: The seq at which it ended, inclusive; the next session begins after it.
        reason: Why it ended.

    """

    session_id: UUID
    number: int
    first_seq: int
    last_seq: int
    reason: SessionReason


@dataclass(frozen=True, slots=True)
class LayerChanged:
    """A job, a person or a tool changed the content of a layer, or a job gave up.

    If a cut of the history waits, the follower decides again whether it can be made.

    Attributes:
        head: The line's head, locked.
        layer: The layer's name.

    """

    head: Head
    layer: str


@dataclass(frozen=True, slots=True)
class CurrentLineReplaced:
    """Another line of a chat has become current, by a restore, a switch or a re-import, or a vault was imported."""

    tenant: str
    chat_key: UUID


@dataclass(frozen=True, slots=True)
class ChatForked:
    """A line of a chat was copied into a new chat.

    Attributes:
        chat_key: The key of the chat that was forked.
        target: The key of the new chat, and the id of its line.

    """

    chat_key: UUID
    target: tuple[UUID, UUID]


@dataclass(frozen=True, slots=True)
class ChatEdited:
    """A PUT of the chat wrote the row of a line, so its head has to be read again."""

    chat_key: UUID
    line_id: UUID


def content_changed(pair: Pair) -> bool:
    """Return whether something changed that summaries depend on: a message's text, its speaker or its eligibility.

    Hiding by scenes (auto-hide) changes none of these: messages that scenes hide stay eligible.
    """
    before, after = (message._replace(hidden_by=None) if message.hidden_by == "scenes" else message for message in pair)
    return before != after


def count_appended(
    head: Head,
    fresh: Sequence[NewMessage],
    *,
    now: datetime,
    settle_s: float,
    created: bool,
    moved: frozenset[int] = frozenset(),
) -> MessagesAppended:
    """Count `fresh` into `head` (changed in place) and return the event; `moved` is as in `MessagesAppended`.

    A message that only makes tool calls counts as not sent here. If `answers_calls` of the event is true, its follower
    counts the sent messages again (`history_messages`), and then such a message counts if it has a result.

    Whether the provider's cache had expired is decided before the pause is stored: the stored pause can change the
    duration that `cache: auto` chooses, but the last prompt was cached for the former duration.
    """
    silence_s = (now - head.last_active_at).total_seconds()
    event = MessagesAppended(
        head=head,
        now=now,
        settle_s=settle_s,
        fresh=fresh,
        cold=not created and silence_s > find_ttl_s(head.settings, head.cursors),
        former_head_seq=head.head_seq,
        former_history_messages=head.history_messages,
        former_active_at=head.last_active_at,
        former_awaits_reply=head.awaits_reply,
        moved=moved,
    )
    if (head.turn_count or head.awaits_reply) and not moved:
        note_pause(head, silence_s, ends=any(message.role == "user" for message in fresh))
    for message in fresh:
        head.head_seq = message.seq
        head.message_count += 1
        head.token_count += message.tokens
        head.history_messages += _counts_as_sent(message)
        if message.role == "user":
            head.awaits_reply = True
        elif message.role == "assistant" and head.awaits_reply and message.kind is None:
            head.awaits_reply = False
            head.turn_count += 1
    head.last_active_at = max(now, head.last_active_at)
    return event


def count_changes(head: Head, pairs: Iterable[Pair]) -> None:
    """Count `pairs` into `head` (changed in place), except for turns, which depend on neighbouring messages.

    A message that only makes tool calls counts as not sent, as in `count_appended`. So nothing is subtracted that was
    not added, and the count never falls below 0. If `alters_history` of the event `MessagesChanged` is true, its
    follower then counts the sent messages again.
    """
    for before, after in pairs:
        head.message_count += before.deleted - after.deleted
        head.token_count += _counted_tokens(after) - _counted_tokens(before)
        if after.seq >= head.anchor_seq:
            head.history_messages += _counts_as_sent(after) - _counts_as_sent(before)


def _counts_as_sent(message: NewMessage | RangeMessage) -> bool:
    return is_sent(message) and not only_calls(message)


def _counted_tokens(message: RangeMessage) -> int:
    return 0 if message.deleted else message.tokens
