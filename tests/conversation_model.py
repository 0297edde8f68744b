"""A changing conversation as it should be, in plain Python: what the state machine holds the service against.

Slow and obvious on purpose. It knows messages, batches and copies; it has never heard of hashes, cursors or SQL.
Everything it is asked is counted anew from the messages as they stand.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise

from app.kit.tokens import count_tokens

Source = list[tuple[int, str, str | None, str]]
"""What a memo is made from: (seq, role, name, text) of each eligible message of its batch."""

NAMES = {"user": "Mira", "assistant": "Kai"}


@dataclass(frozen=True)
class Rules:
    """The settings of a chat; without memos `every` is 0."""

    every: int
    window: int
    keep: int
    grow: int
    most: int
    include_system: bool


@dataclass
class Said:
    """A message. Its texts are its swipes; a revision is (the swipe, what it said before).

    `hidden` says that a person hides it. That scenes hide it (`out_of_sight`) is learnt from the service; what a person
    has shown again after that they leave alone (`kept_shown`).
    """

    seq: int
    id: str
    role: str
    texts: list[str]
    kind: str | None = None
    calls: bool = False
    answers: str | None = None
    selected: int = 0
    revisions: list[tuple[int, str]] = field(default_factory=list)
    excluded: bool = False
    pinned: bool = False
    hidden: bool = False
    out_of_sight: bool = False
    kept_shown: bool = False
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
        return NAMES.get(self.role)

    @property
    def blank(self) -> bool:
        return not self.text.strip() and not self.calls

    @property
    def sent(self) -> bool:
        """Whether it can stand in the history."""
        return self.could_be_sent and not self.out_of_sight

    @property
    def could_be_sent(self) -> bool:
        """Whether it could, if scenes did not hide it."""
        return not (self.deleted or self.hidden or self.blank or self.kind == "thought")

    @property
    def hidden_by(self) -> str | None:
        return "user" if self.hidden else "scenes" if self.out_of_sight else None

    @property
    def speaks(self) -> bool:
        """Whether it takes part in turns."""
        return not self.deleted and (self.role == "user" or (self.role == "assistant" and self.kind is None))

    def why_ineligible(self, rules: Rules) -> str | None:
        """What the inclusion report says of a message that is not summarised; None of one that is."""
        if self.excluded:
            return "excluded"
        if self.kind == "thought" or (self.role == "system" and not rules.include_system):
            return "none"
        if self.hidden:
            return "hidden"
        return "none" if self.deleted or self.role == "tool" or self.blank else None

    def hide(self, hidden: bool) -> None:
        """Have a person hide it, or show it."""
        self.kept_shown = not hidden and (self.kept_shown or self.out_of_sight or self.hidden)
        self.hidden, self.out_of_sight = hidden, False

    def say(self, text: str) -> None:
        """Edit the selected text."""
        if text != self.text:
            self.revisions.append((self.selected, self.text))
            self.texts[self.selected] = text
            self.edited = True


@dataclass
class Memo:
    """An entry of the book: a batch's memo, or a memory that a person wrote, which has no batch.

    Attributes:
        id: Learnt from the service.
        made_from: What it was made from; None while it is pending.
        by_person: Whether its text is a person's.
        edited: Whether that replaced a text that the service had made.
        asked: Whether a person has asked for it to be made again.
        failed: Whether its work has failed for good; learnt from the service.

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
    asked: bool = False
    failed: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the story: a memory behind the batch that begins with its message."""
        return (2 * self.batch[0] if self.batch else 2 * self.after_seq + 1), self.number


@dataclass
class Line:
    """One course of a chat. `anchor` is where the service had it when it was last looked at."""

    id: str
    rules: Rules
    messages: list[Said] = field(default_factory=list)
    memos: list[Memo] = field(default_factory=list)
    last_number: int = 0
    anchor: int = 1

    # --- what is asked of it ---

    @property
    def head(self) -> int:
        return len(self.messages)

    @property
    def living(self) -> list[Said]:
        return [said for said in self.messages if not said.deleted]

    @property
    def batches(self) -> list[Memo]:
        """The memos of batches in their order, deleted ones too: their batches stand."""
        return sorted((memo for memo in self.memos if memo.batch), key=lambda memo: memo.place)

    @property
    def book(self) -> list[Memo]:
        return sorted((memo for memo in self.memos if not memo.deleted), key=lambda memo: memo.place)

    @property
    def open_seq(self) -> int:
        """Where the batch begins that fills."""
        return max((memo.batch[1] + 1 for memo in self.memos if memo.batch), default=1)

    def find(self, message_id: str) -> Said | None:
        return next((said for said in self.messages if said.id == message_id), None)

    def sent_from(self, seq: int) -> list[Said]:
        return [said for said in self.messages if said.seq >= seq and said.sent]

    def eligible(self, first: int, last: int) -> list[Said]:
        return [said for said in self.messages[first - 1 : last] if said.why_ineligible(self.rules) is None]

    def source(self, memo: Memo) -> Source:
        """What the memo's batch says now."""
        if memo.batch is None:
            return []
        return [(said.seq, said.role, said.name, said.text) for said in self.eligible(*memo.batch)]

    def stale(self, memo: Memo) -> bool:
        return memo.batch is not None and memo.status != "pending" and memo.made_from != self.source(memo)

    def needs_work(self, memo: Memo) -> bool:
        """Whether a model has to be asked for it."""
        if memo.batch is None or memo.deleted:
            return False
        return memo.asked or (not memo.by_person and (memo.status == "pending" or self.stale(memo)))

    def tokens(self) -> int:
        return sum(count_tokens(said.text) for said in self.living)

    def turns(self) -> int:
        """How often the character speaks right after the user."""
        roles = [said.role for said in self.messages if said.speaks]
        return sum(pair == ("user", "assistant") for pair in pairwise(roles))

    def first_shown(self, memo: Memo) -> str | None:
        """The id of the message that a memo leads back to: one that it tells of, else one that is there, else none."""
        if memo.batch is None:
            return None
        there = [said for said in self.messages[memo.batch[0] - 1 : memo.batch[1]] if not said.deleted]
        return next((said.id for said in (*self.eligible(*memo.batch), *there)), None)

    # --- the context ---

    def shown(self, anchor: int) -> list[Memo]:
        """The memos in the prompt, in story order: the last of the window, and all that are pinned."""
        usable = [
            memo
            for memo in self.book
            if memo.status == "ready"
            and (memo.batch is None or memo.batch[0] < anchor)
            and (memo.by_person or not self.stale(memo))
        ]
        unpinned = [memo for memo in usable if not memo.pinned]
        newest = unpinned[max(len(unpinned) - self.rules.window, 0) :]
        return [memo for memo in usable if memo.pinned or memo in newest]

    def pinned(self, anchor: int) -> list[Said]:
        """The pinned messages that are out of the history, also those that scenes have taken out of it."""
        return [
            said
            for said in self.messages
            if said.pinned and said.could_be_sent and (said.out_of_sight or said.seq < anchor)
        ]

    def gaps(self, anchor: int) -> set[int]:
        """The seqs before the anchor that a memo should tell of and none does, from the window's first memo on."""
        window = [memo for memo in self.shown(anchor) if not memo.pinned]
        begin = window[0].place if len(window) >= self.rules.window else (0, 0)
        missing = set(range(self.open_seq, anchor)) if self.rules.every else set()
        for memo in self.batches:
            if (
                memo.batch
                and not memo.deleted
                and memo.place[0] >= begin[0]
                and (memo.status == "pending" or (self.stale(memo) and not memo.by_person))
            ):
                missing |= set(range(memo.batch[0], min(memo.batch[1], anchor - 1) + 1))
        return missing

    def inclusion(self, said: Said, anchor: int) -> tuple[str, str | None]:
        """How a message is in the context, and what stands for it."""
        if said.seq >= anchor and said.sent:
            return "verbatim", None
        if said in self.pinned(anchor):
            return "pinned", None
        reason = said.why_ineligible(self.rules)
        memo = next((m for m in self.book if m.batch and m.batch[0] <= said.seq <= m.batch[1]), None)
        if reason is not None:
            return reason, None
        if memo is None:
            return ("pending" if said.seq >= self.open_seq else "none"), None
        by = f"memo:{memo.id}"
        if memo.status == "pending" or (self.stale(memo) and not memo.by_person):
            return ("failed" if memo.failed else "pending"), by
        if memo.status == "empty":
            return "none", by
        return ("memo" if memo in self.shown(anchor) else "expired"), by

    # --- the cut ---

    def calls(self, from_seq: int) -> list[tuple[int, int]]:
        """The seqs of each tool call that can be sent and its result, from a seq on."""
        sent = self.sent_from(from_seq)
        seqs = {said.id: said.seq for said in sent if said.calls}
        called = [(seqs.get(said.answers or "", said.seq), said.seq) for said in sent]
        return [(call, result) for call, result in called if call < result]

    def keeps(self, seq: int, from_seq: int) -> bool:
        """Whether a cut at `seq` leaves enough, and parts no call of what is sent from `from_seq` on."""
        parts = any(call < seq <= result for call, result in self.calls(from_seq))
        return not parts and len(self.sent_from(seq)) >= self.rules.keep

    def target(self, from_seq: int) -> int | None:
        """The newest edge that leaves at least `keep` messages, as seen from `from_seq` on."""
        edges = [1, *(memo.batch[1] + 1 for memo in self.batches if memo.batch)]
        return max((edge for edge in edges if edge >= from_seq and self.keeps(edge, from_seq)), default=None)

    def waits(self, anchor: int, target: int) -> bool:
        """Whether a memo that a cut to `target` would need is still to be made."""
        return any(
            memo.batch and memo.batch[1] >= anchor and memo.batch[0] < target
            for memo in self.memos
            if self.needs_work(memo) and not memo.failed
        )

    # --- what happens to it ---

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Messages are changed in the block: what was given up is tried again, unless it is true again by itself."""
        before = {memo.number: self.source(memo) for memo in self.batches}
        yield
        for memo in self.batches:
            says = self.source(memo)
            if says == before[memo.number] or memo.deleted or memo.by_person:
                continue
            if says != memo.made_from:
                memo.asked = memo.asked and not memo.failed
                memo.failed = False
            elif not memo.asked:
                memo.failed = False

    def append(self, fresh: Iterable[Said]) -> None:
        for said in fresh:
            said.seq = self.head + 1
            self.messages.append(said)
        self.form()

    def form(self) -> None:
        """Form the batches that are full: from the seq after the former one to the message that fills it."""
        if not self.rules.every:
            return
        first, count = self.open_seq, 0
        for said in self.messages[first - 1 :]:
            count += said.why_ineligible(self.rules) is None
            if count == self.rules.every:
                self.last_number += 1
                self.memos.append(Memo(self.last_number, (first, said.seq)))
                first, count = said.seq + 1, 0

    def cut_off(self, from_seq: int) -> None:
        """Bury everything from a seq on; what a person wrote or edited moves to the new head."""
        if from_seq > self.head:
            return
        for said in self.messages[from_seq - 1 :]:
            said.deleted = True
        self.reopen(from_seq)

    def reopen(self, from_seq: int) -> None:
        for memo in [memo for memo in self.memos if memo.batch and memo.batch[1] >= from_seq]:
            if memo.by_person and not memo.deleted:
                memo.batch, memo.after_seq, memo.asked, memo.failed = None, from_seq - 1, False, False
            else:
                self.memos.remove(memo)
        for memo in self.memos:
            if memo.batch is None:
                memo.after_seq = min(memo.after_seq, from_seq - 1)

    def write(self, memo_id: str, text: str, after_seq: int) -> None:
        self.last_number += 1
        self.memos.append(Memo(self.last_number, None, after_seq, memo_id, text, "ready", by_person=True))

    def edit_memo(self, memo: Memo, text: str) -> None:
        memo.edited = memo.edited or (memo.status != "pending" and not memo.by_person)
        memo.text, memo.status, memo.asked, memo.failed = text, "ready", False, False
        memo.by_person = True
        memo.made_from = self.source(memo)

    def delete_memo(self, memo: Memo) -> None:
        memo.deleted, memo.asked, memo.failed = True, False, False

    def regenerate(self, memo: Memo) -> None:
        memo.asked, memo.failed = True, False
        if memo.deleted:
            memo.deleted = memo.edited = memo.by_person = False
            memo.status, memo.text, memo.made_from = "pending", "", None

    def copy(self, until_seq: int | None = None) -> "Line":
        """What a checkpoint, a restored line or a fork holds; cut off after `until_seq`, if that is given."""
        copied = deepcopy(self)
        if until_seq is not None:
            copied.messages = copied.messages[:until_seq]
            copied.memos = [memo for memo in copied.memos if memo.place[0] // 2 <= until_seq]
            copied.anchor = min(copied.anchor, until_seq + 1)
            copied.reopen(until_seq + 1)
        return copied
