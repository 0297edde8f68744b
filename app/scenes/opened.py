"""What the chat's row keeps of the open scene, so that most appends ask nothing. Pure.

That the row keeps anything says that there is something of the layer on the line; without it nobody looks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.chats.eligibility import Filters, Marked, is_eligible


@dataclass(frozen=True, slots=True)
class OpenScene:
    """What follows the last break.

    Attributes:
        first_seq: Where it begins; None while nobody has looked.
        count: Its eligible messages, as many as it takes to look for a break at least; None after a change.

    """

    first_seq: int | None = None
    count: int | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> "OpenScene":
        """Read what `to_json` wrote, or nothing."""
        return cls(**stored) if stored else cls()

    def to_json(self) -> dict[str, Any]:
        """As the chat's row keeps it."""
        known = {"first_seq": self.first_seq, "count": self.count}
        return {name: value for name, value in known.items() if value is not None}

    def uncounted(self) -> "OpenScene":
        """The same scene, of which messages have changed."""
        return replace(self, count=None)

    def with_more(self, messages: Iterable[Marked], filters: Filters) -> "OpenScene":
        """The same scene with `messages` at its end; it must be counted."""
        return replace(self, count=(self.count or 0) + sum(is_eligible(message, filters) for message in messages))
