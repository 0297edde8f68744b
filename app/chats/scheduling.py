"""Schedules, finds, cancels and revives work items of the layers; `head` or `owner` says whose work it is."""

from collections.abc import Collection, Sequence
from datetime import datetime

from app.chats.head import Head
from app.chats.heads import lock_line
from app.chats.revision import WORK, record, record_nothing
from app.kit import ripe_work, work_queue
from app.kit.db import DbSession
from app.kit.owners import Owner


def owner_of(head: Head) -> Owner:
    """Return the line as an owner of due work."""
    return Owner.of_line(head.tenant, head.chat_key, head.line_id)


async def schedule(
    db_session: DbSession,
    head: Head,
    layer: str,
    items: Sequence[work_queue.NewWork],
    *,
    now: datetime,
    settle_s: float,
) -> None:
    """Make `items` due after the settle time; see `kit.work_queue.schedule` for items that are due already.

    On a line that is not current the items are parked until the line becomes current.
    """
    record(db_session, head.line, WORK, layer, in_context=False)
    await work_queue.schedule(
        db_session, owner_of(head), layer, items, now=now, settle_s=settle_s, parked=not head.is_current
    )


async def find_scheduled(db_session: DbSession, head: Head, layer: str, key: str) -> work_queue.WorkItem | None:
    """Return the work item of a key, which may have failed for good, or None."""
    return await work_queue.find_work(db_session, owner_of(head), layer, key)


async def get_scheduled(db_session: DbSession, head: Head, layer: str, key: str) -> work_queue.WorkItem:
    """Return the work item of a key that was just scheduled. Raises LookupError."""
    work = await find_scheduled(db_session, head, layer, key)
    if work is None:
        raise LookupError(f"{layer} {key} is not scheduled")
    return work


async def cancel_automatic(db_session: DbSession, head: Head, layer: str, keys: Sequence[str]) -> None:
    """Delete the items under `keys` that have no payload. Items that a person requested have one, so they stay."""
    if await work_queue.cancel_automatic(db_session, owner_of(head), layer, keys):
        record(db_session, head.line, WORK, layer, in_context=False)


async def unschedule(db_session: DbSession, head: Head, layer: str, keys: Sequence[str]) -> None:
    """Delete the items under `keys`. A worker that holds the lease of such an item loses the lease."""
    if await work_queue.unschedule(db_session, owner_of(head), layer, keys):
        record(db_session, head.line, WORK, layer, in_context=False)


async def revive(db_session: DbSession, owner: Owner, *, now: datetime) -> bool:
    """Make those items due again that failed while the model was unavailable; return whether there were any."""
    head = await lock_line(db_session, *owner.line) if owner.is_line else None
    layers = await ripe_work.revive_transient(db_session, owner, now=now)
    if head is not None:
        record_work(db_session, head, layers)
    return bool(layers)


async def hasten(db_session: DbSession, owner: Owner, *, now: datetime) -> None:
    """Make items of an owner due now if their times were set by a clock that was ahead (`kit.ripe_work.hasten`)."""
    head = await lock_line(db_session, *owner.line) if owner.is_line else None
    layers = await ripe_work.hasten(db_session, owner, now=now)
    if head is not None:
        record_work(db_session, head, layers)


def record_work(db_session: DbSession, head: Head, layers: Collection[str]) -> None:
    """Record that work items of `layers` changed, or, if `layers` is empty, that the transaction changed nothing.

    Use it only if the transaction changes nothing else on the line.
    """
    if layers:
        record(db_session, head.line, WORK, *layers)
    else:
        record_nothing(db_session, head.line)
