"""SQL of chats and their lines, written for asyncpg where an append or a context runs it, otherwise in SQLAlchemy.

A statement that waited for a row lock sees the current version of that row, but everything else as of before the wait.
So a write locks the chat's row in a separate statement and reads afterwards.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy import select, text, tuple_

from app.chats.characters import Characters, list_disabled
from app.chats.eligibility import Filters
from app.chats.errors import busy_if_locked
from app.chats.head import Head
from app.chats.models import CURRENT, OF_CHAT, ChatLine
from app.chats.revision import SETTINGS, raise_others, record, register, revision_of
from app.chats.settings import ChatSettings, effective_json
from app.kit.db import Connection, DbSession, Table

_CHATS = Table.metadata.tables[ChatLine.__tablename__]

_HEAD_COLUMNS = """line_id, tenant, user_id, settings::text AS settings, characters::text AS characters, head_seq,
    anchor_seq, history_messages, message_count, turn_count, token_count, memo_count, memo_number, awaits_reply,
    cut_waits, last_cut::text AS last_cut, cursors::text AS cursors, last_active_at, standing, revision"""

LOCK_CURRENT = f"SELECT {_HEAD_COLUMNS} FROM chats WHERE chat_key = $1 AND standing = 'current' FOR UPDATE"  # noqa: S608

_READ_LINE = f"SELECT {_HEAD_COLUMNS} FROM chats WHERE chat_key = $1 AND line_id = $2"  # noqa: S608

_LOCK_LINE = f"{_READ_LINE} FOR UPDATE"

WRITE_HEAD = """
    UPDATE chats SET head_seq = $3, anchor_seq = $4, history_messages = $5, message_count = $6, turn_count = $7,
        token_count = $8, memo_count = $9, memo_number = $10, awaits_reply = $11, cut_waits = $12, last_cut = $13,
        cursors = $14, last_active_at = $15, revision = $16,
        base_revision = CASE WHEN $17 THEN $16 ELSE base_revision END,
        changed = CASE WHEN $18 THEN $19::jsonb ELSE changed || $19::jsonb END
    WHERE chat_key = $1 AND line_id = $2"""

_UPDATE_CACHE = """
    UPDATE chats SET context_cache = CASE WHEN $4::jsonb IS NULL THEN context_cache - $3::text
        ELSE context_cache || jsonb_build_object($3::text, $4::jsonb) END
    WHERE chat_key = $1 AND line_id = $2 AND context_cache -> $3::text IS DISTINCT FROM $4::jsonb"""

_COUNT_WORK = """
    SELECT chat_key, count(*) FILTER (WHERE failed_at IS NULL) AS due, count(failed_at) AS failed
    FROM unnest($1::uuid[], $2::uuid[]) AS asked (chat_key, line_id)
        JOIN work ON work.owner_key = asked.chat_key AND work.line_id = asked.line_id
    GROUP BY chat_key"""

_LIST_ANCHORS = """
    SELECT chat_key, line_id, anchor_seq
    FROM unnest($1::uuid[], $2::uuid[]) AS asked (chat_key, line_id) JOIN chats USING (chat_key, line_id)"""


def filters_of(settings: ChatSettings, characters: Characters) -> Filters:
    """Return the eligibility filters of these settings and characters."""
    rules = settings.eligibility
    return Filters(
        include_user=rules.include_user,
        include_system=rules.include_system,
        include_narrator=rules.include_narrator,
        min_tokens=rules.min_tokens,
        disabled=tuple(list_disabled(characters)),
    )


async def lock_current(db_session: DbSession, chat_key: UUID) -> tuple[Head, str | None] | None:
    """Lock the chat's current line and return its head and user; None if there is no such chat. Raises ChatBusy."""
    with busy_if_locked():
        row = await db_session.raw.fetchrow(LOCK_CURRENT, chat_key)
    return None if row is None else (_locked_head(db_session, chat_key, row), row["user_id"])


async def has_current(db_session: DbSession, chat_key: UUID) -> bool:
    """Return whether the chat has a current line, as of now."""
    return bool(
        await db_session.raw.fetchval(
            "SELECT EXISTS (SELECT FROM chats WHERE chat_key = $1 AND standing = 'current')", chat_key
        )
    )


async def lock_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Lock a line of a chat and return its head; None if the line does not exist. Raises ChatBusy."""
    with busy_if_locked():
        row = await db_session.raw.fetchrow(_LOCK_LINE, chat_key, line_id)
    return None if row is None else _locked_head(db_session, chat_key, row)


async def read_head(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Return the head of a line without a lock, so it may change at once; None if the line does not exist."""
    row = await db_session.raw.fetchrow(_READ_LINE, chat_key, line_id)
    return None if row is None else _head(chat_key, row)


async def insert_chat(db_session: DbSession, chat: ChatLine) -> bool:
    """Create the chat's first line; return False if another request has just done so. Raises ChatBusy."""
    values = {
        "chat_key": chat.chat_key,
        "line_id": chat.line_id,
        "tenant": chat.tenant,
        "chat_id": chat.chat_id,
        "user_id": chat.user_id,
        "user_key": chat.user_key,
        "line_made_at": chat.line_made_at,
        "created_at": chat.created_at,
        "last_active_at": chat.last_active_at,
    }
    columns = ", ".join(values)
    places = ", ".join(f"${n}" for n in range(1, len(values) + 1))
    insert = f"INSERT INTO chats ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING RETURNING true"  # noqa: S608
    with busy_if_locked():
        return bool(await db_session.raw.fetchval(insert, *values.values()))


async def update_head(db_session: DbSession, head: Head) -> None:
    """Write the head and the line's revision. Raises LookupError if the line is not locked."""
    await db_session.raw.execute(
        WRITE_HEAD,
        head.chat_key,
        head.line_id,
        head.head_seq,
        head.anchor_seq,
        head.history_messages,
        head.message_count,
        head.turn_count,
        head.token_count,
        head.memo_count,
        head.memo_number,
        head.awaits_reply,
        head.cut_waits,
        orjson.dumps(head.last_cut).decode() if head.last_cut else None,
        orjson.dumps(head.cursors).decode(),
        head.last_active_at,
        *revision_of(db_session, head.line).take(),
    )


async def update_cache(
    db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str, cached: Mapping[str, Any] | None
) -> None:
    """Store what a layer caches for contexts on the chat's row, if it changed; None removes it."""
    status = await db_session.raw.execute(
        _UPDATE_CACHE, chat_key, line_id, layer, None if cached is None else orjson.dumps(cached).decode()
    )
    if status == "UPDATE 1":
        record(db_session, (chat_key, line_id), layer)


async def find_cache(db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str) -> dict[str, Any]:
    """Return what a layer caches for contexts on the chat's row; empty if there is nothing."""
    stored = await db_session.raw.fetchval(
        "SELECT (context_cache -> $3::text)::text FROM chats WHERE chat_key = $1 AND line_id = $2",
        chat_key,
        line_id,
        layer,
    )
    return orjson.loads(stored) if stored else {}


async def list_anchors(connection: Connection, lines: Sequence[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], int]:
    """Return the anchors of lines, by the chat's key and the line's id; lines that do not exist are left out."""
    if not lines:
        return {}
    rows = await connection.fetch(_LIST_ANCHORS, [key for key, _ in lines], [line_id for _, line_id in lines])
    return {(row["chat_key"], row["line_id"]): row["anchor_seq"] for row in rows}


async def find_chat(db_session: DbSession, chat_key: UUID) -> ChatLine | None:
    """Return the current line of a chat, or None."""
    return (
        await db_session.execute(select(ChatLine).where(ChatLine.chat_key == chat_key, ChatLine.standing == CURRENT))
    ).scalar_one_or_none()


async def find_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> ChatLine | None:
    """Return a line of a chat, or None; it may be current, abandoned or a checkpoint."""
    return await db_session.get(ChatLine, (chat_key, line_id))


async def list_chats(
    db_session: DbSession, *, tenant: str, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[ChatLine]:
    """Return chats of a tenant by creation, newest first."""
    query = select(ChatLine).where(ChatLine.tenant == tenant, ChatLine.standing == CURRENT)
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
    query = select(ChatLine).where(ChatLine.user_key == user_key, ChatLine.standing == CURRENT)
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
    """Return the keys of all chats of a user."""
    query = select(ChatLine.chat_key).where(ChatLine.user_key == user_key, ChatLine.standing == CURRENT)
    return list((await db_session.execute(query)).scalars())


async def update_line(db_session: DbSession, line: tuple[UUID, UUID], values: Mapping[str, Any]) -> None:
    """Update columns that belong to the line, by their names in the database."""
    if values:
        statement = _CHATS.update().where(_CHATS.c.chat_key == line[0], _CHATS.c.line_id == line[1])
        await db_session.execute(statement.values(values))


async def update_chat(db_session: DbSession, chat_key: UUID, values: Mapping[str, Any]) -> None:
    """Update columns that belong to the chat, by their names in the database, on all of its lines.

    So a line that is switched to or restored later has no old value. The current line must be locked; its revision
    rises before the commit, and this statement raises the revisions of the other lines. Raises ChatBusy, and
    LookupError for a column that does not belong to the chat.
    """
    if not OF_CHAT.issuperset(values):
        raise LookupError(f"not all of these columns belong to the chat: {', '.join(values)}")
    if values:
        with busy_if_locked():
            raised: dict[str, Any] = {name: text(column) for name, column in raise_others(SETTINGS).items()}
            await db_session.execute(_CHATS.update().where(_CHATS.c.chat_key == chat_key).values({**values, **raised}))


def _locked_head(db_session: DbSession, chat_key: UUID, row: asyncpg.Record) -> Head:
    """Return the head of a line that was just locked, and have the transaction raise the line's revision."""
    register(db_session, (chat_key, row["line_id"]), row["revision"])
    return _head(chat_key, row)


def _head(chat_key: UUID, row: asyncpg.Record) -> Head:
    settings = effective_json(row["settings"])
    return Head(
        chat_key=chat_key,
        line_id=row["line_id"],
        tenant=row["tenant"],
        settings=settings,
        filters=filters_of(settings, orjson.loads(row["characters"])),
        last_active_at=row["last_active_at"],
        head_seq=row["head_seq"],
        anchor_seq=row["anchor_seq"],
        history_messages=row["history_messages"],
        message_count=row["message_count"],
        turn_count=row["turn_count"],
        token_count=row["token_count"],
        memo_count=row["memo_count"],
        memo_number=row["memo_number"],
        awaits_reply=row["awaits_reply"],
        cut_waits=row["cut_waits"],
        last_cut=orjson.loads(row["last_cut"]) if row["last_cut"] else None,
        cursors=orjson.loads(row["cursors"]),
        is_current=row["standing"] == CURRENT,
    )
