"""Lock, read and write the head of a line, and the data that layers cache on its row. The SQL is for asyncpg.

A statement that waited for a row lock sees the current version of that row, but all else as it was before the wait.
So a write locks the row in a separate statement and reads afterwards.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.chats.characters import Characters, find_sole, list_disabled, map_renamed
from app.chats.eligibility import Filters
from app.chats.errors import busy_if_locked
from app.chats.head import Head
from app.chats.models import CURRENT
from app.chats.revision import record, register, revision_of
from app.chats.settings import ChatSettings, effective_json
from app.kit.db import Connection, DbSession

_HEAD_COLUMNS = """line_id, tenant, user_id, settings::text AS settings, characters::text AS characters, head_seq,
    anchor_seq, history_messages, message_count, turn_count, token_count, memo_count, memo_number, awaits_reply,
    cut_waits, last_cut::text AS last_cut, cursors::text AS cursors, last_active_at, line_status, time_zone, revision"""


LOCK_CURRENT = f"SELECT {_HEAD_COLUMNS} FROM chats WHERE chat_key = $1 AND line_status = 'current' FOR UPDATE"  # noqa: S608


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


async def lock_current(db_session: DbSession, chat_key: UUID) -> Head | None:
    """Lock the chat's current line and return its head; None if there is no such chat. Raises ChatBusy."""
    with busy_if_locked():
        row = await db_session.raw.fetchrow(LOCK_CURRENT, chat_key)
    return None if row is None else _locked_head(db_session, chat_key, row)


async def lock_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Lock a line of a chat and return its head; None if the line does not exist. Raises ChatBusy."""
    with busy_if_locked():
        row = await db_session.raw.fetchrow(_LOCK_LINE, chat_key, line_id)
    return None if row is None else _locked_head(db_session, chat_key, row)


async def read_head(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Return the head of a line without locking it, so it can be outdated; None if the line does not exist."""
    row = await db_session.raw.fetchrow(_READ_LINE, chat_key, line_id)
    return None if row is None else _head(chat_key, row)


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
    """Store what a layer caches for contexts on the line's row, if it changed; None removes it."""
    status = await db_session.raw.execute(
        _UPDATE_CACHE, chat_key, line_id, layer, None if cached is None else orjson.dumps(cached).decode()
    )
    if status == "UPDATE 1":
        record(db_session, (chat_key, line_id), layer)


async def find_cache(db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str) -> dict[str, Any]:
    """Return what a layer caches for contexts on the line's row; empty if there is nothing."""
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


def _locked_head(db_session: DbSession, chat_key: UUID, row: asyncpg.Record) -> Head:
    """Return the head of a line that was just locked, and register the line, so that its revision is increased."""
    register(db_session, (chat_key, row["line_id"]), row["revision"])
    return _head(chat_key, row)


def _head(chat_key: UUID, row: asyncpg.Record) -> Head:
    settings = effective_json(row["settings"])
    characters = orjson.loads(row["characters"])
    return Head(
        chat_key=chat_key,
        line_id=row["line_id"],
        tenant=row["tenant"],
        settings=settings,
        filters=filters_of(settings, characters),
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
        is_current=row["line_status"] == CURRENT,
        user_id=row["user_id"],
        sole_character=find_sole(characters),
        time_zone=row["time_zone"],
        renamed=map_renamed(characters),
    )
