"""The reference model of a conversation with a memo book, in plain Python.

It is slow and simple on purpose: it has messages, batches and copies of lines, but no hashes, cursors or SQL. Every
property is computed from the current messages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from app.kit.tokens import count_tokens
from tests.oracle.reference.calls import Call, is_discarded, resolve
from tests.oracle.reference.names import Naming
from tests.oracle.reference.sessions import FIRST, Session, begins_session, is_empty, truncate_sessions
from tests.talk import Json

Source = list[tuple[int, str, str | None, str]]
"""The input of a memo: (seq, role, name, text) of each eligible message of its batch."""

NAMES = {"user": "Mira", "assistant": "Kai"}


@dataclass(frozen=True)
class Settings:
    """The settings of a chat.

    Attributes:
        every: 0 for a chat without memos.
        max_turns, idle_s: After how many turns, and after a pause of how many seconds, sessions end; 0 for never.
        reset_hour: The hour of the day (UTC) at which they end; None for never.

    """

    every: int
    window: int
    keep: int
    grow: int
    most: int
    include_system: bool
    max_turns: int = field(default=0, kw_only=True)
    idle_s: int = field(default=0, kw_only=True)
    reset_hour: int | None = field(default=None, kw_only=True)

    def to_json(self) -> Json:
        """Return the settings as a request sends them."""
        return {
            "memos": {"every_messages": self.every, "window": self.window, "include_system": self.include_system},
            "history": {"keep_messages": self.keep, "grow_messages": self.grow, "max_messages": self.most},
            "sessions": {
                "max_turns": self.max_turns or None,
                "idle_timeout_s": self.idle_s or None,
                "daily_reset_hour": self.reset_hour,
            },
        }

    def find_pause(self, silent_since: datetime, now: datetime) -> str | None:
        """Return why a silence ends a session, or None if it does not."""
        if self.idle_s and now - silent_since >= timedelta(seconds=self.idle_s):
            return "idle"
        if self.reset_hour is None:
            return None
        hours = timedelta(hours=self.reset_hour)
        return "daily" if (silent_since - hours).date() < (now - hours).date() else None


@dataclass
class Message:
    """A message.

    Attributes:
        texts: The text of each swipe; `selected` is the index of the current one.
        is_call: Whether the message calls a tool.
        result_of: The id of the message whose tool call this message answers.
        revisions: The replaced texts, each with the index of its swipe.
        hidden: Whether a person hid it.
        hidden_by_scenes: Whether auto-hide hid it, as read from the service.
        visibility_pinned: Whether a person has shown it again; auto-hide then leaves it alone.
        first_text: The text with which it was appended.

    """

    seq: int
    id: str
    role: str
    texts: list[str]
    kind: str | None = None
    is_call: bool = False
    result_of: str | None = None
    selected: int = 0
    revisions: list[tuple[int, str]] = field(default_factory=list)
    excluded: bool = False
    pinned: bool = False
    hidden: bool = False
    hidden_by_scenes: bool = False
    visibility_pinned: bool = False
    deleted: bool = False
    edited: bool = False
    first_text: str = ""

    def __post_init__(self) -> None:
        self.first_text = self.first_text or self.text

    @property
    def text(self) -> str:
        return self.texts[self.selected]

    @property
    def name(self) -> str | None:
        """The speaker's name, with which the message is hashed: a rename of the character does not change it."""
        return NAMES.get(self.role)

    @property
    def tokens(self) -> int:
        """The tokens of the text; 0 for tool calls without one."""
        return 0 if self.is_call and not self.text.strip() else count_tokens(self.text)

    @property
    def is_blank(self) -> bool:
        return not self.text.strip() and not self.is_call

    @property
    def sendable(self) -> bool:
        """Whether the message can be part of the history."""
        return self.sendable_if_shown and not self.hidden_by_scenes

    @property
    def sendable_if_shown(self) -> bool:
        """Whether the message could be part of the history if auto-hide did not hide it."""
        return not (self.deleted or self.hidden or self.is_blank or self.kind == "thought")

    @property
    def hidden_by(self) -> str | None:
        return "user" if self.hidden else "scenes" if self.hidden_by_scenes else None

    @property
    def counts_for_turns(self) -> bool:
        """Whether the message counts for the number of turns."""
        return not self.deleted and (self.role == "user" or (self.role == "assistant" and self.kind is None))

    def exclusion_reason(self, settings: Settings) -> str | None:
        """Return the inclusion report's status of a message that is not summarised, or None if it is summarised."""
        if self.excluded:
            return "excluded"
        if self.kind == "thought" or (self.role == "system" and not settings.include_system):
            return "none"
        if self.hidden:
            return "hidden"
        return "none" if self.deleted or self.role == "tool" or not self.text.strip() else None

    def hide(self, hidden: bool) -> None:
        """Hide or show the message, as a person does."""
        self.visibility_pinned = not hidden and (self.visibility_pinned or self.hidden_by_scenes or self.hidden)
        self.hidden, self.hidden_by_scenes = hidden, False

    def set_text(self, text: str) -> None:
        """Replace the text of the selected swipe."""
        if text != self.text:
            self.revisions.append((self.selected, self.text))
            self.texts[self.selected] = text
            self.edited = True


@dataclass
class Memo:
    """An entry of the memo book: the memo of a batch, or a memory that a person wrote, which has no batch.

    Attributes:
        id: As read from the service.
        made_from: The input of its text; None while the memo is pending.
        by_person: Whether a person wrote its text.
        edited: Whether a person's text replaced a generated one.
        requested: Whether a person has requested a new text.
        failed: Whether its work has failed for good, as read from the service.
        partial: Whether it can lack words: it was quoted because the model's answers were refused, or a spoilt answer
            was accepted.

    """

    number: int
    batch: tuple[int, int] | None = None
    after_seq: int = 0
    id: str = ""
    text: str = ""
    status: str = "pending"
    made_from: Source | None = None
    pinned: bool = False
    by_person: bool = False
    edited: bool = False
    deleted: bool = False
    requested: bool = False
    failed: bool = False
    partial: bool = False

    @property
    def sort_key(self) -> tuple[int, int]:
        """The position in story order: a memory follows the batch that begins at its `after_seq`."""
        return (2 * self.batch[0] if self.batch else 2 * self.after_seq + 1), self.number


@dataclass
class Line(Naming):
    """A line of a chat. `anchor` is the anchor of the last snapshot of the service."""

    id: str
    settings: Settings
    messages: list[Message] = field(default_factory=list)
    memos: list[Memo] = field(default_factory=list)
    last_number: int = 0
    anchor: int = 1
    calls: list[Call] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=lambda: [FIRST])
    active_at: datetime | None = None

    # --- messages, batches and memos ---

    @property
    def head(self) -> int:
        return len(self.messages)

    @property
    def not_deleted(self) -> list[Message]:
        return [message for message in self.messages if not message.deleted]

    @property
    def batches(self) -> list[Memo]:
        """The memos of batches in story order, including deleted memos, whose batches remain."""
        return sorted((memo for memo in self.memos if memo.batch), key=lambda memo: memo.sort_key)

    @property
    def book(self) -> list[Memo]:
        return sorted((memo for memo in self.memos if not memo.deleted), key=lambda memo: memo.sort_key)

    @property
    def open_seq(self) -> int:
        """The first seq of the batch that is not full yet."""
        return max((memo.batch[1] + 1 for memo in self.memos if memo.batch), default=1)

    def find(self, message_id: str) -> Message | None:
        return next((message for message in self.messages if message.id == message_id), None)

    def sendable_from(self, seq: int) -> list[Message]:
        return [message for message in self.messages if message.seq >= seq and message.sendable]

    def eligible(self, first: int, last: int) -> list[Message]:
        return [
            message for message in self.messages[first - 1 : last] if message.exclusion_reason(self.settings) is None
        ]

    def current_source(self, memo: Memo) -> Source:
        """Return the current messages of the memo's batch."""
        if memo.batch is None:
            return []
        return [(message.seq, message.role, message.name, message.text) for message in self.eligible(*memo.batch)]

    def is_stale(self, memo: Memo) -> bool:
        return memo.batch is not None and memo.status != "pending" and memo.made_from != self.current_source(memo)

    def needs_work(self, memo: Memo) -> bool:
        """Whether the memo needs a new text from the model."""
        if memo.batch is None or memo.deleted:
            return False
        return memo.requested or (not memo.by_person and (memo.status == "pending" or self.is_stale(memo)))

    def tokens(self) -> int:
        return sum(message.tokens for message in self.not_deleted)

    def turns(self) -> int:
        """Return how often the character answers directly after the user."""
        roles = [message.role for message in self.messages if message.counts_for_turns]
        return sum(pair == ("user", "assistant") for pair in pairwise(roles))

    def first_message_id(self, memo: Memo) -> str | None:
        """Return the id of the memo's first eligible message, else of its first message that is not deleted."""
        if memo.batch is None:
            return None
        present = [message for message in self.messages[memo.batch[0] - 1 : memo.batch[1]] if not message.deleted]
        return next((message.id for message in (*self.eligible(*memo.batch), *present)), None)

    # --- the context ---

    def memos_in_prompt(self, anchor: int) -> list[Memo]:
        """Return the memos in the prompt, in story order: the newest ones of the window, and all pinned ones."""
        usable = [
            memo
            for memo in self.book
            if memo.status == "ready"
            and (memo.batch is None or memo.batch[0] < anchor)
            and (memo.by_person or not self.is_stale(memo))
        ]
        unpinned = [memo for memo in usable if not memo.pinned]
        newest = unpinned[max(len(unpinned) - self.settings.window, 0) :]
        return [memo for memo in usable if memo.pinned or memo in newest]

    def pinned(self, anchor: int) -> list[Message]:
        """Return the pinned messages that are not in the history because of the anchor or auto-hide.

        They are sent without their tool calls, so a message that only calls a tool is not among them.
        """
        return [
            message
            for message in self.messages
            if message.pinned and message.sendable_if_shown and (message.hidden_by_scenes or message.seq < anchor)
            if message.text.strip()
        ]

    def gaps(self, anchor: int) -> set[int]:
        """Return the seqs before the anchor that need a memo and have no valid one, from the window's first memo on."""
        window = [memo for memo in self.memos_in_prompt(anchor) if not memo.pinned]
        begin = window[0].sort_key if len(window) >= self.settings.window else (0, 0)
        missing = set(range(self.open_seq, anchor)) if self.settings.every else set()
        for memo in self.batches:
            if (
                memo.batch
                and not memo.deleted
                and memo.sort_key[0] >= begin[0]
                and (memo.status == "pending" or (self.is_stale(memo) and not memo.by_person))
            ):
                missing |= set(range(memo.batch[0], min(memo.batch[1], anchor - 1) + 1))
        return missing

    def inclusion(self, message: Message, anchor: int) -> tuple[str, str | None]:
        """Return how a message is included in the context, and the id of the memo that represents it."""
        if any(one.seq == message.seq for one in self.sent_from(anchor)):
            return "verbatim", None
        if message in self.pinned(anchor):
            return "pinned", None
        reason = message.exclusion_reason(self.settings)
        memo = next((m for m in self.book if m.batch and m.batch[0] <= message.seq <= m.batch[1]), None)
        if reason is not None:
            return reason, None
        if memo is None:
            return ("pending" if message.seq >= self.open_seq else "none"), None
        by = f"memo:{memo.id}"
        if memo.status == "pending" or (self.is_stale(memo) and not memo.by_person):
            return ("failed" if memo.failed else "pending"), by
        if memo.status == "empty":
            return "none", by
        return ("memo" if memo in self.memos_in_prompt(anchor) else "expired"), by

    # --- the cut ---

    def tool_calls(self, from_seq: int) -> list[tuple[int, int]]:
        """Return (seq of the call, seq of its result) for each tool call in the history that begins at `from_seq`."""
        return _pair_calls(self.sendable_from(from_seq))

    def sent_from(self, seq: int) -> list[Message]:
        """Return the messages that a context sends."""
        return drop_unsent(self.sendable_from(seq))

    def can_cut(self, seq: int, from_seq: int) -> bool:
        """Whether a cut at `seq` leaves `keep` messages and separates no tool call from its result."""
        parts = any(call < seq <= result for call, result in self.tool_calls(from_seq))
        return not parts and len(self.sent_from(seq)) >= self.settings.keep

    def cut_target(self, from_seq: int) -> int | None:
        """Return the newest edge at or after `from_seq` where a cut is possible."""
        edges = [1, *(memo.batch[1] + 1 for memo in self.batches if memo.batch)]
        return max((edge for edge in edges if edge >= from_seq and self.can_cut(edge, from_seq)), default=None)

    def cut_waits(self, anchor: int, target: int) -> bool:
        """Whether a cut to `target` has to wait for a memo that is still due."""
        return any(
            memo.batch and memo.batch[1] >= anchor and memo.batch[0] < target
            for memo in self.memos
            if self.needs_work(memo) and not memo.failed
        )

    # --- changes ---

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Apply changes of messages in the block; failed work becomes due again if its input has changed.

        A requested text that failed is no longer requested then. A failure is also cleared if the memo's text is
        valid again without new work. Open tool calls are dropped with the message that they answer.
        """
        before = {memo.number: self.current_source(memo) for memo in self.batches}
        yield
        self.calls = [call for call in self.calls if not is_discarded(self, call)]
        for memo in self.batches:
            says = self.current_source(memo)
            if says == before[memo.number] or memo.deleted or memo.by_person:
                continue
            if says != memo.made_from:
                memo.requested = memo.requested and not memo.failed
                memo.failed = False
            elif not memo.requested:
                memo.failed = False

    def append(self, fresh: Sequence[Message], now: datetime, *, moved: int = 0) -> None:
        """Append messages; the first `moved` of them are not said now and begin no session."""
        former = self.head
        pause = self.settings.find_pause(self.active_at, now) if self.active_at else None
        for index, message in enumerate(fresh):
            message.seq = self.head + 1
            if index == moved and pause and not is_empty(self.sessions, self.messages):
                self.sessions.append((message.seq, pause))
            is_said = index >= moved
            if is_said and begins_session(self.sessions, self.messages, message.role, self.settings.max_turns):
                self.sessions.append((message.seq, "turns"))
            self.messages.append(message)
        if fresh:
            self.active_at = now
        self.calls = resolve(self.calls, self.messages[former:])
        if self.head > former:  # a batch that changed messages have filled is formed by the next append
            self.form_batches()

    def form_batches(self) -> None:
        """Form the batches that are full, each from the end of the batch before to the message that fills it."""
        if not self.settings.every:
            return
        first, count = self.open_seq, 0
        for message in self.messages[first - 1 :]:
            count += message.exclusion_reason(self.settings) is None
            if count == self.settings.every:
                self.last_number += 1
                self.memos.append(Memo(self.last_number, (first, message.seq)))
                first, count = message.seq + 1, 0

    def truncate(self, from_seq: int) -> None:
        """Soft-delete all messages from a seq on; texts that a person wrote or edited move to the new head."""
        if from_seq > self.head:
            return
        self.calls = [call for call in self.calls if call.seq(self) < from_seq]
        for message in self.messages[from_seq - 1 :]:
            message.deleted = True
        self.sessions = truncate_sessions(self.sessions, from_seq)
        self.reopen_batches(from_seq)

    def reopen_batches(self, from_seq: int) -> None:
        for memo in [memo for memo in self.memos if memo.batch and memo.batch[1] >= from_seq]:
            if memo.by_person and not memo.deleted:
                memo.batch, memo.after_seq, memo.requested, memo.failed = None, from_seq - 1, False, False
            else:
                self.memos.remove(memo)
        for memo in self.memos:
            if memo.batch is None:
                memo.after_seq = min(memo.after_seq, from_seq - 1)

    def write_memo(self, memo_id: str, text: str, after_seq: int) -> None:
        self.last_number += 1
        self.memos.append(Memo(self.last_number, None, after_seq, memo_id, text, "ready", by_person=True))

    def edit_memo(self, memo: Memo, text: str) -> None:
        memo.edited = memo.edited or (memo.status != "pending" and not memo.by_person)
        memo.text, memo.status, memo.requested, memo.failed = text, "ready", False, False
        memo.by_person = True
        memo.made_from = self.current_source(memo)

    def delete_memo(self, memo: Memo) -> None:
        memo.deleted, memo.requested, memo.failed = True, False, False

    def regenerate(self, memo: Memo) -> None:
        memo.requested, memo.failed = True, False
        if memo.deleted:
            memo.deleted = memo.edited = memo.by_person = False
            memo.status, memo.text, memo.made_from = "pending", "", None

    def copy(self, until_seq: int | None = None) -> "Line":
        """Return a copy for a checkpoint, a restored line or a fork, truncated after `until_seq` if that is given."""
        copied = deepcopy(self)
        if until_seq is not None:
            copied.calls = [call for call in copied.calls if call.seq(copied) <= until_seq]
            copied.messages = copied.messages[:until_seq]
            copied.sessions = truncate_sessions(copied.sessions, until_seq + 1)
            copied.memos = [memo for memo in copied.memos if memo.sort_key[0] // 2 <= until_seq]
            copied.anchor = min(copied.anchor, until_seq + 1)
            copied.reopen_batches(until_seq + 1)
        return copied


def _pair_calls(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return (seq of the call, seq of its result) for each tool call that has a result in `messages`.

    A call has at most one result: the first one that names it.
    """
    paired, waiting = [], dict[str | None, int]()
    for message in messages:
        if message.is_call:
            waiting[message.id] = message.seq
        elif message.result_of in waiting:
            paired.append((waiting.pop(message.result_of), message.seq))
    return paired


def drop_unsent(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` without those that only call a tool and have no result in `messages`."""
    answered = {call for call, _ in _pair_calls(messages)}
    return [message for message in messages if message.text.strip() or message.seq in answered]
