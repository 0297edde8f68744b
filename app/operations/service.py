"""The verbs of operations: reading due work, and trying failed work again."""

from datetime import datetime
from typing import Any
from uuid import UUID

from app.kit.auth import Caller
from app.kit.db import Database, DbSession, defer
from app.kit.errors import NotFound
from app.kit.work_queue import WorkScheduled
from app.operations import queries

_BATCH = 500
"""How many items one transaction retries: an append must not wait long for items that are locked."""


class WorkNotFound(NotFound):
    """The work item does not exist, is finished, or is outside the caller's limits."""

    code = "work_not_found"
    title = "Unknown work"


async def get_work(db_session: DbSession, caller: Caller, work_id: UUID) -> Any:
    """Return an item with the chat and the user that it is for. Raises WorkNotFound."""
    found = await queries.find_work(db_session, caller, work_id)
    if found is None:
        raise _not_found(work_id)
    return found


async def retry_work(db_session: DbSession, caller: Caller, work_id: UUID, *, now: datetime) -> None:
    """Make an item due now with all its attempts left. Raises WorkNotFound."""
    if not await queries.retry_work(db_session, caller, work_id, now=now):
        raise _not_found(work_id)
    defer(db_session, WorkScheduled())


async def retry_failed(
    database: Database, caller: Caller, *, layer: str | None, chat_id: str | None, now: datetime
) -> int:
    """Make all items due now that have failed for good and that the caller sees; return how many.

    Args:
        database: Where each batch of items is a transaction of its own.
        caller: Whose limits apply.
        layer: Only items of this layer; None for all.
        chat_id: Only items of this chat; None for all.
        now: The service's time.

    """
    retried = 0
    after: UUID | None = None
    while True:
        async with database.unit_of_work() as db_session:
            work_ids = await queries.retry_failed(
                db_session, caller, layer=layer, chat_id=chat_id, after=after, limit=_BATCH, now=now
            )
            if work_ids:
                defer(db_session, WorkScheduled())
        retried += len(work_ids)
        if len(work_ids) < _BATCH:
            return retried
        after = work_ids[-1]


def _not_found(work_id: UUID) -> WorkNotFound:
    return WorkNotFound(f"There is no work {str(work_id)!r}. Work that is finished is deleted.")
