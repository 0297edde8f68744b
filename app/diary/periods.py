"""The turns after which the service writes into the diaries. Pure.

A period is so many turns in a row. It is formed once, by the reply that completes it; what is still open is kept with
the line, so that an append reads no messages for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol


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


def choose_writers(characters: Sequence[Mapping[str, Any]], speakers: Iterable[str | None]) -> list[str]:
    """The characters that spoke and are not disabled, in the chat's order.

    Where nobody is named, whoever speaks for the model has the one diary of nobody in particular. What is said without
    a name is said by the only character that is not disabled.
    """
    spoke = set(speakers)
    if not characters:
        return [""] if spoke else []
    names = [one["name"] for one in characters if not one.get("disabled")]
    if len(names) == 1 and None in spoke:
        return names
    return [name for name in names if name in spoke]


def _take_up(filling: OpenPeriod, message: Spoken) -> OpenPeriod:
    if message.deleted:
        return filling
    if message.role == "user":
        return replace(filling, awaits_reply=True)
    if message.role == "assistant" and message.kind is None and filling.awaits_reply:
        return replace(filling, turns=filling.turns + 1, awaits_reply=False)
    return filling
