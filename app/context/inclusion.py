"""How each message is in the context, or why it is not. Pure."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters, Marked, is_sent, why_ineligible

_COVERED = "covered"
"""The rank of what a layer covers; its status is the kind of what covers it."""

STATUSES = (
    "verbatim",
    "pinned",
    _COVERED,
    "out_of_budget",
    "pending",
    "failed",
    "expired",
    "excluded",
    "hidden",
    "none",
)
"""The statuses; of several that apply to a message, the first counts."""

_RANKS = {status: rank for rank, status in enumerate(STATUSES)}
_OF_STATE = {"pending": "pending", "failed": "failed", "empty": "none"}


class PlacedMessage(Marked, Protocol):
    """A message on its line."""

    @property
    def seq(self) -> int:
        """Its place."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What the context shows of the layers.

    Attributes:
        anchor_seq: The first seq that is sent verbatim.
        standing: What stands in it, as `memo:<id>`, `summary:3`, `recap:4`.
        over_budget: What would, but for its layer's budget, likewise.
        pinned: Seqs of the messages that stand in the segment `pinned`.
        pinned_over_budget: Seqs of those that would, but for the budget of pinned messages.

    """

    anchor_seq: int
    standing: AbstractSet[str]
    over_budget: AbstractSet[str] = frozenset()
    pinned: AbstractSet[int] = frozenset()
    pinned_over_budget: AbstractSet[int] = frozenset()


def find_status(
    message: PlacedMessage, covers: Sequence[Coverage], shown: Shown, filters: Filters
) -> tuple[str, str | None]:
    """The status of `message`, and what stands for it as `memo:<id>`, `summary:3` or `recap:4`.

    Args:
        message: One that was not deleted.
        covers: What covers it, of all layers; of those that say the same the first is named.
        shown: What the context shows.
        filters: What decides on its eligibility where nothing that covers it says so.

    """
    if message.seq >= shown.anchor_seq and is_sent(message):
        return "verbatim", None
    if message.seq in shown.pinned:
        return "pinned", None
    told = [_judge(message, cover, shown, filters) for cover in covers or (None,)]
    status, by = min(told, key=lambda one: _RANKS.get(one[0], _RANKS[_COVERED]))
    if status in ("expired", "none") and message.seq in shown.pinned_over_budget:
        return "out_of_budget", None  # its own budget, not that of a memo
    if status == "none" and message.hidden_by == "scenes" and message.kind != "thought":
        return "hidden", None  # nothing stands for it, so it is the hiding that keeps it out
    return status, by


def _judge(message: PlacedMessage, cover: Coverage | None, shown: Shown, filters: Filters) -> tuple[str, str | None]:
    """What one that covers it says of a message that is not shown itself; None is that nothing does."""
    reason = why_ineligible(message, cover.filters if cover and cover.filters else filters)
    if reason is not None:
        return (reason if reason in ("excluded", "hidden") else "none"), None
    if cover is None:
        return "none", None
    by = f"{cover.kind}:{cover.id}" if cover.id else None
    if cover.state != "made":
        return _OF_STATE[cover.state], by
    if by in shown.standing:
        return cover.kind, by
    if by in shown.over_budget:
        return "out_of_budget", by
    if not cover.expires:  # a version that is not shown covers nothing
        return "none", None
    # A memo of messages that are still in the history is held until the next cut.
    return ("pending" if cover.first_seq >= shown.anchor_seq else "expired"), by
