"""Finds the texts that were recalled in both of the two turns before this one, and are left out of this one. Pure.

People found it uncanny when a character came back to the same memory turn after turn.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from uuid import UUID

MAX_SEQS = 8
"""How many seqs `Remembered` contains at most: the highest ones.

Two are not enough: a turn can have several of these seqs, and if an older message is generated again, the two turns
before that message count.
"""

Remembered = Mapping[int, Collection[str]]
"""For each seq that was the newest of a context, the hashes (`hash_source`) of the sources that were recalled there."""


def find_tired(remembered: Remembered, newest_seq: int, *, user_seqs: Sequence[int], first_seq: int) -> frozenset[str]:
    """Return the hashes of the sources that were recalled in each of the two turns before that of `newest_seq`.

    Contexts with the same newest seq, or of the same turn, have the same result, because only earlier turns count. Of
    the earlier turns, only the seqs count that `add_turn` keeps.

    Args:
        remembered: What was recalled.
        newest_seq: The newest seq of the context.
        user_seqs: The seqs of the user's messages from `first_seq` to `newest_seq`, ascending; each begins a turn.
        first_seq: The first seq of `user_seqs`' range. The seqs from the one before it on are grouped into turns. Each
            remembered seq that is lower counts as a turn of its own.

    """
    turns = _group_by_turn(add_turn(remembered, newest_seq, ()), newest_seq, user_seqs, first_seq)
    return frozenset(turns.get(1, ())) & frozenset(turns.get(2, ()))


def add_turn(remembered: Remembered, newest_seq: int, sources: Collection[str]) -> dict[int, frozenset[str]]:
    """Return `remembered` with what a context recalled added, and with only the newest MAX_SEQS seqs."""
    merged = {seq: frozenset(known) for seq, known in remembered.items()}
    merged[newest_seq] = merged.get(newest_seq, frozenset()) | frozenset(sources)
    return {seq: merged[seq] for seq in sorted(merged)[-MAX_SEQS:]}


def hash_source(line: tuple[UUID, UUID], source: str) -> str:
    """Return the hash by which a source that was recalled on a line (chat key, line id) is remembered.

    The source itself is not remembered. It can contain an id of a message, which the client has chosen, so it can
    contain words of a conversation, and what is remembered outlives an erased chat by days.
    """
    return sha256(line[0].bytes + line[1].bytes + source.encode()).hexdigest()[:16]


def _group_by_turn(
    remembered: Remembered, newest_seq: int, user_seqs: Sequence[int], first_seq: int
) -> dict[int, set[str]]:
    """Return what was recalled in each turn. The keys count turns back from the turn of `newest_seq`, which is 0."""
    turns: dict[int, set[str]] = {}
    earlier = 0
    for seq in sorted((seq for seq in remembered if seq <= newest_seq), reverse=True):
        ago = len(user_seqs) - bisect_right(user_seqs, seq)
        if seq < first_seq - 1:
            earlier = max(earlier + 1, ago, 1)
            ago = earlier
        else:
            earlier = ago
        turns.setdefault(ago, set()).update(remembered[seq])
    return turns
