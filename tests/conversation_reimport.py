"""What a re-import makes of a line, in plain Python: the list as it is wanted, entry by entry."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from tests.conversation_model import Line, Said


@dataclass
class Wanted:
    """An entry of a list that the chat is to be: a message that is known (as it is to say), or a new one."""

    said: Said
    text: str
    known: bool = True

    @property
    def added(self) -> bool:
        return not self.known or self.said.deleted


def divergence(wanted: Sequence[Wanted]) -> int | None:
    """The first entry that cannot keep its place: a known one follows that would have to come before it."""
    seqs = [entry.said.seq if entry.known else None for entry in wanted]
    for index, seq in enumerate(seqs):
        if any(later is not None and (seq is None or later < seq) for later in seqs[index + 1 :]):
            return index
    return None


def reimport(line: Line, wanted: Sequence[Wanted]) -> tuple[Line, dict[str, int]]:
    """The line as the list wants it, another one if something was inserted or has moved; and what has changed."""
    seqs = {entry.said.seq for entry in wanted if entry.known}
    gone = {said.seq for said in line.living} - seqs
    counts = {
        "added": sum(entry.added for entry in wanted),
        "changed": sum(not entry.added and entry.text != entry.said.text for entry in wanted),
        "removed": len(gone),
    }
    at = divergence(wanted)
    if at is None:
        became, kept = line, [entry for entry in wanted if entry.known]
        moved = [entry for entry in wanted if not entry.known]
    else:
        kept, moved = list(wanted[:at]), list(wanted[at:])
        became = line.copy(max((entry.said.seq for entry in kept), default=0))
    with became.changing():
        for said in became.messages:
            said.deleted = said.deleted or said.seq in gone
        for entry in kept:
            stays = became.messages[entry.said.seq - 1]
            stays.deleted = False
            stays.say(entry.text)
    if moved:
        became.append(_placed_anew(entry) for entry in moved)
    if at is not None:
        _bring_along(line, became, max((entry.said.seq for entry in kept), default=0), moved)
    return became, counts


def _bring_along(line: Line, became: Line, last: int, moved: Sequence[Wanted]) -> None:
    """What people wrote or edited behind `last` follows the message that it followed, wherever that stands now."""
    for memo in line.book:
        seq = memo.place[0] // 2
        if seq <= last or not memo.by_person:
            continue
        followed = max(
            (e.said for e in moved if e.known and e.said.seq <= seq), key=lambda said: said.seq, default=None
        )
        place = became.find(followed.id) if followed else None
        brought = replace(memo, batch=None, after_seq=place.seq if place else last, asked=False, failed=False)
        became.memos.append(brought)


def _placed_anew(entry: Wanted) -> Said:
    said = deepcopy(entry.said)
    said.deleted = False
    said.say(entry.text)
    return said
