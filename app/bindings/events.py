"""The event `BindingsChanged` and its parts. Pure.

A binding connects what a call of a tool wrote with the reply that the call belongs to. It is open until this reply is
stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.events import LineEvent


class Bound(NamedTuple):
    """A binding that was open, and whose reply has been stored.

    Attributes:
        layer: The memory layer that stored what the tool wrote.
        binding_id: The id of the binding, which is also the id of the row that the layer wrote.
        at_seq: The reply's seq.
        sent_at: When the reply was sent.
        matches: Whether the reply has the bound text now, and is neither deleted nor hidden by a person. It is
            False if the call waited for the next alternative text, and a re-import added one without selecting it.
        turn_seq: A seq in the turn of the reply, as `rule.find_turn_seq` returned it while the binding was open.

    """

    layer: str
    binding_id: UUID
    at_seq: int
    sent_at: datetime
    matches: bool
    turn_seq: int


class Toggled(NamedTuple):
    """A binding whose `matches` changed; `matches` is as in `Bound`.

    Its reply got another text, was deleted or was hidden by a person, or such a change was undone.
    """

    layer: str
    binding_id: UUID
    matches: bool


class Dropped(NamedTuple):
    """An open binding that was dropped, because the awaited reply was discarded or can no longer come.

    Attributes:
        layer: The memory layer that stored what the tool wrote.
        binding_id: The id of the binding.
        turn_seq: A seq in the turn of the reply that did not come (`rule.find_turn_seq`).

    """

    layer: str
    binding_id: UUID
    turn_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingsChanged(LineEvent):
    """Bindings changed.

    Attributes:
        bound: The bindings whose replies have arrived.
        toggled: The bindings whose `matches` changed.
        dropped: The open bindings that were dropped.

    """

    bound: Sequence[Bound] = ()
    toggled: Sequence[Toggled] = ()
    dropped: Sequence[Dropped] = ()

    @property
    def layers(self) -> set[str]:
        """The layers whose rows the event concerns."""
        return {layer for part in (self.bound, self.toggled, self.dropped) for layer, *_ in part}

    @property
    def in_context(self) -> bool:
        """Whether the change can alter contexts. A drop cannot: contexts never contain what an open call wrote."""
        return bool(self.bound or self.toggled)

    def of(self, layer: str) -> "BindingsChanged":
        """Return the part of the event that concerns one layer."""
        return replace(
            self,
            bound=[one for one in self.bound if one.layer == layer],
            toggled=[one for one in self.toggled if one.layer == layer],
            dropped=[one for one in self.dropped if one.layer == layer],
        )
