"""The sessions of a line, in plain Python: where each one begins, and why."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

Session = tuple[int, str]
"""(first seq, reason)."""

FIRST: Session = (1, "first")


class Spoken(Protocol):
    """What sessions depend on in a message."""

    seq: int
    role: str
    deleted: bool

    @property
    def counts_for_turns(self) -> bool: ...


def begins_session(sessions: Sequence[Session], messages: Sequence[Spoken], role: str, max_turns: int) -> bool:
    """Whether a message that follows `messages` begins a session; without `max_turns`, it never does."""
    spoken = [message for message in messages if message.counts_for_turns]
    turns = sum(
        (former.role, reply.role) == ("user", "assistant") and reply.seq >= sessions[-1][0]
        for former, reply in pairwise(spoken)
    )
    return bool(max_turns) and role == "user" and turns >= max_turns


def is_empty(sessions: Sequence[Session], messages: Sequence[Spoken]) -> bool:
    """Whether the open session has no messages."""
    return not any(message.seq >= sessions[-1][0] for message in messages if not message.deleted)


def truncate_sessions(sessions: Iterable[Session], from_seq: int) -> list[Session]:
    """Return the sessions that are left when the end of the line from `from_seq` on is cut off."""
    return [one for one in sessions if one == FIRST or one[0] < from_seq]


def move_sessions(
    former: Sequence[Session], kept_seq: int, seqs: Sequence[tuple[int, int]], head: int
) -> list[Session]:
    """Return the sessions of a new line that keeps the messages up to `kept_seq`.

    `seqs` are (seq on the former line, seq here) of the other messages that both lines have.
    """
    sessions = truncate_sessions(former, kept_seq + 1)
    moved = []
    for first_seq, reason in former[len(sessions) :]:
        before = [pair for pair in sorted(seqs) if pair[0] < first_seq]
        moved.append(((before[-1][1] if before else kept_seq) + 1, reason))
    for index, one in enumerate(moved):
        following = moved[index + 1][0] if index + 1 < len(moved) else head + 2
        if sessions[-1][0] < one[0] < following:
            sessions.append(one)
    return sessions
