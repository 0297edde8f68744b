"""SQL of lines: lists and deletes them, changes which one is current, and counts the messages of a shortened copy."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, Select, select, tuple_

from app.chats.errors import busy_if_locked
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.revision import LINE, WORK, raise_others, record, register_new, revision_of
from app.kit.db import DbSession, list_tables
from app.lines.line_copy import Line, list_copied
from app.messages.rules import IS_SENT, SPEAKS

LineRow = Row[UUID, str, str | None, UUID | None, int, int, datetime, datetime]
"""The columns that a list needs: line_id, line_status, checkpoint, parent_line_id, head_seq, message_count,
line_created_at, last_active_at. The settings and `context_cache` are a hundred times as wide, so they are not read."""

# A turn is a character's reply right after a message of the user; thoughts and narration may be between the two.
_RECOUNT = f"""
    SELECT count(*)::int AS messages, coalesce(sum(tokens), 0)::int AS tokens,
        count(*) FILTER (WHERE seq >= $3 AND {IS_SENT})::int AS history,
        count(*) FILTER (WHERE speaks AND role = 'assistant' AND former = 'user')::int AS turns,
        coalesce(max(seq) FILTER (WHERE speaks AND role = 'user')
            > coalesce(max(seq) FILTER (WHERE speaks AND role = 'assistant'), 0), false) AS awaits_reply
    FROM (
        SELECT *, lag(role) OVER (PARTITION BY speaks ORDER BY seq) AS former FROM (
            SELECT seq, role, kind, tokens, blank, hidden_by, deleted_at, ({SPEAKS}) AS speaks FROM messages
            WHERE chat_key = $1 AND line_id = $2 AND deleted_at IS NULL
        ) AS remaining
    ) AS spoken"""  # noqa: S608 - constants only

_ABANDON = """
    UPDATE chats SET line_status = 'abandoned', replaced_at = CASE WHEN replaceable THEN $7::timestamptz END,
        revision = $3,
        base_revision = CASE WHEN $4 THEN $3 ELSE base_revision END,
        changed = CASE WHEN $5 THEN $6::jsonb ELSE changed || $6::jsonb END
    WHERE chat_key = $1 AND line_id = $2"""

_MAKE_CURRENT = """
    UPDATE chats SET line_status = 'current', replaceable = false, replaced_at = NULL,
        revision = greatest($3, revision + 1),
        base_revision = greatest($3, revision + 1), changed = jsonb_build_object('line', greatest($3, revision + 1))
    WHERE chat_key = $1 AND line_id = $2 RETURNING revision"""

_UPDATE_PARENT = f"""
    UPDATE chats SET parent_line_id = $3, {", ".join(f"{name} = {sql}" for name, sql in raise_others(LINE).items())}
    WHERE chat_key = $1 AND parent_line_id = $2"""  # noqa: S608 - constants only

_COUNT = "SELECT count(*) FROM chats WHERE chat_key = $1 AND (line_status = 'checkpoint') = $2"

_REPLACED = "SELECT line_id FROM chats WHERE chat_key = $1 AND replaced_at IS NOT NULL ORDER BY replaced_at, line_id"

_IS_REPLACEABLE = "SELECT replaceable FROM chats WHERE chat_key = $1 AND line_id = $2"

_LOCK = "SELECT parent_line_id FROM chats WHERE chat_key = $1 AND line_id = $2 FOR UPDATE"

_IS_NOT_DELETED = "SELECT deleted_at IS NULL FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = $3"


async def find_line(db_session: DbSession, line: Line) -> LineRow | None:
    """Return a line of a chat, or None; it may be current, abandoned or a checkpoint."""
    query = _lines(line[0]).where(ChatLine.line_id == line[1])
    return (await db_session.execute(query)).one_or_none()


async def find_checkpoint(db_session: DbSession, chat_key: UUID, name: str) -> LineRow | None:
    """Return the checkpoint with this name, or None."""
    query = _lines(chat_key).where(ChatLine.checkpoint == name)
    return (await db_session.execute(query)).one_or_none()


async def list_lines(
    db_session: DbSession, chat_key: UUID, *, checkpoints: bool, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[LineRow]:
    """Return a chat's checkpoints, or its other lines, by the time they were made, newest first."""
    frozen = ChatLine.checkpoint.is_not(None) if checkpoints else ChatLine.checkpoint.is_(None)
    query = _lines(chat_key).where(frozen)
    if before:
        query = query.where(tuple_(ChatLine.line_created_at, ChatLine.line_id) < before)
    ordered = query.order_by(ChatLine.line_created_at.desc(), ChatLine.line_id.desc()).limit(limit)
    return (await db_session.execute(ordered)).all()


async def abandon(db_session: DbSession, line: Line, *, replaced_at: datetime | None = None) -> None:
    """Mark the current line, which is locked, as abandoned and write its revision; the caller then parks its work.

    `replaced_at` is the current time if a re-import replaces the line, otherwise None.
    """
    record(db_session, line, LINE, WORK)
    await db_session.raw.execute(_ABANDON, *line, *revision_of(db_session, line).take(), replaced_at)


async def make_current(db_session: DbSession, line: Line, revision: int) -> None:
    """Make an abandoned line the current one. Raises ChatBusy.

    The line's new revision is `revision`, or its former revision plus 1 if that is greater.
    """
    with busy_if_locked():
        register_new(db_session, line, await db_session.raw.fetchval(_MAKE_CURRENT, *line, revision))


async def update_parent(db_session: DbSession, chat_key: UUID, former: UUID, parent: UUID | None) -> None:
    """Make `parent` the parent of all lines whose parent is `former`. Raises ChatBusy."""
    with busy_if_locked():
        await db_session.raw.execute(_UPDATE_PARENT, chat_key, former, parent)


async def count_lines(db_session: DbSession, chat_key: UUID, *, checkpoints: bool) -> int:
    """Return how many checkpoints, or how many other lines, a chat has."""
    count: int = await db_session.raw.fetchval(_COUNT, chat_key, checkpoints)
    return count


async def list_replaced(db_session: DbSession, chat_key: UUID) -> list[UUID]:
    """Return the replaceable lines (`ChatLine`) that re-imports replaced, the first replaced one first."""
    return [row["line_id"] for row in await db_session.raw.fetch(_REPLACED, chat_key)]


async def is_replaceable(db_session: DbSession, line: Line) -> bool:
    """Return whether the line is replaceable: after a re-import has replaced it, later re-imports may delete it."""
    return bool(await db_session.raw.fetchval(_IS_REPLACEABLE, *line))


async def lock_to_delete(db_session: DbSession, line: Line) -> UUID | None:
    """Lock a line that is not current, so that no job writes to it, and return its parent. Raises ChatBusy."""
    with busy_if_locked():
        parent: UUID | None = await db_session.raw.fetchval(_LOCK, *line)
    return parent


async def delete_line(db_session: DbSession, line: Line) -> None:
    """Physically delete a line from every table that has lines.

    Rows of the chat that were useful only for this line are deleted, too (`info["kept_if"]` of their tables).
    """
    for table in list_copied():
        key, line_id, *_ = table.primary_key
        await db_session.execute(table.delete().where(key == line[0], line_id == line[1]))
    for table in list_tables():
        if kept_if := table.info.get("kept_if"):
            await db_session.raw.execute(f"DELETE FROM {table.name} WHERE chat_key = $1 AND NOT ({kept_if})", line[0])  # noqa: S608


async def is_not_deleted(db_session: DbSession, line: Line, seq: int) -> bool | None:
    """Return whether the message at a seq is not deleted; None if there is no message at all."""
    found: bool | None = await db_session.raw.fetchval(_IS_NOT_DELETED, *line, seq)
    return found


async def recount(db_session: DbSession, head: Head) -> None:
    """Count the messages, tokens and turns of the line again, and the messages of its history; store them in `head`."""
    (row,) = await db_session.raw.fetch(_RECOUNT, *head.line, head.anchor_seq)
    head.message_count = row["messages"]
    head.token_count = row["tokens"]
    head.history_messages = row["history"]
    head.turn_count = row["turns"]
    head.awaits_reply = row["awaits_reply"]


def _lines(chat_key: UUID) -> Select[UUID, str, str | None, UUID | None, int, int, datetime, datetime]:
    return select(
        ChatLine.line_id,
        ChatLine.line_status,
        ChatLine.checkpoint,
        ChatLine.parent_line_id,
        ChatLine.head_seq,
        ChatLine.message_count,
        ChatLine.line_created_at,
        ChatLine.last_active_at,
    ).where(ChatLine.chat_key == chat_key)
