"""Periods: the turns after which a layer looks back at the conversation. Pure.

A turn is a message of the user and the first reply to it. A period is a fixed number of consecutive turns. It ends with
the reply that completes its last turn, and its range does not change afterwards. A layer can also limit the length of a
period. The open period is stored with the line, so that an append reads no earlier messages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol


class Spoken(Protocol):
    """The fields of a message that turns are counted by; rows and new messages both have them."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - fields
    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str | None: ...  # noqa: D102
    @property
    def deleted(self) -> bool: ...  # noqa: D102


class Period(NamedTuple):
    """The range of the messages of a period, both inclusive."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class OpenPeriod:
    """The period that is still open: its first seq, its number of turns, and whether the user still awaits a reply."""

    first_seq: int
    turns: int = 0
    awaits_reply: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the period as it is stored with the line."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "OpenPeriod":
        """Return the period that `to_json` serialised."""
        return cls(**stored)


def form_periods(
    filling: OpenPeriod, messages: Iterable[Spoken], every_turns: int, *, most_seqs: int | None = None
) -> tuple[list[Period], OpenPeriod]:
    """Return the periods that `messages` complete, and the period that is open after them.

    `messages` are those that follow the messages of `filling`, the open period, in seq order. A period of `most_seqs`
    seqs ends even if it has fewer than `every_turns` turns, for example because only characters speak.
    """
    formed = []
    for message in messages:
        former, filling = filling, _take_up(filling, message)
        is_long = most_seqs is not None and message.seq - filling.first_seq + 1 >= most_seqs
        if is_long or former.turns < filling.turns >= every_turns:
            formed.append(Period(filling.first_seq, message.seq))
            filling = OpenPeriod(message.seq + 1, awaits_reply=filling.awaits_reply)
    return formed, filling


def count_turns(first_seq: int, messages: Iterable[Spoken], *, awaits_reply: bool = False) -> OpenPeriod:
    """Return the period that begins at `first_seq` and contains `messages`, regardless of their number of turns.

    `awaits_reply` is whether the user spoke last before the period, so that its first reply completes a turn.
    """
    filling = OpenPeriod(first_seq, awaits_reply=awaits_reply)
    for message in messages:
        filling = _take_up(filling, message)
    return filling


def can_alter_turns(before: Spoken, after: Spoken) -> bool:
    """Return whether a message's change can alter turns: it was deleted or restored, or its role or kind changed."""
    return (before.deleted, before.role, before.kind) != (after.deleted, after.role, after.kind)


def can_end_turn(message: Spoken) -> bool:
    """Return whether a message is a reply that is not deleted: it ends a turn if the user awaits a reply."""
    return message.role == "assistant" and message.kind is None and not message.deleted


def _take_up(filling: OpenPeriod, message: Spoken) -> OpenPeriod:
    if message.deleted:
        return filling
    if message.role == "user":
        return replace(filling, awaits_reply=True)
    if can_end_turn(message) and filling.awaits_reply:
        return replace(filling, turns=filling.turns + 1, awaits_reply=False)
    return filling
