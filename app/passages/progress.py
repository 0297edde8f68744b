"""How far the messages of a line are in the index. Pure.

A line's cursor contains the seq up to which all messages are in the index, and the seqs of messages before it that have
changed since. A search reads the changed messages, and those after that seq, one by one, so there must be few of them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.chats.head import Head

NAME = "passages"
VECTORS = "vectors"
"""The names of the two cursors: of the index of words, and of the vectors."""

EVERY_MESSAGES = 64
"""Whenever this many messages are not in the index, they are put into it."""

MAX_CHANGED = 64
"""If more messages than this have changed, the index is made again from the first changed message on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the messages of a line are in the index.

    Attributes:
        seq: All messages up to this seq are in the index, with the exception of `changed`.
        changed: The seqs of messages up to `seq` that have changed since they were put into the index, in order.
        has_leftovers: Whether the index may have rows of texts that no message has any more.
        model_id: The model of the vectors; None for words.
        analysis: How the messages up to `seq` were divided into words for the index (`keys.name_analysis`). It is None
            for vectors. It is also None in an index of a former release, and after another line has written rows of
            another analysis.
        remade: While the index is being made again with `analysis`, the seq up to which that is done; otherwise None.

    """

    seq: int = 0
    changed: tuple[int, ...] = ()
    has_leftovers: bool = False
    model_id: int | None = None
    analysis: str | None = None
    remade: int | None = None

    @classmethod
    def of(cls, head: Head, name: str = NAME) -> "Progress":
        """Return the progress on a line. A fork begins at 0, because its cursor is a copy of the other chat's."""
        stored = head.cursors.get(name)
        if not stored or stored["chat"] != str(head.chat_key):
            return cls()
        return cls(
            stored["seq"],
            tuple(stored.get("changed", ())),
            stored.get("leftovers", False),
            stored.get("model"),
            stored.get("analysis"),
            stored.get("remade"),
        )

    def to_json(self, chat_key: UUID) -> dict[str, Any]:
        """Return the cursor. SQL reads it, too (`lookup.py`)."""
        stored: dict[str, Any] = {"chat": str(chat_key), "seq": self.seq}
        if self.changed:
            stored["changed"] = list(self.changed)
        if self.has_leftovers:
            stored["leftovers"] = True
        if self.model_id is not None:
            stored["model"] = self.model_id
        if self.analysis is not None:
            stored["analysis"] = self.analysis
        if self.remade is not None:
            stored["remade"] = self.remade
        return stored

    def remade_from(self, analysis: str) -> int | None:
        """Return the seq after which the index has to be remade with an analysis; None if the whole index has it."""
        if not self.seq:
            return None
        return self.remade if self.analysis == analysis else 0

    def made_again(self, last_seq: int, analysis: str) -> "Progress":
        """Return the progress once the index is made again up to `last_seq`."""
        return replace(self, analysis=analysis, remade=last_seq if last_seq < self.seq else None)

    def is_due(self, head_seq: int, former_head_seq: int) -> bool:
        """Return whether, with an append, the messages outside the index reach another multiple of EVERY_MESSAGES."""
        return (head_seq - self.seq) // EVERY_MESSAGES > max(former_head_seq - self.seq, 0) // EVERY_MESSAGES

    def with_changed(self, seqs: Iterable[int]) -> "Progress":
        """Return the progress after messages have changed."""
        changed = sorted({*self.changed, *(seq for seq in seqs if seq <= self.seq)})
        if len(changed) > MAX_CHANGED:
            return replace(self, seq=changed[0] - 1, changed=(), has_leftovers=True)
        return replace(self, changed=tuple(changed))

    def shortened(self, head_seq: int) -> "Progress":
        """Return the progress on a line that has no messages after `head_seq`."""
        kept = tuple(seq for seq in self.changed if seq <= head_seq)
        return replace(self, seq=min(self.seq, head_seq), changed=kept)

    def indexed(self, last_seq: int, changed: Collection[int], analysis: str | None = None) -> "Progress":
        """Return the progress once the messages up to `last_seq`, and those of `changed`, are in the index."""
        left = tuple(seq for seq in self.changed if seq not in changed)
        return Progress(max(self.seq, last_seq), left, model_id=self.model_id, analysis=analysis)
