"""The turns after which the service writes into the diaries. Pure.

A period is so many turns in a row. It is formed once, by the reply that completes it; what is still open is kept with
the line, so that an append reads no messages for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol

from app.chats.characters import Characters, find_sole, list_active, list_names


class Spoken(Protocol):
    """What of a message takes turns; rows and new messages both have it."""

    @property
    def seq(self) -> int: ...  # noqa: D102 - fields
    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str | None: ...  # noqa: D102
    @property
    def deleted(self) -> bool: ...  # noqa: D102


class Period(NamedTuple):
    """The messages of some turns, both inclusive."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class OpenPeriod:
    """The period that fills: where it begins, how many turns it has, whether the user spoke last."""

    first_seq: int
    turns: int = 0
    awaits_reply: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is kept with the line."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "OpenPeriod":
        """Read what `to_json` wrote."""
        return cls(**stored)


def form_periods(filling: OpenPeriod, messages: Iterable[Spoken], every_turns: int) -> tuple[list[Period], OpenPeriod]:
    """The periods that `messages`, which follow in seq order, complete; and the one that fills then."""
    formed = []
    for message in messages:
        former, filling = filling, _take_up(filling, message)
        if former.turns < filling.turns >= every_turns:
            formed.append(Period(filling.first_seq, message.seq))
            filling = OpenPeriod(message.seq + 1)
    return formed, filling


def count_turns(first_seq: int, messages: Iterable[Spoken]) -> OpenPeriod:
    """The period that begins at `first_seq` and holds `messages`, however many turns these are."""
    filling = OpenPeriod(first_seq)
    for message in messages:
        filling = _take_up(filling, message)
    return filling


def choose_writers(characters: Characters, speakers: Iterable[str | None]) -> list[str]:
    """Return the active characters that spoke, in the chat's order.

    A chat that names no characters has one diary, without a name. A message without a name is the sole character's.
    """
    spoke = set(speakers)
    if not characters:
        return [""] if spoke else []
    if None in spoke and (sole := find_sole(characters)):
        return [sole]
    return [name for name in list_names(list_active(characters)) if name in spoke]


def _take_up(filling: OpenPeriod, message: Spoken) -> OpenPeriod:
    if message.deleted:
        return filling
    if message.role == "user":
        return replace(filling, awaits_reply=True)
    if message.role == "assistant" and message.kind is None and filling.awaits_reply:
        return replace(filling, turns=filling.turns + 1, awaits_reply=False)
    return filling
