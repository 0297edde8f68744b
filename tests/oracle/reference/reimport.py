"""The reference model of a re-import: the effect of a wanted list of messages on a line."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime

from tests.oracle.reference.calls import bind_text, move_calls, resolve
from tests.oracle.reference.lines import Line, Message
from tests.oracle.reference.sessions import move_sessions


@dataclass
class Wanted:
    """An entry of the wanted list: a known message with its wanted text, or a new message.

    `swipes` are the texts that are sent for it: those that it has, and new ones. `text` is one of them.
    """

    message: Message
    text: str
    known: bool = True
    swipes: list[str] = field(default_factory=list)

    @property
    def added(self) -> bool:
        return not self.known or self.message.deleted

    @property
    def differs(self) -> bool:
        return self.text != self.message.text or len(self.swipes) > len(self.message.texts)

    @property
    def new_text(self) -> str | None:
        """The text that the message has not had: the wanted one, or else the first new swipe; None if there is none."""
        added = self.swipes[len(self.message.texts) :]
        if not self.known or self.message.deleted or self.text in added:
            return self.text if self.text in added else None
        is_edited = self.text != self.message.text and not self.swipes
        return self.text if is_edited else next(iter(added), None)

    def apply(self, message: Message) -> None:
        """Give a message the wanted text: one of its swipes, or an edit of the selected one."""
        message.deleted = False
        if self.swipes:
            message.texts, message.selected = list(self.swipes), self.swipes.index(self.text)
        else:
            message.set_text(self.text)


def is_found_by_text(entry: Wanted) -> bool:
    """Whether the service finds the message of an entry without an id, by its text, which no other message has."""
    message = entry.message
    return entry.known and not message.deleted and entry.text == message.text and bool(message.text.strip())


def is_found_by_neighbours(line: Line, wanted: Sequence[Wanted], index: int) -> bool:
    """Whether an edited message is between the same unchanged messages, or ends, in the list and on the line.

    A deleted message that the list restores counts as one of the line.
    """
    entry = wanted[index]
    if not entry.known or entry.message.deleted or entry.text == entry.message.text:
        return False
    listed = {one.message.id for one in wanted}
    here = [message for message in line.messages if not message.deleted or message.id in listed]
    at = here.index(entry.message)
    before, after = wanted[max(index - 1, 0) : index], wanted[index + 1 : index + 2]
    on_line = [*here[max(at - 1, 0) : at], *here[at + 1 : at + 2]]
    unchanged = all(one.known and one.text == one.message.text for one in (*before, *after))
    is_first, is_last = (index == 0, at == 0), (index == len(wanted) - 1, at == len(here) - 1)
    same = [one.message for one in (*before, *after)] == on_line
    return unchanged and same and is_first[0] == is_first[1] and is_last[0] == is_last[1]


def is_revived_by_text(line: Line, wanted: Sequence[Wanted], index: int) -> bool:
    """Whether the service revives the deleted message of an entry without an id, because it equals a new one.

    Here only if the entry, and all deleted ones next to it, follow the last message of the line in both.
    """
    end = next((at for at in range(len(wanted), 0, -1) if not wanted[at - 1].added), 0)
    behind = [entry for entry in wanted[end:] if entry.known]
    last = line.not_deleted[-1] if line.not_deleted else None
    follows = wanted[end - 1].message is last and not wanted[end - 1].differs if end else last is None
    seqs = [entry.message.seq for entry in behind]
    earlier = [entry.message.seq for entry in wanted[:end] if entry.known]
    is_in_order = seqs == sorted(seqs) and min(seqs, default=0) > max([*earlier, last.seq if last else 0], default=0)
    all_known = [entry.known for entry in wanted[end:]] == [at < len(behind) for at in range(len(wanted) - end)]
    same = all(entry.text == entry.message.text and entry.text.strip() for entry in behind)
    return index >= end and wanted[index].known and follows and is_in_order and all_known and same


def divergence(wanted: Sequence[Wanted]) -> int | None:
    """Return the index of the first entry that needs a new seq, because an older message follows it, or None."""
    seqs = [entry.message.seq if entry.known else None for entry in wanted]
    for index, seq in enumerate(seqs):
        if any(later is not None and (seq is None or later < seq) for later in seqs[index + 1 :]):
            return index
    return None


def reimport(line: Line, wanted: Sequence[Wanted], now: datetime) -> tuple[Line, dict[str, int]]:
    """Return the line after the import and the counts of changes.

    The line is a new one if a message was inserted before a known one or has moved.
    """
    seqs = {entry.message.seq for entry in wanted if entry.known}
    gone = {message.seq for message in line.not_deleted} - seqs
    counts = {
        "added": sum(entry.added for entry in wanted),
        "changed": sum(not entry.added and entry.differs for entry in wanted),
        "removed": len(gone),
    }
    at = divergence(wanted)
    if at is None:
        result, kept = line, [entry for entry in wanted if entry.known]
        moved = [entry for entry in wanted if not entry.known]
    else:
        kept, moved = list(wanted[:at]), list(wanted[at:])
        result = line.copy(max((entry.message.seq for entry in kept), default=0))
    texts = [(entry.message.id, entry.new_text) for entry in wanted if entry.new_text]
    restored = {entry.message.id for entry in wanted if entry.known and entry.message.deleted}
    with result.changing():
        for message in result.messages:
            message.deleted = message.deleted or message.seq in gone
        for entry in kept:
            entry.apply(result.messages[entry.message.seq - 1])
    waiting, result.calls = result.calls, []
    known = {entry.message.id for entry in moved if entry.known}
    fresh = [_copy_of(entry) for entry in moved]
    kept_seq = result.head
    if at is not None:
        moves = [(entry.message.seq, kept_seq + number) for number, entry in enumerate(moved, start=1) if entry.known]
        result.sessions = move_sessions(line.sessions, kept_seq, moves, kept_seq + len(fresh))
    result.append(
        fresh, now, moved=max((number for number, entry in enumerate(moved, start=1) if not entry.added), default=0)
    )
    result.calls = waiting if at is None else move_calls(line, result, kept_seq, known)
    result.calls = resolve(result.calls, [one for one in result.messages[:kept_seq] if one.id in restored])
    for message_id, text in texts:
        if found := result.find(message_id):
            bind_text(result, found, text)
    result.calls = resolve(result.calls, [message for message in fresh if message.id not in known - restored])
    if at is not None:
        _carry_over_edits(line, result, max((entry.message.seq for entry in kept), default=0), moved)
    return result, counts


def _carry_over_edits(line: Line, result: Line, last: int, moved: Sequence[Wanted]) -> None:
    """Move texts that a person wrote or edited after `last` to the new position of the message that they followed."""
    for memo in line.book:
        seq = memo.sort_key[0] // 2
        if seq <= last or not memo.by_person:
            continue
        followed = max(
            (e.message for e in moved if e.known and e.message.seq <= seq),
            key=lambda message: message.seq,
            default=None,
        )
        found = result.find(followed.id) if followed else None
        after_seq = found.seq if found else last
        result.memos.append(replace(memo, batch=None, after_seq=after_seq, requested=False, failed=False))


def _copy_of(entry: Wanted) -> Message:
    message = deepcopy(entry.message)
    entry.apply(message)
    return message
