"""The reference model of a re-import: the effect of a wanted list of messages on a line."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from tests.oracle.call_reference import move_calls, resolve
from tests.oracle.reference import Line, Message


@dataclass
class Wanted:
    """An entry of the wanted list: a known message with its wanted text, or a new message."""

    message: Message
    text: str
    known: bool = True

    @property
    def added(self) -> bool:
        return not self.known or self.message.deleted


def is_found_by_text(entry: Wanted) -> bool:
    """Whether the service finds the message of an entry without an id, by its text, which no other message has."""
    message = entry.message
    return entry.known and not message.deleted and entry.text == message.text and bool(message.text.strip())


def is_found_by_neighbours(line: Line, wanted: Sequence[Wanted], index: int) -> bool:
    """Whether an edited message is between the same unchanged messages, or ends, in the list and on the line."""
    entry = wanted[index]
    if not entry.known or entry.message.deleted or entry.text == entry.message.text:
        return False
    at = line.not_deleted.index(entry.message)
    before, after = wanted[max(index - 1, 0) : index], wanted[index + 1 : index + 2]
    on_line = [*line.not_deleted[max(at - 1, 0) : at], *line.not_deleted[at + 1 : at + 2]]
    unchanged = all(one.known and one.text == one.message.text for one in (*before, *after))
    is_first, is_last = (index == 0, at == 0), (index == len(wanted) - 1, at == len(line.not_deleted) - 1)
    same = [one.message for one in (*before, *after)] == on_line
    return unchanged and same and is_first[0] == is_first[1] and is_last[0] == is_last[1]


def divergence(wanted: Sequence[Wanted]) -> int | None:
    """Return the index of the first entry that needs a new seq, because an older message follows it, or None."""
    seqs = [entry.message.seq if entry.known else None for entry in wanted]
    for index, seq in enumerate(seqs):
        if any(later is not None and (seq is None or later < seq) for later in seqs[index + 1 :]):
            return index
    return None


def reimport(line: Line, wanted: Sequence[Wanted]) -> tuple[Line, dict[str, int]]:
    """Return the line after the import and the counts of changes.

    The line is a new one if a message was inserted before a known one or has moved.
    """
    seqs = {entry.message.seq for entry in wanted if entry.known}
    gone = {message.seq for message in line.not_deleted} - seqs
    counts = {
        "added": sum(entry.added for entry in wanted),
        "changed": sum(not entry.added and entry.text != entry.message.text for entry in wanted),
        "removed": len(gone),
    }
    at = divergence(wanted)
    if at is None:
        result, kept = line, [entry for entry in wanted if entry.known]
        moved = [entry for entry in wanted if not entry.known]
    else:
        kept, moved = list(wanted[:at]), list(wanted[at:])
        result = line.copy(max((entry.message.seq for entry in kept), default=0))
    with result.changing():
        for message in result.messages:
            message.deleted = message.deleted or message.seq in gone
        for entry in kept:
            kept_message = result.messages[entry.message.seq - 1]
            kept_message.deleted = False
            kept_message.set_text(entry.text)
    if moved:
        known = {entry.message.id for entry in moved if entry.known}
        waiting, result.calls = result.calls, []
        fresh = [_copy_of(entry) for entry in moved]
        result.append(fresh)
        result.calls = waiting if at is None else move_calls(line, result, result.head - len(fresh), known)
        result.calls = resolve(result.calls, [message for message in fresh if message.id not in known])
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
    message.deleted = False
    message.set_text(entry.text)
    return message
