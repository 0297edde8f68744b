"""The open scene as the line's row stores it, so that most appends need no query. Pure.

If the row stores nothing, the line has no data of scenes, and most handlers return at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.chats.eligibility import Filters, Marked, is_eligible, is_sent
from app.chats.events import Pair, content_changed
from app.chats.head import RangeMessage


@dataclass(frozen=True, slots=True)
class OpenScene:
    """The scene after the last break.

    Attributes:
        first_seq: Where it begins; None if it has not been read yet.
        count: How many eligible messages it has; None after a change. Counting may stop when there are enough for a
            search for a break.
        unjudged: How many of these are after `judged_seq`; None after a change. Counting may stop as for `count`.
        judged_seq: The last seq on which a search has decided whether a scene ends. It may be in an earlier scene.
        after_pause: Whether the conversation has paused since the last search.
        hide_in: How many more messages auto-hide needs before it can hide the next scene; 0 if no scene waits for them.
        waits_since: When a forced cut began to wait for searches, as ISO 8601; None if no cut waits.

    """

    first_seq: int | None = None
    count: int | None = None
    unjudged: int | None = None
    judged_seq: int = 0
    after_pause: bool = False
    hide_in: int = 0
    waits_since: str | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> "OpenScene":
        """Return the scene that `to_json` stored; if nothing is stored, an open scene with the default values."""
        return cls(**stored) if stored else cls()

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known, for the line's row."""
        known = {"first_seq": self.first_seq, "count": self.count, "unjudged": self.unjudged}
        unusual = {
            "judged_seq": self.judged_seq,
            "after_pause": self.after_pause,
            "hide_in": self.hide_in,
            "waits_since": self.waits_since,
        }
        return {name: value for name, value in known.items() if value is not None} | {
            name: value for name, value in unusual.items() if value
        }

    @property
    def unjudged_from(self) -> int:
        """The first seq of the open scene on which no search has decided."""
        return max(self.first_seq or 1, self.judged_seq + 1)

    def uncounted(self) -> "OpenScene":
        """Return the scene without its counts, for when its messages have changed."""
        return replace(self, count=None, unjudged=None)

    def begun_at(self, first_seq: int) -> "OpenScene":
        """Return an open scene that begins at `first_seq`; what is judged stays judged."""
        return replace(self.uncounted(), first_seq=first_seq)

    def judged_through(self, judged_seq: int) -> "OpenScene":
        """Return the scene after a search that decided on all messages up to `judged_seq`."""
        return replace(self.uncounted(), judged_seq=judged_seq, after_pause=False)

    def rejudged(self, judged_seq: int) -> "OpenScene":
        """Return the scene with the messages after `judged_seq` unjudged, because messages have changed."""
        return replace(self.uncounted(), judged_seq=min(self.judged_seq, max(judged_seq, 0)))

    def with_more(self, messages: Iterable[Marked], filters: Filters) -> "OpenScene":
        """Return the scene with the eligible ones of `messages` added to its counts, which must not be None."""
        more = sum(is_eligible(message, filters) for message in messages)
        return replace(self, count=(self.count or 0) + more, unjudged=(self.unjudged or 0) + more)


@dataclass(frozen=True, slots=True)
class SceneChange:
    """The effect of changed messages on scenes.

    Attributes:
        seqs: The messages whose content changed, in order; never empty.
        gone: Those of them that are deleted now.
        touches_open: Whether one of them is in the open scene, so that it has to be counted again.
        shrinks_open: Whether a deleted one is in the open scene, so that it may have no messages left.
        alters_sight: Whether a message can be sent now that could not be sent before, or the reverse, so that auto-hide
            may have to keep other messages visible.

    """

    seqs: Sequence[int]
    gone: frozenset[int]
    touches_open: bool
    shrinks_open: bool
    alters_sight: bool


def decide_change(pairs: Sequence[Pair], opened: OpenScene) -> SceneChange | None:
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
        alters_sight=any(_can_be_sent(before) != _can_be_sent(after) for before, after in pairs),
    )


def _can_be_sent(message: RangeMessage) -> bool:
    """Return whether a message is sent unless scenes hide it."""
    return is_sent(message._replace(hidden_by=None) if message.hidden_by == "scenes" else message)
