"""How each message is in the context, or why it is not. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, Protocol

from app.chats.cover import Cover
from app.chats.eligibility import Filters, Marked, is_sent, why_ineligible

Status = Literal[
    "verbatim",
    "pinned",
    "memo",
    "summary",
    "recap",
    "expired",
    "out_of_budget",
    "excluded",
    "hidden",
    "pending",
    "failed",
    "none",
]

_OF_STATE: dict[str, Status] = {"pending": "pending", "failed": "failed", "empty": "none"}


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
        window: Ids of the memos that the chat's row holds for the prompt.
        within_budget: Those of them that their layer's budget takes.
        pinned: Seqs of the messages that stand in the segment `pinned`.
        pinned_over_budget: Seqs of those that would, but for the budget of pinned messages.

    """

    anchor_seq: int
    window: AbstractSet[str]
    within_budget: AbstractSet[str]
    pinned: AbstractSet[int] = frozenset()
    pinned_over_budget: AbstractSet[int] = frozenset()


def find_status(
    message: PlacedMessage, cover: Cover | None, shown: Shown, filters: Filters
) -> tuple[Status, str | None]:
    """The status of `message`, and what stands for it as `memo:<id>`.

    Args:
        message: One that was not deleted.
        cover: What covers it, if anything.
        shown: What the context shows.
        filters: What decides on its eligibility where nothing that covers it says so.

    """
    if message.seq >= shown.anchor_seq and is_sent(message):
        return "verbatim", None
    if message.seq in shown.pinned:
        return "pinned", None
    status, by = _find_cover(message, cover, shown, filters)
    if status in ("expired", "none") and message.seq in shown.pinned_over_budget:
        return "out_of_budget", None  # its own budget, not that of a memo
    return status, by


def _find_cover(
    message: PlacedMessage, cover: Cover | None, shown: Shown, filters: Filters
) -> tuple[Status, str | None]:
    """The status of a message that is not shown itself."""
    reason = why_ineligible(message, cover.filters if cover and cover.filters else filters)
    if reason is not None:
        return (reason if reason in ("excluded", "hidden") else "none"), None
    if cover is None:
        return "none", None
    by = f"{cover.kind}:{cover.id}" if cover.id else None
    if cover.state != "made":
        return _OF_STATE[cover.state], by
    if str(cover.id) in shown.within_budget:
        return cover.kind, by
    if str(cover.id) in shown.window:
        return "out_of_budget", by
    # A memo of messages that are still in the history is held until the next cut.
    return ("pending" if cover.first_seq >= shown.anchor_seq else "expired"), by
