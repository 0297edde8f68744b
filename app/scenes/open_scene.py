"""The open scene as the line's row stores it, so that most appends need no query. Pure.

If the row stores nothing, the line has no data of scenes, and most handlers return at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.chats.eligibility import Filters, Marked, is_eligible
from app.chats.events import Pair, content_changed


@dataclass(frozen=True, slots=True)
class OpenScene:
    """The scene after the last break.

    Attributes:
        first_seq: Where it begins; None if it has not been read yet.
        count: How many eligible messages it has; None after a change. Counting may stop when there are enough for a
            search for a break.

    """

    first_seq: int | None = None
    count: int | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> "OpenScene":
        """Return what `to_json` stored; without anything stored, an open scene that has not been read."""
        return cls(**stored) if stored else cls()

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known, for the line's row."""
        known = {"first_seq": self.first_seq, "count": self.count}
        return {name: value for name, value in known.items() if value is not None}

    def uncounted(self) -> "OpenScene":
        """Return the scene without its count, for when its messages have changed."""
        return replace(self, count=None)

    def with_more(self, messages: Iterable[Marked], filters: Filters) -> "OpenScene":
        """Return the scene with the eligible ones of `messages` added to its count, which must not be None."""
        return replace(self, count=(self.count or 0) + sum(is_eligible(message, filters) for message in messages))


@dataclass(frozen=True, slots=True)
class SceneChange:
    """The effect of changed messages on scenes.

    Attributes:
        seqs: The messages whose content changed, in order; never empty.
        gone: Those of them that are deleted now.
        touches_open: Whether one of them is in the open scene, so that it has to be counted again.
        shrinks_open: Whether a deleted one is in the open scene, so that it may have no
            messages left.

    """

    seqs: Sequence[int]
    gone: frozenset[int]
    touches_open: bool
    shrinks_open: bool


def decide_change(pairs: Iterable[Pair], opened: OpenScene) -> SceneChange | None:
    """Return the effect of changed messages (`pairs`, in seq order) on scenes, or None if there is none."""
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
