"""Which messages are summarised, and which are sent. Pure.

Eligible messages fill batches. Why one is not is the first match of a fixed list, so that a report can say it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from app.chats.hashes import range_hash

Role = Literal["user", "assistant", "system", "tool", "narrator"]
Ineligible = Literal[
    "excluded",
    "user",
    "thought",
    "system",
    "hidden",
    "narrator",
    "disabled",
    "short",
    "deleted",
    "tool",
    "blank",
]


class Marked(Protocol):
    """What is asked of a message; rows and new messages both have it."""

    @property
    def role(self) -> str: ...  # noqa: D102 - fields
    @property
    def name(self) -> str | None: ...  # noqa: D102
    @property
    def kind(self) -> str | None: ...  # noqa: D102
    @property
    def tokens(self) -> int: ...  # noqa: D102
    @property
    def blank(self) -> bool: ...  # noqa: D102
    @property
    def excluded(self) -> bool: ...  # noqa: D102
    @property
    def hidden_by(self) -> str | None: ...  # noqa: D102
    @property
    def deleted(self) -> bool: ...  # noqa: D102


class Hashed(Marked, Protocol):
    """A message in its place, with what it says as a digest."""

    @property
    def seq(self) -> int: ...  # noqa: D102
    @property
    def digest(self) -> bytes: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Filters:
    """The settings that decide on eligibility; a batch keeps those it was opened with."""

    include_user: bool = True
    include_system: bool = False
    include_narrator: bool = True
    min_tokens: int = 0
    disabled: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a batch."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Filters":
        """Read what `to_json` wrote."""
        return cls(**{**stored, "disabled": tuple(stored.get("disabled", ()))})


def why_ineligible(message: Marked, filters: Filters) -> Ineligible | None:
    """Why `message` is not summarised, or None if it is. The first match wins."""
    role = message.role
    checks: tuple[tuple[bool, Ineligible], ...] = (
        (message.deleted, "deleted"),
        (message.excluded, "excluded"),
        (role == "user" and not filters.include_user, "user"),
        (message.kind == "thought", "thought"),
        (role == "system" and not filters.include_system, "system"),
        (message.hidden_by == "user", "hidden"),
        (role == "narrator" and not filters.include_narrator, "narrator"),
        (role == "assistant" and message.name in filters.disabled, "disabled"),
        (role == "tool", "tool"),
        (message.blank, "blank"),
        (message.tokens < filters.min_tokens, "short"),
    )
    return next((reason for matched, reason in checks if matched), None)


def is_eligible(message: Marked, filters: Filters) -> bool:
    """Whether `message` fills a batch and is summarised."""
    return why_ineligible(message, filters) is None


def hash_eligible(messages: Iterable[Hashed], filters: Filters) -> bytes:
    """What the eligible ones of `messages` (in seq order) say: what a batch, a step or a scene is made from."""
    return range_hash((message.seq, message.digest) for message in messages if is_eligible(message, filters))


def is_sent(message: Marked) -> bool:
    """Whether `message` goes into the history: no tombstone, nothing hidden, no thought, not only white space."""
    return not (message.deleted or message.hidden_by or message.kind == "thought" or message.blank)
