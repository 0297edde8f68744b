"""Keeps the summary consistent with messages that change.

A *step* is the range of messages that one fold added to the summary. If its messages change, the step becomes stale,
and is folded again. A *kept text* is a text of a person that all later versions contain word for word.
"""

from bisect import bisect_left
from collections.abc import Sequence

from app.chats.eligibility import Filters
from app.chats.events import LineTruncated, MessagesChanged, MessagesMoved, SettingsChanged
from app.chats.head import Head
from app.chats.scheduling import find_scheduled, unschedule
from app.kit.db import DbSession
from app.layers.derived import DerivedRow, rehash
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import Line, Step
from app.summary.next_fold import (
    FOLD,
    NAME,
    SUMMARY,
    discard,
    has_summary,
    read_before_replaced,
    reconcile_fold_work,
    schedule_fold,
)


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Update the hashes of the steps that contain changed messages, and schedule or cancel a fold."""
    head = event.head
    line = head.line
    if not has_summary(head):
        return
    seqs = event.changed_seqs
    if not seqs:
        return
    steps = await narratives.list_steps(db_session, line, NAME, seqs[0], seqs[-1])
    changed = await _rehash(db_session, head, [step for step in steps if _holds(step, seqs)])
    work = await find_scheduled(db_session, head, NAME, FOLD)
    # Unless a step has changed, a fold that is due needs no change: it reads the edited messages, or detects the edit
    # while it runs. After a failed attempt the fold is scheduled again, so that its attempts start at zero.
    if changed or work is None or work.error is not None:
        await reconcile_fold_work(db_session, head, now=event.now, settle_s=event.settle_s)


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """Schedule a fold if messages are due; if the summary is off, cancel a fold that no person asked for."""
    if has_summary(event.head):
        await reconcile_fold_work(db_session, event.head, now=event.now, settle_s=event.settle_s)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete or shorten the versions that cover removed messages; the messages left may have to be folded again.

    A fold that a person asked for stays scheduled (1) if the latest valid version is the same as before, or (2) if the
    person wants the kept text replaced, and the latest version has both a kept text and a step. If the messages of the
    fold have changed, its worker starts over. If the person wants the kept text replaced, but the latest version has no
    step, there is nothing to fold again, and the kept text is deleted at once.
    """
    head = event.head
    if not has_summary(head):
        return
    line = head.line
    former = await _find_latest(db_session, event.former_line)
    await narratives.truncate(
        db_session,
        line,
        SUMMARY,
        event.from_seq,
        begins_seq=event.from_seq - 1,
        former_line=event.former_line,
    )
    latest = await _find_latest(db_session, line)
    if latest == former:
        is_kept = await _keep_wish(db_session, event)
    elif latest is not None and latest.has_kept and await _replaces_kept(db_session, head):
        is_kept = latest.has_step and await _keep_wish(db_session, event, again=latest.version)
        if not is_kept:
            before, replaced = await read_before_replaced(db_session, head, latest, replaces_kept=True)
            await discard(db_session, head, replaced, before.latest_valid(), now=event.now)
    else:
        is_kept = False
    if is_kept:
        return
    await unschedule(db_session, head, NAME, [FOLD])
    await reconcile_fold_work(db_session, head, now=event.now, settle_s=event.settle_s)


async def _find_latest(db_session: DbSession, line: Line) -> Link | None:
    return (await narratives.read_chain(db_session, line, SUMMARY)).latest_valid()


async def _replaces_kept(db_session: DbSession, head: Head) -> bool:
    """Return whether a person has asked for a fold that replaces a kept text."""
    work = await find_scheduled(db_session, head, NAME, FOLD)
    return work is not None and work.failed_at is None and bool((work.payload or {}).get("replaces_kept"))


async def _keep_wish(db_session: DbSession, event: LineTruncated, *, again: int | None = None) -> bool:
    """Keep the wishes of a person for the scheduled fold; return whether there are any.

    `again` is the number of the version to make again, if the number in the payload of the fold is no longer right.
    The former number must not stay: the next version can get this number, and may be a text that a person writes.

    The seq that a waiting cut needs (`until_seq`) is dropped. The history has changed, so the cut is decided on again.
    """
    work = await find_scheduled(db_session, event.head, NAME, FOLD)
    asked = (work.payload or {}) if work is not None and work.failed_at is None else {}
    wish = {name: value for name, value in asked.items() if name != "until_seq"}
    if again is not None:
        wish["again"] = again
    if work is not None and wish and wish != asked:
        await schedule_fold(
            db_session, event.head, at_seq=work.at_seq, now=event.now, settle_s=event.settle_s, payload=wish
        )
    return bool(wish)


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Take over the text that a person wrote on the line from which the messages moved."""
    head = event.head
    if not has_summary(head):
        return
    line = head.line
    await narratives.carry_over_edits(
        db_session, line, event.from_line_id, SUMMARY, begins_seq=event.kept_seq, now=event.now
    )


def _holds(step: Step, seqs: Sequence[int]) -> bool:
    """Return whether a step contains one of `seqs`, which are in order."""
    at = bisect_left(seqs, step.first_unit)
    return at < len(seqs) and seqs[at] <= step.last_unit


async def _rehash(db_session: DbSession, head: Head, steps: Sequence[Step]) -> bool:
    """Update the hashes of steps; return whether any hash has changed."""
    changed = [one for one in await rehash(db_session, head, [_derived(step) for step in steps]) if one.has_changed]
    rows = [(one.row.of.subject, one.row.of.version, one.current_hash) for one in changed]
    await narratives.update_hashes(db_session, head.line, NAME, rows)
    return bool(rows)


def _derived(step: Step) -> DerivedRow[Step]:
    return DerivedRow(
        of=step,
        key="",
        first_seq=step.first_unit,
        last_seq=step.last_unit,
        filters=Filters.from_json(step.filters or {}),
        source_hash=step.source_hash,
        current_hash=step.current_hash,
    )
