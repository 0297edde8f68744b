"""How the summary stays true to messages that change: stale steps are folded again, from the newest true version on."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime

from app.chats.changes import Change, Move, Shortening, says_otherwise
from app.chats.due_work import delete_due, find_due
from app.chats.eligibility import Filters
from app.chats.ranges import inside_of, join_ranges
from app.chats.service import Head, hash_eligible, list_living
from app.kit.db import DbSession
from app.narratives import service as narratives
from app.narratives.service import Step
from app.summary.layer import FOLD, NAME, SUMMARY, is_kept, judge


async def note_change(db_session: DbSession, change: Change, *, settle_s: float) -> None:
    """Rewrite the hashes of the steps that hold changed messages, and judge anew what is due."""
    head = change.head
    line = head.line
    if not is_kept(head):
        return
    seqs = [pair[1].seq for pair in change.pairs if says_otherwise(pair)]
    if not seqs:
        return
    steps = await narratives.list_steps(db_session, line, NAME, seqs[0], seqs[-1])
    changed = await _rehash(db_session, head, [step for step in steps if _holds(step, seqs)])
    work = await find_due(db_session, head, NAME, FOLD)
    # An edit of what no version tells of yet is seen by whoever is just folding it, and a reason to try once more.
    if changed or work is None or work.error is not None:
        await judge(db_session, head, now=change.now, settle_s=settle_s)


async def catch_up(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Make due what was not folded while the summary was switched off."""
    if not is_kept(head):
        return
    await judge(db_session, head, now=now, settle_s=settle_s)


async def reopen(db_session: DbSession, cut_off: Shortening, *, settle_s: float) -> None:
    """Take away the versions that tell of what is gone; what is left in front of them may have to be folded again."""
    head = cut_off.head
    if not is_kept(head):
        return
    await delete_due(db_session, head, NAME, [FOLD])
    line = head.line
    await narratives.cut_off(db_session, line, SUMMARY, cut_off.from_seq, begins_seq=cut_off.from_seq - 1)
    await judge(db_session, head, now=cut_off.now, settle_s=settle_s)


async def bring_along(db_session: DbSession, move: Move) -> None:
    """Take over what a person wrote on the line that this one was made from."""
    head = move.head
    if not is_kept(head):
        return
    line = head.line
    await narratives.bring_written(db_session, line, move.from_line_id, SUMMARY, begins_seq=move.kept_seq, now=move.now)


def _holds(step: Step, seqs: Sequence[int]) -> bool:
    """Whether a step holds one of `seqs`, which are in order."""
    at = bisect_left(seqs, step.first_place)
    return at < len(seqs) and seqs[at] <= step.last_place


async def _rehash(db_session: DbSession, head: Head, steps: Sequence[Step]) -> bool:
    """Rewrite what steps say; returns whether any says something else than before."""
    if not steps:
        return False
    line = head.line
    ranges = join_ranges(sorted((step.first_place, step.last_place) for step in steps))
    living = await list_living(db_session, *line, ranges)
    says = [
        hash_eligible(inside_of(living, step.first_place, step.last_place), Filters.from_json(step.filters or {}))
        for step in steps
    ]
    rows = [
        (step.subject, step.version, now_says)
        for step, now_says in zip(steps, says, strict=True)
        if now_says != step.current_hash
    ]
    await narratives.update_hashes(db_session, line, NAME, rows)
    return bool(rows)
