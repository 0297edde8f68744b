"""What has to be in a chat: the messages that were acknowledged, on each line and in each checkpoint. Pure.

A request whose outcome is unknown (no answer, or a 503) leaves two possible states: it was applied, or it was not. The
next reading decides which of them is the case. A reading that fits neither is a violation.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

WORD = re.compile(r"\b[wp]\d+[wp]\b")
"""The word in each text that no other text has: `w…w` in messages, `p…p` in what a person or a tool wrote."""

ELIGIBLE = ("user", "assistant", "narrator")


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message that is not deleted.

    Attributes:
        id: Its id.
        role: Its role.
        text: The selected text.
        seq: Its seq; None if no answer has named it yet.
        swipes: All alternative texts; only `text` if there are no others.
        thought: Whether it is a thought.
        hidden: Whether the user hid it.
        excluded: Whether it is excluded from summaries.

    """

    id: str
    role: str
    text: str
    seq: int | None = None
    swipes: tuple[str, ...] = ()
    thought: bool = False
    hidden: bool = False
    excluded: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """All alternative texts."""
        return self.swipes or (self.text,)

    @property
    def is_eligible(self) -> bool:
        """Whether it is summarised."""
        return self.role in ELIGIBLE and not (self.thought or self.hidden or self.excluded)

    def fits(self, item: Mapping[str, Any]) -> bool:
        """Whether `item`, a message as the API lists it, is this message."""
        wanted = (self.id, self.role, self.text, list(self.texts), self.hidden, self.excluded)
        hidden = item["hidden_by"] == "user"
        found = (item["id"], item["role"], item["content"], item["swipes"], hidden, item["excluded"])
        return wanted == found and self.seq in (None, item["seq"])


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its messages in order, and the words that persons and tools may have written on it."""

    messages: tuple[Said, ...] = ()
    notes: frozenset[str] = frozenset()

    @property
    def words(self) -> set[str]:
        """The words that a context of this line can contain."""
        return {word for said in self.messages for word in WORD.findall(said.text)} | self.notes

    def append(self, messages: Iterable[Said]) -> "Line":
        """Return the line with new messages at its end."""
        return replace(self, messages=(*self.messages, *messages))

    def change(self, message_id: str, **fields: Any) -> "Line":
        """Return the line with fields of one message changed. A new `text` replaces the selected swipe."""

        def changed(said: Said) -> Said:
            if said.id != message_id:
                return said
            if "text" in fields and "swipes" not in fields and said.swipes:
                others = tuple(fields["text"] if text == said.text else text for text in said.swipes)
                return replace(said, **fields, swipes=others)
            return replace(said, **fields)

        return replace(self, messages=tuple(map(changed, self.messages)))

    def hide(self, first_seq: int, last_seq: int, *, hidden: bool) -> "Line":
        """Return the line with a range hidden or shown, both seqs inclusive."""
        inside = [said.id for said in self.messages if first_seq <= (said.seq or 0) <= last_seq]
        line = self
        for message_id in inside:
            line = line.change(message_id, hidden=hidden)
        return line

    def delete(self, message_id: str) -> "Line":
        """Return the line without one message."""
        return replace(self, messages=tuple(said for said in self.messages if said.id != message_id))

    def cut_off(self, from_seq: int) -> "Line":
        """Return the line without the messages from `from_seq` on."""
        return replace(self, messages=tuple(said for said in self.messages if (said.seq or 0) < from_seq))

    def note(self, text: str) -> "Line":
        """Return the line on which a person or a tool has written a text."""
        return replace(self, notes=self.notes | set(WORD.findall(text)))

    def learn(self, listed: Sequence[Mapping[str, Any]]) -> "Line":
        """Return the line with the seqs that a fitting listing shows."""
        seqs = {item["id"]: item["seq"] for item in listed}
        return replace(self, messages=tuple(replace(said, seq=seqs[said.id]) for said in self.messages))

    def fits(self, listed: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a listing of all messages shows exactly this line."""
        seqs = [item["seq"] for item in listed]
        return (
            len(listed) == len(self.messages)
            and seqs == sorted(set(seqs))
            and all(said.fits(item) for said, item in zip(self.messages, listed, strict=True))
        )


@dataclass(slots=True)
class Ledger:
    """One chat.

    Attributes:
        now: The current line.
        instead: What the current line is if the request with an unknown outcome was applied.
        lines: Former lines by id.
        checkpoints: Frozen lines by the checkpoint's name.
        unhidden: Whether messages were un-hidden or un-excluded since the last append: batches form only in an append.

    """

    now: Line = field(default_factory=Line)
    instead: Line | None = None
    lines: dict[str, Line] = field(default_factory=dict)
    checkpoints: dict[str, Line] = field(default_factory=dict)
    unhidden: bool = False

    def doubt(self, after: Line) -> None:
        """Note that the line is as it was, or `after`. Raises Violation if another request is in doubt already."""
        if self.instead is not None:
            raise Violation("two requests in doubt at once: the client is wrong")
        self.instead = after

    def settle(self, listed: Sequence[Mapping[str, Any]], *, moved: bool | None = None) -> bool:
        """Decide by a listing which state is the case; return whether the request in doubt was applied.

        Args:
            listed: All messages of the chat.
            moved: Whether the chat is on another line than before a request in doubt that changes the line; None for
                other requests. Two lines can have the same messages, and still not the same notes.

        Raises Violation if the listing fits no state that is possible.
        """
        applied = self.instead is not None and self.instead.fits(listed) and moved is not False
        line = self.instead if applied and self.instead is not None else self.now
        if not line.fits(listed):
            raise Violation(f"lost, doubled, reordered or wrong: {describe(line, listed)}")
        self.now, self.instead = line.learn(listed), None
        return applied


def describe(line: Line, listed: Sequence[Mapping[str, Any]]) -> str:
    """Return the first difference between a line and a listing."""
    for said, item in zip(line.messages, listed, strict=False):
        if not said.fits(item):
            return f"expected {said}, found {dict(item)}"
    if len(line.messages) != len(listed):
        present = {said.id for said in line.messages} ^ {item["id"] for item in listed}
        return f"expected {len(line.messages)} messages, found {len(listed)}; they differ in {sorted(present)[:5]}"
    return f"seqs {[item['seq'] for item in listed]}"


def check_context(line: Line, context: Mapping[str, Any], max_tokens: int) -> None:
    """Check a context in the format `segments`. Raises Violation.

    It is within its budget, its history is verbatim, in order and on the line, and no text of another line, of a
    former revision or of a deleted message is in it.
    """
    if context["tokens"] > max_tokens:
        raise Violation(f"the context has {context['tokens']} tokens, more than {max_tokens}")
    text = "\n".join(segment["text"] for segment in context["segments"])
    if strange := set(WORD.findall(text)) - line.words:
        raise Violation(f"the context contains {sorted(strange)[:5]}, which the current line does not have")
    shown = {said.id: said for said in line.messages if not said.hidden and not said.thought}
    order = [said.id for said in line.messages]
    history = [segment for segment in context["segments"] if segment["name"] in ("history", "newest")]
    ids = [source.removeprefix("message:") for segment in history for source in segment["sources"]]
    if missing := [message_id for message_id in ids if message_id not in shown]:
        raise Violation(f"the history contains {missing[:5]}, which are not shown on the current line")
    if ids != sorted(set(ids), key=order.index):
        raise Violation(f"the history is not in order: {ids}")
    spoken = "\n".join(segment["text"] for segment in history)
    if lost := [message_id for message_id in ids if not set(WORD.findall(shown[message_id].text)) <= words_of(spoken)]:
        raise Violation(f"the history lists {lost[:5]} as sources, but does not contain them")


def words_of(text: str) -> set[str]:
    """Return the words of a text that can be followed."""
    return set(WORD.findall(text))


def check_book(ledger: Ledger, memos: Sequence[Mapping[str, Any]], *, every: int, calm: bool) -> None:
    """Check that the batches of a line follow each other without gaps and overlaps. Raises Violation.

    Args:
        ledger: The chat.
        memos: Its memos.
        every: The number of eligible messages of a batch.
        calm: Whether all background work is done: then each batch has one memo that is made and not stale.

    """
    line = ledger.now
    batches = sorted((memo for memo in memos if memo["first_seq"] is not None), key=lambda memo: memo["first_seq"])
    for former, batch in itertools.pairwise(batches):
        if batch["first_seq"] <= former["last_seq"]:
            raise Violation(f"two memos cover seq {batch['first_seq']}")
        between = [said for said in line.messages if former["last_seq"] < (said.seq or 0) < batch["first_seq"]]
        if any(said.is_eligible for said in between):
            raise Violation(f"no memo covers {[said.seq for said in between]}")
    covered = batches[-1]["last_seq"] if batches else 0
    waiting = [said for said in line.messages if said.is_eligible and (said.seq or 0) > covered]
    if len(waiting) >= every and not ledger.unhidden:
        raise Violation(f"{len(waiting)} eligible messages after seq {covered} have no batch")
    if calm and (unmade := [memo for memo in batches if not _is_made(memo)]):
        raise Violation(f"no memo was made: {unmade[0]}")


def _is_made(memo: Mapping[str, Any]) -> bool:
    return memo["status"] in ("ready", "empty") and (not memo["stale"] or memo["edited"])
