"""Decides the status of a message in the inclusion report: how the context includes it, or why it does not. Pure.

The context includes a message word for word, or through a memory that covers it (that was made from it).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters, Marked, is_sent, why_ineligible

_COVERED = "covered"
"""The placeholder in `STATUSES` for all kinds of coverages, such as `memo`.

If a memory in the context covers a message, the kind of the memory is the status of the message.
"""

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
"""The statuses in order of precedence: if several coverages give a message different statuses, the first counts.

`find_status` decides on `verbatim` and `pinned` before it looks at coverages. Afterwards it makes two replacements: if
the budget of pinned messages leaves the message out, `expired` and `none` become `out_of_budget`; if scenes hide the
message, `none` becomes `hidden`.
"""

_RANKS = {status: rank for rank, status in enumerate(STATUSES)}
_OF_STATE = {"pending": "pending", "failed": "failed", "empty": "none"}


class PlacedMessage(Marked, Protocol):
    """A message on its line."""

    @property
    def seq(self) -> int:
        """Its seq on the line."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What the context contains besides the history, and what it leaves out.

    Attributes:
        anchor_seq: The first seq that is sent verbatim.
        in_prompt: The sources that it contains, as `memo:<id>`, `summary:3`, `recap:4`.
        over_budget: The sources that their layer's budget leaves out.
        pinned: Seqs of the messages in the segment `pinned`.
        pinned_over_budget: Seqs of the messages that the budget of pinned messages leaves out.
        unanswered: Seqs of the messages of the history that only make tool calls without results, and are not sent.

    """

    anchor_seq: int
    in_prompt: AbstractSet[str]
    over_budget: AbstractSet[str] = frozenset()
    pinned: AbstractSet[int] = frozenset()
    pinned_over_budget: AbstractSet[int] = frozenset()
    unanswered: AbstractSet[int] = frozenset()


def find_status(
    message: PlacedMessage, covers: Sequence[Coverage], shown: Shown, filters: Filters
) -> tuple[str, str | None]:
    """Return the status of `message` and the source that covers it: `memo:<id>`, `summary:3`, `recap:4` or None.

    If the status is `none`, or is `hidden` because scenes hide the message, the source is a fact or memory that was
    learnt from the message: `fact:<id>`, `memory:<id>`. If the status is `none` and nothing was learnt, the source is
    the memo that found nothing memorable in the message, if there is one.

    Args:
        message: A message that is not deleted.
        covers: The coverages of the message by all layers. If several give it the same status, the first of them gives
            the source.
        shown: What the context contains.
        filters: The eligibility filters for coverage that has none of its own, and for a message without coverage.

    """
    if message.seq >= shown.anchor_seq and is_sent(message) and message.seq not in shown.unanswered:
        return "verbatim", None
    if message.seq in shown.pinned:
        return "pinned", None
    learnt = next((_source_of(cover) for cover in covers if cover.state == "learnt"), None)
    covering = [cover for cover in covers if cover.state != "learnt"]
    judged = [_judge(message, cover, shown, filters) for cover in covering or (None,)]
    status, by = min(judged, key=lambda one: _RANKS.get(one[0], _RANKS[_COVERED]))
    if status in ("expired", "none") and message.seq in shown.pinned_over_budget:
        return "out_of_budget", None  # the budget of pinned messages leaves it out
    if status == "none" and message.hidden_by == "scenes" and message.kind != "thought":
        return "hidden", learnt  # nothing covers it, so it is missing only because scenes hide it
    return status, (learnt or by) if status == "none" else by


def _judge(message: PlacedMessage, cover: Coverage | None, shown: Shown, filters: Filters) -> tuple[str, str | None]:
    """Return the status and the source of a message that is not sent; `cover` is one coverage of it, or None."""
    reason = why_ineligible(message, cover.filters if cover and cover.filters else filters)
    if reason is not None:
        return (reason if reason in ("excluded", "hidden") else "none"), None
    if cover is None:
        return "none", None
    by = _source_of(cover)
    if cover.state != "made":
        return _OF_STATE[cover.state], by
    if by in shown.in_prompt:
        return cover.kind, by
    if by in shown.over_budget:
        return "out_of_budget", by
    if not cover.expires:  # a narrative version that the context does not contain covers nothing
        return "none", None
    # A memo of messages that are still in the history enters the context with the next cut.
    return ("pending" if cover.first_seq >= shown.anchor_seq else "expired"), by


def _source_of(cover: Coverage) -> str | None:
    return f"{cover.kind}:{cover.id}" if cover.id else None
