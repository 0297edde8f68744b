"""What the chat's row keeps of the open scene, so that most appends ask nothing. Pure.

That the row keeps anything says that there is something of the layer on the line; without it nobody looks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.chats.eligibility import Filters, Marked, is_eligible
from app.chats.events import Pair, content_changed


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


@dataclass(frozen=True, slots=True)
class SceneChange:
    """What a change of messages means for scenes.

    Attributes:
        seqs: The messages whose content changed, in order; never none.
        gone: Those of them that are deleted now.
        touches_open: Whether one of them is in the open scene, which has to be counted again.
        shrinks_open: Whether one of those is deleted, perhaps the last message of the open scene.

    """

    seqs: Sequence[int]
    gone: frozenset[int]
    touches_open: bool
    shrinks_open: bool


def decide_change(pairs: Iterable[Pair], opened: OpenScene) -> SceneChange | None:
    """Return what changed messages (`pairs`, in seq order) mean for scenes, or None if they mean nothing."""
    changed = [after for before, after in pairs if content_changed((before, after))]
    if not changed:
        return None
    first_seq = opened.first_seq or 1
    in_open = [message for message in changed if message.seq >= first_seq]
    return SceneChange(
        seqs=[message.seq for message in changed],
        gone=frozenset(message.seq for message in changed if message.deleted),
        touches_open=bool(in_open),
        shrinks_open=any(message.deleted for message in in_open),
    )
