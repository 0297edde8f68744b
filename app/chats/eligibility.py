"""Decides which messages are summarised and which are sent. Pure.

A message that is summarised is called eligible; eligible messages fill the batches of memos. If several reasons make a
message not eligible, the first one in a fixed order counts, so that a report can show one reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
    """The fields of a message that eligibility depends on; rows and new messages both have them."""

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
    """A message with its seq and the digest of its content."""

    @property
    def seq(self) -> int: ...  # noqa: D102
    @property
    def digest(self) -> bytes: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Filters:
    """The settings that decide on eligibility; a batch keeps the filters with which it was opened."""

    include_user: bool = True
    include_system: bool = False
    include_narrator: bool = True
    min_tokens: int = 0
    disabled: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the filters as they are stored with a batch."""
        return {name: getattr(self, name) for name in self.__slots__}

    def renamed(self, former: str, name: str) -> "Filters":
        """Return the filters after a character has got a new name."""
        return replace(self, disabled=tuple(name if one == former else one for one in self.disabled))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Filters":
        """Return the filters from what `to_json` returned."""
        return cls(**{**stored, "disabled": tuple(stored.get("disabled", ()))})


def why_ineligible(message: Marked, filters: Filters) -> Ineligible | None:
    """Return why `message` is not summarised, or None if it is. The first match wins.

    A message that only calls a tool is not summarised, even if it is sent: its `tokens`, which count no calls, are 0.
    """
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
        (message.blank or message.tokens == 0, "blank"),
        (message.tokens < filters.min_tokens, "short"),
    )
    return next((reason for matched, reason in checks if matched), None)


def is_eligible(message: Marked, filters: Filters) -> bool:
    """Return whether `message` fills a batch and is summarised."""
    return why_ineligible(message, filters) is None


def hash_eligible(messages: Iterable[Hashed], filters: Filters) -> bytes:
    """Return the hash of the eligible ones of `messages` (in seq order), from which a memo, fold or recap is made."""
    return range_hash((message.seq, message.digest) for message in messages if is_eligible(message, filters))


def is_sent(message: Marked) -> bool:
    """Return whether `message` goes into the history: not deleted, hidden, a thought or blank.

    A message that only makes tool calls (`only_calls`) also needs a result of one of them.
    """
    return not (message.deleted or message.hidden_by or message.kind == "thought" or message.blank)


def only_calls(message: Marked) -> bool:
    """Return whether `message` makes tool calls and has no text: its `tokens`, which count no calls, are 0."""
    return message.tokens == 0 and not message.blank
