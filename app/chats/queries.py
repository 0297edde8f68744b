"""SQL of chats and their lines.

The statements that an append runs are written for asyncpg. The others are written for asyncpg or in SQLAlchemy.

A statement that waited for a row lock sees the current version of that row, but all else as it was before the wait.
So a write locks the line's row in a separate statement and reads afterwards.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select, text, tuple_

from app.chats.characters import SPEAKING_ROLES
from app.chats.errors import busy_if_locked
from app.chats.models import CURRENT, OF_CHAT, ChatLine
from app.chats.revision import SETTINGS, raise_others
from app.kit.db import DbSession, Table

_CHATS = Table.metadata.tables[ChatLine.__tablename__]

_RENAME_SPEAKER = """
    UPDATE messages SET name = $4 WHERE chat_key = $1 AND line_id = $2 AND name = $3 AND role = ANY($5)"""

_COUNT_WORK = """
    SELECT chat_key, count(*) FILTER (WHERE failed_at IS NULL) AS due, count(failed_at) AS failed
    FROM unnest($1::uuid[], $2::uuid[]) AS asked (chat_key, line_id)
        JOIN work ON work.owner_key = asked.chat_key AND work.line_id = asked.line_id
    GROUP BY chat_key"""


async def has_current(db_session: DbSession, chat_key: UUID) -> bool:
    """Return whether the chat has a current line, as of now."""
    return bool(
        await db_session.raw.fetchval(
            "SELECT EXISTS (SELECT FROM chats WHERE chat_key = $1 AND line_status = 'current')", chat_key
        )
    )


async def insert_chat(db_session: DbSession, chat: ChatLine) -> bool:
    """Create the chat's first line; return False if another request has just done so. Raises ChatBusy."""
    values = {
        "chat_key": chat.chat_key,
        "line_id": chat.line_id,
        "tenant": chat.tenant,
        "chat_id": chat.chat_id,
        "user_id": chat.user_id,
        "user_key": chat.user_key,
        "replaceable": True,
        "line_created_at": chat.line_created_at,
        "created_at": chat.created_at,
        "last_active_at": chat.last_active_at,
    }
    columns = ", ".join(values)
    parameters = ", ".join(f"${n}" for n in range(1, len(values) + 1))
    insert = f"INSERT INTO chats ({columns}) VALUES ({parameters}) ON CONFLICT DO NOTHING RETURNING true"  # noqa: S608
    with busy_if_locked():
        return bool(await db_session.raw.fetchval(insert, *values.values()))


async def find_chat(db_session: DbSession, chat_key: UUID) -> ChatLine | None:
    """Return the current line of a chat, or None."""
    return (
        await db_session.execute(select(ChatLine).where(ChatLine.chat_key == chat_key, ChatLine.line_status == CURRENT))
    ).scalar_one_or_none()


async def find_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> ChatLine | None:
    """Return a line of a chat, or None; it may be current, abandoned or a checkpoint."""
    return await db_session.get(ChatLine, (chat_key, line_id))


async def list_chats(
    db_session: DbSession, *, tenant: str, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[ChatLine]:
    """Return chats of a tenant by creation, newest first."""
    query = select(ChatLine).where(ChatLine.tenant == tenant, ChatLine.line_status == CURRENT)
    if before:
        query = query.where(tuple_(ChatLine.created_at, ChatLine.chat_key) < before)
    return (
        (await db_session.execute(query.order_by(ChatLine.created_at.desc(), ChatLine.chat_key.desc()).limit(limit)))
        .scalars()
        .all()
    )


async def list_user_chats(
    db_session: DbSession, *, user_key: UUID, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[ChatLine]:
    """Return chats of a user by last activity, newest first."""
    query = select(ChatLine).where(ChatLine.user_key == user_key, ChatLine.line_status == CURRENT)
    if before:
        query = query.where(tuple_(ChatLine.last_active_at, ChatLine.chat_key) < before)
    return (
        (
            await db_session.execute(
                query.order_by(ChatLine.last_active_at.desc(), ChatLine.chat_key.desc()).limit(limit)
            )
        )
        .scalars()
        .all()
    )


async def count_work(db_session: DbSession, chats: Sequence[ChatLine]) -> dict[UUID, tuple[int, int]]:
    """Return how many items of each chat are due and how many have failed for good, for chats that have any."""
    rows = await db_session.raw.fetch(_COUNT_WORK, [chat.chat_key for chat in chats], [chat.line_id for chat in chats])
    return {row["chat_key"]: (row["due"], row["failed"]) for row in rows}


async def lock_all_lines(db_session: DbSession, chat_key: UUID) -> list[str | None]:
    """Lock all lines of a chat, whose current line is locked already; return their users. Raises ChatBusy."""
    lock = "SELECT user_id FROM chats WHERE chat_key = $1 ORDER BY line_id FOR UPDATE"
    with busy_if_locked():
        return [row["user_id"] for row in await db_session.raw.fetch(lock, chat_key)]


async def list_user_chat_keys(db_session: DbSession, user_key: UUID) -> list[UUID]:
    """Return the keys of all chats of a user, sorted."""
    query = select(ChatLine.chat_key).where(ChatLine.user_key == user_key, ChatLine.line_status == CURRENT)
    return list((await db_session.execute(query.order_by(ChatLine.chat_key))).scalars())


async def update_line(db_session: DbSession, line: tuple[UUID, UUID], values: Mapping[str, Any]) -> None:
    """Update columns that belong to the line, by their names in the database."""
    if values:
        statement = _CHATS.update().where(_CHATS.c.chat_key == line[0], _CHATS.c.line_id == line[1])
        await db_session.execute(statement.values(values))


async def rename_speaker(db_session: DbSession, line: tuple[UUID, UUID], former: str, name: str) -> None:
    """Give a character's messages on a line its new name, soft-deleted ones too."""
    await db_session.raw.execute(_RENAME_SPEAKER, *line, former, name, list(SPEAKING_ROLES))


async def update_chat(db_session: DbSession, chat_key: UUID, values: Mapping[str, Any]) -> None:
    """Update columns that belong to the chat, by their names in the database, on all of its lines.

    So a line that is switched to or restored later has no outdated value. The current line must be locked: its revision
    rises before the commit, and this statement raises the revisions of the other lines. Raises ChatBusy, and
    LookupError for a column that does not belong to the chat.
    """
    if not OF_CHAT.issuperset(values):
        raise LookupError(f"not all of these columns belong to the chat: {', '.join(values)}")
    if values:
        with busy_if_locked():
            raised: dict[str, Any] = {name: text(column) for name, column in raise_others(SETTINGS).items()}
            await db_session.execute(_CHATS.update().where(_CHATS.c.chat_key == chat_key).values({**values, **raised}))
