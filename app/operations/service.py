"""Operations on background work: reading and retrying it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.chats.heads import lock_line
from app.chats.scheduling import record_work
from app.kit.auth import Caller
from app.kit.db import Database, DbSession, defer
from app.kit.errors import NotFound
from app.kit.owners import Owner
from app.kit.work_queue import WorkScheduled
from app.operations import queries

_BATCH = 500
"""The maximum number of items that one transaction retries, so that appends do not wait long for the locked rows."""


class WorkNotFound(NotFound):
    """The work item does not exist, is finished, or is not visible to the caller."""

    code = "work_not_found"
    title = "Unknown work"


async def get_work(db_session: DbSession, caller: Caller, work_id: UUID) -> Any:
    """Return an item with its chat and its user. Raises WorkNotFound."""
    found = await queries.find_work(db_session, caller, work_id)
    if found is None:
        raise _not_found(work_id)
    return found


async def retry_work(database: Database, caller: Caller, work_id: UUID, *, now: datetime) -> None:
    """Reschedule an item for now; its attempts are counted from zero again. Raises WorkNotFound."""
    async with database.unit_of_work(caller.tenant) as db_session:
        work = (await get_work(db_session, caller, work_id)).WorkItem
    owner = Owner(work.tenant, work.owner_key, work.line_id, work.user_id)
    async with database.unit_of_work(owner.tenant, owner.key if owner.is_line else None) as db_session:
        head = await lock_line(db_session, *owner.line) if owner.is_line else None
        if not await queries.retry_work(db_session, caller, work_id, now=now):
            raise _not_found(work_id)
        if head is not None:
            record_work(db_session, head, [work.layer])
        defer(db_session, WorkScheduled())


async def retry_failed(
    database: Database, caller: Caller, *, layer: str | None, chat_id: str | None, now: datetime
) -> int:
    """Reschedule all failed items that are visible to the caller; return their number.

    Args:
        database: The database. The items of each owner are retried in transactions of their own. If the owner is a
            line, each of these transactions locks the line first.
        caller: The caller. Only items of its tenant are retried; with a token that is limited to a user or a chat, only
            items of this user or chat.
        layer: Only items of this layer; None for all.
        chat_id: Only items of this chat; None for all.
        now: The service's time.

    """
    retried = 0
    after: UUID | None = None
    while True:
        async with database.unit_of_work(caller.tenant) as db_session:
            failed = await queries.list_failed(
                db_session, caller, layer=layer, chat_id=chat_id, after=after, limit=_BATCH
            )
        by_owner: dict[Owner, list[UUID]] = {}
        for work_id, tenant, key, line_id, user_id in failed:
            by_owner.setdefault(Owner(tenant, key, line_id, user_id), []).append(work_id)
        for owner, work_ids in by_owner.items():
            retried += await _retry_of_owner(database, caller, owner, work_ids, now)
        if len(failed) < _BATCH:
            return retried
        after = failed[-1].work_id


async def _retry_of_owner(
    database: Database, caller: Caller, owner: Owner, work_ids: Sequence[UUID], now: datetime
) -> int:
    async with database.unit_of_work(owner.tenant, owner.key if owner.is_line else None) as db_session:
        head = await lock_line(db_session, *owner.line) if owner.is_line else None
        layers = await queries.retry_failed(db_session, caller, owner, work_ids, now=now)
        if head is not None:
            record_work(db_session, head, layers)
        if layers:
            defer(db_session, WorkScheduled())
        return len(layers)


def _not_found(work_id: UUID) -> WorkNotFound:
    return WorkNotFound(
        f"There is no work item {str(work_id)!r}. It may be finished, or parked on a line that is not current."
    )
