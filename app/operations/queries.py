"""SQL of operations: due work across the chats of a tenant, or of all."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg
from sqlalchemy import ColumnElement, and_, exists, func, select, tuple_, update

from app.chats.models import CURRENT, Chat
from app.kit.db import Connection, DbSession
from app.kit.due import Work
from app.kit.ids import user_key

Status = Literal["due", "running", "failed"]

_LEASED = Work.leased_until > func.clock_timestamp()


def _has_status(status: Status) -> ColumnElement[bool]:
    if status == "failed":
        return Work.failed_at.is_not(None)
    leased = func.coalesce(_LEASED, False)
    return and_(Work.failed_at.is_(None), leased if status == "running" else ~leased)


def _of_current_line() -> ColumnElement[bool]:
    return exists().where(Chat.chat_key == Work.chat_key, Chat.line_id == Work.line_id, Chat.standing == CURRENT)


async def list_work(
    db_session: DbSession,
    *,
    tenant: str,
    status: Status | None,
    only_chat: UUID | None,
    only_user: str | None,
    after: UUID | None,
    limit: int,
) -> Sequence[Any]:
    """Due work on current lines, in the order it became due."""
    query = (
        select(Work, Chat.chat_id, func.coalesce(_LEASED, False).label("leased"))
        .join(Chat, and_(Chat.chat_key == Work.chat_key, Chat.line_id == Work.line_id, Chat.standing == CURRENT))
        .where(Work.tenant == tenant)
    )
    if status:
        query = query.where(_has_status(status))
    if only_chat:
        query = query.where(Work.chat_key == only_chat)
    if only_user:
        query = query.where(Chat.user_id == only_user)
    if after:
        query = query.where(tuple_(Work.tenant, Work.work_id) > (tenant, after))
    return (await db_session.execute(query.order_by(Work.work_id).limit(limit))).all()


async def count_work(connection: Connection) -> Sequence[asyncpg.Record]:
    """How much of every tenant and layer stands how.

    Rows of other lines than current ones rest, which their `run_after` tells without a look at the chats.
    """
    return await connection.fetch(
        """
        SELECT tenant, layer, count(*) AS rows,
            CASE WHEN failed_at IS NOT NULL THEN 'failed'
                WHEN leased_until > clock_timestamp() THEN 'running' ELSE 'due' END AS status
        FROM work WHERE run_after < 'infinity' GROUP BY tenant, layer, status
        """
    )


async def retry_work(
    db_session: DbSession,
    *,
    tenant: str,
    work_id: UUID,
    only_chat: UUID | None,
    only_user: str | None,
    now: datetime,
) -> bool:
    """Make a row due now with all its attempts before it, also one that is being made; False if there is none.

    Rows of other lines than current ones are out of reach: nobody makes them, and a checkpoint stays as it is.
    """
    query = update(Work).where(Work.tenant == tenant, Work.work_id == work_id, _of_current_line())
    if only_chat:
        query = query.where(Work.chat_key == only_chat)
    if only_user:
        of_user = select(Chat.chat_key).where(Chat.user_key == user_key(tenant, only_user), Chat.standing == CURRENT)
        query = query.where(Work.chat_key.in_(of_user))
    done = await db_session.execute(
        query.values(
            failed_at=None,
            attempts=0,
            error=None,
            transient=False,
            lease=None,
            leased_until=None,
            run_after=now,
            first_due_at=now,
        ).returning(Work.key)
    )
    return done.first() is not None
