"""SQL of chats and their lines. What an append and a context run is written out for asyncpg; the rest is SQLAlchemy's.

A statement that waited for a row lock sees only that row anew, everything else as of before the wait.
So a write locks the chat's row in a statement of its own and reads afterwards.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy import select, tuple_, update

from app.chats.eligibility import Filters
from app.chats.head import Head
from app.chats.models import CURRENT, Chat
from app.chats.settings import ChatSettings, effective_json
from app.kit.db import Connection, DbSession

_HEAD_COLUMNS = """line_id, tenant, user_id, settings::text AS settings, characters::text AS characters, head_seq,
    anchor_seq, history_messages, message_count, turn_count, token_count, memo_count, memo_number, awaits_reply,
    cut_waits, last_cut::text AS last_cut, cursors::text AS cursors, last_active_at, standing"""

LOCK_CURRENT = f"SELECT {_HEAD_COLUMNS} FROM chats WHERE chat_key = $1 AND standing = 'current' FOR UPDATE"  # noqa: S608

_READ_LINE = f"SELECT {_HEAD_COLUMNS} FROM chats WHERE chat_key = $1 AND line_id = $2"  # noqa: S608

_LOCK_LINE = f"{_READ_LINE} FOR UPDATE"

WRITE_HEAD = """
    UPDATE chats SET head_seq = $3, anchor_seq = $4, history_messages = $5, message_count = $6, turn_count = $7,
        token_count = $8, memo_count = $9, memo_number = $10, awaits_reply = $11, cut_waits = $12, last_cut = $13,
        cursors = $14, last_active_at = $15
    WHERE chat_key = $1 AND line_id = $2"""

_UPDATE_SHOWN = """
    UPDATE chats SET shown = CASE WHEN $4::jsonb IS NULL THEN shown - $3::text
        ELSE shown || jsonb_build_object($3::text, $4::jsonb) END
    WHERE chat_key = $1 AND line_id = $2 AND shown -> $3::text IS DISTINCT FROM $4::jsonb"""

_SEEN_LINES = 64

# Of every tenant the lines of its oldest rows, so that something is always found; and, so that a line with a
# flood of rows hides no other, a run of lines in the order of their keys, around from one that the caller draws.
# Each is a probe of an index, and of no line more than $2 rows are read: it costs the same behind 100,000 rows.
# The subquery and the range of one tenant are for the planner: a join may begin at the chat and sort all of its
# rows, and an equality lets it walk past those of every other tenant in the index by time alone.
# The tenants in $5 are left out; their lines still take places in the run, as skipping them could cost any number.
_RIPE_LINES = """
    WITH RECURSIVE keys (min_key, max_key) AS (
        VALUES ('00000000-0000-0000-0000-000000000000'::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    ), waiting AS (
        SELECT min(tenant) AS tenant FROM work WHERE failed_at IS NULL
        UNION ALL
        SELECT (SELECT min(w.tenant) FROM work w WHERE w.failed_at IS NULL AND w.tenant > waiting.tenant)
        FROM waiting WHERE waiting.tenant IS NOT NULL
    ), oldest AS (
        SELECT found.* FROM waiting CROSS JOIN LATERAL (
            SELECT w.chat_key, w.line_id
            FROM work w WHERE w.tenant BETWEEN waiting.tenant AND waiting.tenant AND w.failed_at IS NULL
                AND w.run_after <= $1
                AND (w.leased_until IS NULL OR w.leased_until < clock_timestamp())
                AND (SELECT c.standing FROM chats c WHERE c.chat_key = w.chat_key AND c.line_id = w.line_id) = 'current'
            ORDER BY w.tenant, w.run_after LIMIT $2
        ) AS found WHERE waiting.tenant IS NOT NULL AND waiting.tenant <> ALL($5::text[])
    ), around (chat_key, line_id, last_key, seen) AS (
        SELECT first_key, first_line, last_key, 0 FROM keys CROSS JOIN LATERAL (
            VALUES ($3::uuid, max_key, max_key), (min_key, min_key, $3)) AS arc (first_key, first_line, last_key)
        UNION ALL
        SELECT beyond.chat_key, beyond.line_id, around.last_key, around.seen + 1
        FROM around CROSS JOIN LATERAL (
            SELECT w.chat_key, w.line_id FROM work w
            WHERE (w.chat_key, w.line_id) > (around.chat_key, around.line_id) AND w.chat_key <= around.last_key
            ORDER BY w.chat_key, w.line_id LIMIT 1
        ) AS beyond
        WHERE around.seen < $4
    ), lines AS (
        SELECT chat_key, line_id FROM oldest UNION SELECT chat_key, line_id FROM around
    )
    SELECT c.tenant, c.chat_key, c.line_id, c.anchor_seq, ripe.rows
    FROM lines JOIN chats c ON c.chat_key = lines.chat_key AND c.line_id = lines.line_id AND c.standing = 'current'
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS rows, min(run_after) AS since FROM (
            SELECT w.run_after FROM work w
            WHERE w.chat_key = lines.chat_key AND w.line_id = lines.line_id AND w.failed_at IS NULL
                AND w.run_after <= $1 AND (w.leased_until IS NULL OR w.leased_until < clock_timestamp())
            ORDER BY w.layer, w.key LIMIT $2
        ) AS claimable
    ) AS ripe
    WHERE ripe.rows > 0 AND c.tenant <> ALL($5::text[]) ORDER BY ripe.since, c.chat_key"""


_COUNT_WORK = """
    SELECT chat_key, count(*) FILTER (WHERE failed_at IS NULL) AS due, count(failed_at) AS failed
    FROM unnest($1::uuid[], $2::uuid[]) AS asked (chat_key, line_id) JOIN work USING (chat_key, line_id)
    GROUP BY chat_key"""


def filters_of(settings: ChatSettings, characters: Sequence[dict[str, Any]]) -> Filters:
    """What decides on eligibility under these settings and characters."""
    memos = settings.memos
    return Filters(
        include_user=memos.include_user,
        include_system=memos.include_system,
        include_narrator=memos.include_narrator,
        min_tokens=memos.min_tokens,
        disabled=tuple(character["name"] for character in characters if character.get("disabled")),
    )


async def lock_current(db_session: DbSession, chat_key: UUID) -> tuple[Head, str | None] | None:
    """Lock the chat's current line and read its head and user; None if there is no such chat."""
    row = await db_session.raw.fetchrow(LOCK_CURRENT, chat_key)
    return None if row is None else (_head(chat_key, row), row["user_id"])


async def has_current(db_session: DbSession, chat_key: UUID) -> bool:
    """Whether the chat has a current line, as of now."""
    return bool(
        await db_session.raw.fetchval(
            "SELECT EXISTS (SELECT FROM chats WHERE chat_key = $1 AND standing = 'current')", chat_key
        )
    )


async def lock_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Lock one line of a chat and read its head; None if it is gone."""
    row = await db_session.raw.fetchrow(_LOCK_LINE, chat_key, line_id)
    return None if row is None else _head(chat_key, row)


async def read_head(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Head | None:
    """Read the head of one line, which may be another a moment later; None if the line is gone."""
    row = await db_session.raw.fetchrow(_READ_LINE, chat_key, line_id)
    return None if row is None else _head(chat_key, row)


async def insert_chat(db_session: DbSession, chat: Chat) -> bool:
    """Create the chat's first line; False if somebody else just has."""
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
    made = await db_session.raw.fetchval(
        f"INSERT INTO chats ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING RETURNING true",  # noqa: S608
        *values.values(),
    )
    return bool(made)


async def update_head(db_session: DbSession, head: Head) -> None:
    """Write the head back."""
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
    )


async def update_shown(
    db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str, shown: Mapping[str, Any] | None
) -> None:
    """Write what a layer puts into contexts on the chat's row, unless it stands there already; None is nothing."""
    await db_session.raw.execute(
        _UPDATE_SHOWN, chat_key, line_id, layer, None if shown is None else orjson.dumps(shown).decode()
    )


async def find_shown(db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str) -> dict[str, Any]:
    """What a layer puts into contexts, as the chat's row holds it; nothing of a line that is gone."""
    stored = await db_session.raw.fetchval(
        "SELECT (shown -> $3::text)::text FROM chats WHERE chat_key = $1 AND line_id = $2", chat_key, line_id, layer
    )
    return orjson.loads(stored) if stored else {}


async def list_ripe_lines(
    connection: Connection, *, now: datetime, rows: int, from_key: UUID, without: Sequence[str] = ()
) -> list[asyncpg.Record]:
    """Current lines with ripe work, oldest first, and how many rows each has, counted up to `rows`.

    Of every tenant those of its `rows` oldest rows, and of all the next 64 from `from_key` on, around the end;
    of the tenants `without` none.
    """
    return await connection.fetch(_RIPE_LINES, now, rows, from_key, _SEEN_LINES, without)


async def find_chat(db_session: DbSession, chat_key: UUID) -> Chat | None:
    """The current line of a chat."""
    return (
        await db_session.execute(select(Chat).where(Chat.chat_key == chat_key, Chat.standing == CURRENT))
    ).scalar_one_or_none()


async def find_line(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Chat | None:
    """A line of a chat, whatever its standing."""
    return await db_session.get(Chat, (chat_key, line_id))


async def list_chats(
    db_session: DbSession, *, tenant: str, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[Chat]:
    """Chats of a tenant by creation, newest first."""
    query = select(Chat).where(Chat.tenant == tenant, Chat.standing == CURRENT)
    if before:
        query = query.where(tuple_(Chat.created_at, Chat.chat_key) < before)
    return (
        (await db_session.execute(query.order_by(Chat.created_at.desc(), Chat.chat_key.desc()).limit(limit)))
        .scalars()
        .all()
    )


async def list_user_chats(
    db_session: DbSession, *, user_key: UUID, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[Chat]:
    """Chats of a user by last activity, newest first."""
    query = select(Chat).where(Chat.user_key == user_key, Chat.standing == CURRENT)
    if before:
        query = query.where(tuple_(Chat.last_active_at, Chat.chat_key) < before)
    return (
        (await db_session.execute(query.order_by(Chat.last_active_at.desc(), Chat.chat_key.desc()).limit(limit)))
        .scalars()
        .all()
    )


async def count_work(db_session: DbSession, chats: Sequence[Chat]) -> dict[UUID, tuple[int, int]]:
    """How much of each chat is due and how much has failed for good, by chat_key; chats without any are left out."""
    rows = await db_session.raw.fetch(_COUNT_WORK, [chat.chat_key for chat in chats], [chat.line_id for chat in chats])
    return {row["chat_key"]: (row["due"], row["failed"]) for row in rows}


async def lock_all_lines(db_session: DbSession, chat_key: UUID) -> list[str | None]:
    """Lock every line of a chat, whose current one is locked already; returns their users."""
    query = select(Chat.user_id).where(Chat.chat_key == chat_key).order_by(Chat.line_id)
    return list((await db_session.execute(query.with_for_update())).scalars())


async def list_user_chat_keys(db_session: DbSession, user_key: UUID) -> list[UUID]:
    """All chats of a user."""
    query = select(Chat.chat_key).where(Chat.user_key == user_key, Chat.standing == CURRENT)
    return list((await db_session.execute(query)).scalars())


async def update_chat(db_session: DbSession, chat_key: UUID, line_id: UUID, values: dict[str, Any]) -> None:
    """Change what a PUT may change."""
    if values:
        await db_session.execute(
            update(Chat).where(Chat.chat_key == chat_key, Chat.line_id == line_id).values(**values)
        )


async def update_user(db_session: DbSession, chat_key: UUID, user_id: str | None, user_key: UUID | None) -> None:
    """Say whose chat it is, on all of its lines: a line that is switched back to brings no former user with it."""
    await db_session.execute(update(Chat).where(Chat.chat_key == chat_key).values(user_id=user_id, user_key=user_key))


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
