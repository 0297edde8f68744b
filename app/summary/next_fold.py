"""Finds and schedules the next fold of a line's summary.

A fold makes a version from a former one and the messages after it. The *chain* of a version is the version with all
those it was built on. The history begins at the *anchor*; a cut of the history moves the anchor, and can wait until
everything up to a seq is folded (`until_seq`).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.chats.head import Head
from app.chats.ranges import Range
from app.chats.scheduling import cancel_automatic, find_scheduled, schedule, unschedule
from app.kit import work_queue
from app.kit.db import DbSession
from app.messages.reads import list_sent_after, list_summarisable_after
from app.narratives import service as narratives
from app.narratives.chain import Chain, Link
from app.narratives.service import Narrative
from app.summary.folding import choose_range_over, choose_range_up_to, find_due_end, keep_before, reach
from app.summary.settings import FOLD_EDGES, SummarySettings

NAME = "summary"
SUMMARY = Narrative(NAME)
FOLD = "fold"
"""The key of the work item of a fold: a line has one summary, and one fold is made at a time."""


async def reconcile_fold_work(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Schedule a fold if the summary is on and there is anything to fold.

    Otherwise delete the scheduled fold, unless it has a payload: a person or a waiting cut has then asked for it. While
    the summary is off, a fold that only a cut asked for is deleted, too.
    """
    work = await find_scheduled(db_session, head, NAME, FOLD)
    asked = (work.payload or {}) if work is not None and work.failed_at is None else {}
    until_seq = asked.get("until_seq", 0)
    chain = await read_onto(db_session, head, until_seq=until_seq)
    enabled = SummarySettings.of(head.settings).enabled
    if enabled and await find_range(db_session, head, chain, until_seq=until_seq):
        await schedule_fold(db_session, head, at_seq=chain.covered + 1, now=now, settle_s=settle_s)
    elif not enabled and work is not None and set(work.payload or ()) <= {"until_seq"}:
        await unschedule(db_session, head, NAME, [FOLD])  # a cut does not wait for a summary that is off
    else:
        await cancel_automatic(db_session, head, NAME, [FOLD])


async def read_onto(db_session: DbSession, head: Head, *, until_seq: int = 0) -> Chain:
    """Return the chain that the next fold is folded onto.

    Usually this is the whole chain of the current version. But a context contains the latest version that ends before
    the history. If there are messages between the end of that version and the history, contexts have a gap. The chain
    then ends with that version, so that the next fold fills the gap. This is checked for the history as it is, and as
    it will be after the waiting cut, when it begins at `until_seq + 1`. The chain is never shortened past a version
    that a person wrote.
    """
    for begins_seq in sorted({head.anchor_seq, max(head.anchor_seq, until_seq + 1)}):
        chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=begins_seq)
        kept = keep_before(chain, begins_seq)
        if kept is not None and await is_missing(db_session, head, kept.covered, begins_seq - 1):
            return kept
    return chain


async def read_before_replaced(
    db_session: DbSession, head: Head, newest: Link, *, replaces_kept: bool
) -> tuple[Chain, Sequence[Link]]:
    """Return the chain onto which the messages of `newest` are folded again, and the versions that this replaces.

    A kept text is a text of a person that later versions contain word for word. With `replaces_kept`, all versions
    after the last one without a kept text are replaced, and all messages that they cover are folded again.
    """
    if not replaces_kept:
        return await narratives.read_before(db_session, head.line, SUMMARY, newest), [newest]
    whole = await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=1)
    links = [link for link in whole.links if link.version <= newest.version]
    before = Chain(links[:-1]).without_kept()
    return before, links[len(before.links) :]


async def discard(
    db_session: DbSession, head: Head, written: Sequence[Link], before: Link | None, *, now: datetime
) -> None:
    """Delete the versions `written`, the versions that these replaced, and all folds onto them; make `before` current.

    If `before` is None, no version is current.
    """
    if before is None:
        await narratives.reset_current(db_session, head.line, SUMMARY)
    else:
        await narratives.make_current(db_session, head.line, SUMMARY, before.version)
    for link in written:
        await narratives.discard_replaced(db_session, head.line, SUMMARY, link, now=now)


async def is_idle(db_session: DbSession, head: Head) -> bool:
    """Return whether no fold is scheduled, being made or waiting for its next attempt."""
    work = await find_scheduled(db_session, head, NAME, FOLD)
    return work is None or work.failed_at is not None


async def find_range(db_session: DbSession, head: Head, chain: Chain, *, until_seq: int = 0) -> Range | None:
    """Return the range to fold next onto `chain`, or None; `until_seq` is what a cut waits for, 0 if no cut waits."""
    settings, line = SummarySettings.of(head.settings), head.line
    limit = reach(settings.threshold_messages, settings.keep_messages)
    # Messages that auto-hide has hidden are folded, too, but do not count as messages that the history keeps.
    summarisable = await list_summarisable_after(db_session, *line, chain.covered, limit)
    end_seq = find_due_end(summarisable, head.anchor_seq, until_seq)
    if end_seq is not None:
        return choose_range_up_to(end_seq, summarisable, chain.covered)
    # If the history is cut at the edges of another layer, only a cut makes a fold due: a fold that begins by itself
    # might not end at such an edge.
    if not folds_by_itself(head):
        return None
    sent = await list_sent_after(db_session, *line, chain.covered, limit)
    return choose_range_over(sent, chain.covered, threshold=settings.threshold_messages, keep=settings.keep_messages)


async def schedule_fold(
    db_session: DbSession,
    head: Head,
    *,
    at_seq: int,
    now: datetime,
    settle_s: float,
    payload: dict[str, Any] | None = None,
) -> None:
    """Schedule the fold and notify the workers; the line has a summary from now on."""
    begin(head)
    await schedule(db_session, head, NAME, [work_queue.NewWork(FOLD, at_seq, payload)], now=now, settle_s=settle_s)


def has_summary(head: Head) -> bool:
    """Return whether the line has a summary or is to have one; if not, no query is needed."""
    return SummarySettings.of(head.settings).enabled or NAME in head.cursors


def begin(head: Head) -> None:
    """Record in the head that the line has a summary, even if its settings switch it off."""
    head.cursors.setdefault(NAME, {"covered_seq": 0})


async def is_missing(db_session: DbSession, head: Head, covered_seq: int, until_seq: int) -> bool:
    """Return whether any message after `covered_seq`, up to `until_seq` (inclusive), is to be summarised."""
    missing = await list_summarisable_after(db_session, *head.line, covered_seq, 1)
    return bool(missing) and missing[0].seq <= until_seq


def folds_by_itself(head: Head) -> bool:
    """Return whether a fold starts without waiting for a cut: the summary is on, and the history is cut at folds."""
    return SummarySettings.of(head.settings).enabled and head.settings.history.edges == FOLD_EDGES
