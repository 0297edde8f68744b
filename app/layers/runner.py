"""Runs the job of a work item. All background work runs through here.

A job reads its source in one transaction, and makes a draft while no transaction is open. A second transaction then
locks the line, checks the lease, checks that the source is unchanged, and saves the draft. If the line is locked or
PostgreSQL is away, the second transaction is tried again with the same draft, because a new draft can cost another call
of the model. If the source has changed, the item is due again and its attempts are counted from zero. When an item is
completed or fails for good, `LayerChanged` is deferred, because a cut may wait for the item.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.heads import lock_line
from app.chats.revision import WORK, record, record_nothing
from app.kit import work_queue
from app.kit.attempts import start_over
from app.kit.db import DbSession, defer
from app.kit.errors import Unavailable, WritesRefused
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelError
from app.kit.log.formatter import describe
from app.kit.scopes import raise_scope
from app.kit.work_queue import MAX_ATTEMPTS, Claimed
from app.layers.ask import NoUsableAnswer
from app.layers.job import Job, LeftToOthers, Made
from app.layers.layer import Layer, find_layer
from app.summarising.fitting import DoesNotFit

log = logging.getLogger(__name__)

KILLED = ModelError("no worker survived making it", transient=False)

PAUSE_S = 1.0
"""Seconds between two tries to save a draft."""


async def run_job(ctx: JobContext, layers: Sequence[Layer], claimed: Claimed) -> None:
    """Run the job of a work item, or record its failure on the item.

    Raises Unavailable if PostgreSQL stays away or the line stays locked; nothing is then recorded on the item.
    """
    if claimed.attempts > MAX_ATTEMPTS:
        await _fail(ctx, claimed, KILLED)
        return
    try:
        job = find_layer(layers, claimed.layer).job_for(claimed.key)
    except LookupError:
        await _leave_to_others(ctx, claimed, "this release has no job for it")
        return
    try:
        await _make(ctx, job, claimed)
    except LeftToOthers as error:
        await _leave_to_others(ctx, claimed, str(error))
    except ModelError as error:
        await _fail(ctx, claimed, error)
    except DoesNotFit as error:
        await _fail(ctx, claimed, ModelError(str(error), transient=False))
    except WritesRefused as refused:
        await _fail(ctx, claimed, ModelError(refused.detail, transient=True))
    except Unavailable:
        raise
    except Exception as error:
        log.exception("making %s failed", claimed.layer)
        await _fail(ctx, claimed, ModelError(f"unexpected: {type(error).__name__}", transient=False))
    else:
        log.info("finished %s", claimed.layer)


async def _make(ctx: JobContext, job: Job[Any, Any], claimed: Claimed) -> None:
    async with ctx.database.unit_of_work() as db_session:
        source = await job.read(ctx, db_session, claimed)
    draft = None if source is None else await job.draft(ctx, claimed, source)
    loop = asyncio.get_running_loop()
    until_s = loop.time() + ctx.save_s
    while True:
        try:
            await _save(ctx, job, claimed, source, draft)
            return
        except WritesRefused:
            raise
        except Unavailable as error:
            if loop.time() >= until_s:
                raise
            log.info("%s is saved again soon: %s", claimed.layer, describe(error))
            await asyncio.sleep(PAUSE_S)


async def _save(ctx: JobContext, job: Job[Any, Any], claimed: Claimed, source: object, draft: object) -> None:
    async with ctx.database.unit_of_work() as db_session:
        head = await _lock_head(db_session, claimed)
        if (claimed.owner.is_line and head is None) or not await work_queue.holds_lease(db_session, claimed):
            _record_outcome(db_session, head, claimed, item_changed=False)
            return  # the line is gone, or another worker has the item
        made = Made(head, claimed, source, draft, ctx.clock())
        _record_outcome(db_session, head, claimed)
        unchanged = await _is_unchanged(ctx, db_session, job, made)
        if unchanged is False:
            log.info("the source of %s changed meanwhile", claimed.layer)
            await start_over(db_session, claimed, now=made.now)
            return
        await work_queue.complete(db_session, claimed)
        if unchanged:
            await job.save(db_session, made)
        if head is not None:
            defer(db_session, LayerChanged(head, claimed.layer))


async def _is_unchanged(
    ctx: JobContext, db_session: DbSession, job: Job[Any, Any], made: Made[Any, Any]
) -> bool | None:
    """Return whether the source is unchanged since it was read, or None if there is nothing to save.

    If there was no source, `job.read` is called again under the lock: another transaction may have committed a source
    meanwhile, and have scheduled nothing because this item was already due. Return False if there is a source now, so
    that the item is due again; None if there is still no source.
    """
    if made.source is None:
        return None if await job.read(ctx, db_session, made.claimed) is None else False
    return None if made.draft is None else await job.is_unchanged(db_session, made)


async def _lock_head(db_session: DbSession, claimed: Claimed) -> Head | None:
    """Lock the line of the work item and return its head; None if there is no such line.

    The work item of a user or a tenant has no line and is locked only by its own row.
    """
    return await lock_line(db_session, *claimed.owner.line) if claimed.owner.is_line else None


async def _leave_to_others(ctx: JobContext, claimed: Claimed, why: str) -> None:
    """Release an item, so that it is due again and its attempts are counted from zero.

    During an upgrade, only workers of the newer release know its job; after a change of settings, only workers that
    were restarted can run it.
    """
    log.info("work of %s is left to other workers: %s", claimed.layer, why)
    async with ctx.database.unit_of_work() as db_session:
        head = await _lock_head(db_session, claimed)
        is_held = await start_over(db_session, claimed, now=ctx.clock())
        _record_outcome(db_session, head, claimed, item_changed=is_held)


async def _fail(ctx: JobContext, claimed: Claimed, error: ModelError) -> None:
    """Record a failure on the work item, and defer `LayerChanged` if it is final."""
    log.info("%s failed%s", claimed.layer, " for now" if error.curable else "")
    is_final = isinstance(error, NoUsableAnswer)  # the model is not asked again, so further attempts would be in vain
    async with ctx.database.unit_of_work() as db_session:
        head = await _lock_head(db_session, claimed)
        is_recorded = await work_queue.record_failure(
            db_session,
            claimed,
            error=error.reason,
            transient=error.curable,
            now=ctx.clock(),
            retry_after_s=error.retry_after_s,
            final=is_final,
        )
        _record_outcome(db_session, head, claimed, item_changed=is_recorded)
        if (is_final or claimed.attempts >= MAX_ATTEMPTS) and head is not None:
            defer(db_session, LayerChanged(head, claimed.layer))


def _record_outcome(db_session: DbSession, head: Head | None, claimed: Claimed, *, item_changed: bool = True) -> None:
    """Raise the revision of the work item's owner, if this worker changed the item's state."""
    if head is not None and not item_changed:
        record_nothing(db_session, head.line)
    elif head is not None:
        record(db_session, head.line, WORK, claimed.layer)
    elif item_changed and not claimed.owner.is_line:
        raise_scope(db_session, claimed.owner)
