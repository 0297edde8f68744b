"""SQL of background work, of one tenant or of all.

A caller sees the work of its tenant. A token limited to a user sees the work of that user and of the user's chats; a
token limited to a chat sees the work of that chat. Parked work, which is kept back because its line is not current, is
not visible and cannot be retried.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg
from sqlalchemy import Boolean, ColumnElement, Row, Select, and_, func, literal_column, or_, select, update
from sqlalchemy.orm import aliased

from app.chats.models import CURRENT, ChatLine
from app.kit.auth import Caller
from app.kit.db import Connection, DbSession
from app.kit.ids import chat_key, user_key
from app.kit.owners import NO_LINE, Owner
from app.kit.work_queue import IS_FREE, WorkItem

Status = Literal["due", "running", "failed"]

_LEASED = literal_column(f"NOT {IS_FREE}", Boolean)


async def list_work(
    db_session: DbSession,
    caller: Caller,
    *,
    status: Status | None,
    chat_id: str | None,
    after: UUID | None,
    limit: int,
) -> Sequence[Any]:
    """Return items that are visible to the caller, in the order in which they were first scheduled."""
    query = _select_visible(caller)
    if status:
        query = query.where(_has_status(status))
    if chat_id is not None:
        query = query.where(_of_chat(caller.tenant, chat_id))
    if after:
        query = query.where(WorkItem.work_id > after)
    return list(await db_session.execute(query.order_by(WorkItem.work_id).limit(limit)))


async def find_work(db_session: DbSession, caller: Caller, work_id: UUID) -> Any | None:
    """Return an item that is visible to the caller, or None."""
    return (await db_session.execute(_select_visible(caller).where(WorkItem.work_id == work_id))).one_or_none()


async def retry_work(db_session: DbSession, caller: Caller, work_id: UUID, *, now: datetime) -> bool:
    """Reschedule an item for now, even if it is running; its attempts are counted from zero again.

    Returns False if no item with this id is visible to the caller.
    """
    query = update(WorkItem).where(_is_visible(caller), WorkItem.work_id == work_id)
    done = await db_session.execute(query.values(_due_from(now)).returning(WorkItem.work_id))
    return done.first() is not None


async def list_failed(
    db_session: DbSession,
    caller: Caller,
    *,
    layer: str | None,
    chat_id: str | None,
    after: UUID | None,
    limit: int,
) -> Sequence[Row[UUID, str, UUID, UUID, str | None]]:
    """Return the ids and owners of failed items that are visible to the caller, in the order of the ids."""
    chosen = select(WorkItem.work_id, WorkItem.tenant, WorkItem.owner_key, WorkItem.line_id, WorkItem.user_id).where(
        _is_visible(caller), WorkItem.failed_at.is_not(None)
    )
    if layer is not None:
        chosen = chosen.where(WorkItem.layer == layer)
    if chat_id is not None:
        chosen = chosen.where(_of_chat(caller.tenant, chat_id))
    if after:
        chosen = chosen.where(WorkItem.work_id > after)
    return (await db_session.execute(chosen.order_by(WorkItem.work_id).limit(limit))).all()


async def retry_failed(
    db_session: DbSession, caller: Caller, owner: Owner, work_ids: Sequence[UUID], *, now: datetime
) -> Sequence[str]:
    """Reschedule failed items of an owner for now, with attempts counted from zero; return their layers.

    Skips items that another transaction has locked in order to reschedule or erase them.
    """
    chosen = select(WorkItem.owner_key, WorkItem.line_id, WorkItem.layer, WorkItem.key).where(
        _is_visible(caller),
        WorkItem.owner_key == owner.key,
        WorkItem.line_id == owner.line_id,
        WorkItem.work_id.in_(work_ids),
        WorkItem.failed_at.is_not(None),
    )
    failed = chosen.with_for_update(skip_locked=True).cte("failed")
    same_item = and_(*(column == failed.c[column.key] for column in WorkItem.__table__.primary_key))
    done = await db_session.execute(update(WorkItem).where(same_item).values(_due_from(now)).returning(WorkItem.layer))
    return done.scalars().all()


async def count_work(connection: Connection) -> Sequence[asyncpg.Record]:
    """Return the number of items by tenant, layer and status, without parked items."""
    return await connection.fetch(
        f"""
        SELECT tenant, layer, count(*) AS rows,
            CASE WHEN failed_at IS NOT NULL THEN 'failed' WHEN {IS_FREE} THEN 'due' ELSE 'running' END AS status
        FROM work WHERE run_after < 'infinity' GROUP BY tenant, layer, status
        """  # noqa: S608 - composed of constants
    )


def _select_visible(caller: Caller) -> Select[WorkItem, str, str, bool]:
    """Return a query for the items visible to the caller, each with its chat, its user, and whether it is leased."""
    return (
        select(
            WorkItem,
            ChatLine.chat_id,
            func.coalesce(WorkItem.user_id, ChatLine.user_id).label("user_id"),
            _LEASED.label("leased"),
        )
        .outerjoin(ChatLine, and_(ChatLine.chat_key == WorkItem.owner_key, ChatLine.line_id == WorkItem.line_id))
        .where(_is_visible(caller))
    )


def _is_visible(caller: Caller) -> ColumnElement[bool]:
    visible = and_(WorkItem.tenant == caller.tenant, func.isfinite(WorkItem.run_after))
    if caller.chat_id is not None:
        visible = and_(visible, _of_chat(caller.tenant, caller.chat_id))
    if caller.user_id is not None:
        visible = and_(visible, _of_user(caller.tenant, caller.user_id))
    return visible


def _of_chat(tenant: str, chat_id: str) -> ColumnElement[bool]:
    return and_(WorkItem.owner_key == chat_key(tenant, chat_id), WorkItem.line_id != NO_LINE)


def _of_user(tenant: str, user_id: str) -> ColumnElement[bool]:
    """Return the condition that an item belongs to the user or to one of the user's chats."""
    key = user_key(tenant, user_id)
    chat = aliased(ChatLine)
    chats = select(chat.chat_key).where(chat.user_key == key, chat.line_status == CURRENT)
    return or_(
        and_(WorkItem.owner_key == key, WorkItem.line_id == NO_LINE),
        and_(WorkItem.owner_key.in_(chats), WorkItem.line_id != NO_LINE),
    )


def _has_status(status: Status) -> ColumnElement[bool]:
    if status == "failed":
        return WorkItem.failed_at.is_not(None)
    return and_(WorkItem.failed_at.is_(None), _LEASED if status == "running" else ~_LEASED)


def _due_from(now: datetime) -> dict[str, Any]:
    """Return the column values that make an item due now and reset its attempts and refused answers."""
    return {
        "failed_at": None,
        "attempts": 0,
        "error": None,
        "transient": False,
        "refusals": [],
        "lease": None,
        "leased_until": None,
        "run_after": now,
        "first_due_at": now,
    }
