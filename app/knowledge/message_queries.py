"""SQL that reads teachings (what was learnt from which message) with their messages; `queries.py` has the other SQL.

Teachings *by messages* are those that the service learnt from the text of a message. The others are by tool calls.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from app.bindings.rule import TEXT_HASH
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.scopes import ScopeKey
from app.messages.rules import IS_NOT_DELETED, IS_NOT_HIDDEN_BY_USER, qualify

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

_MATCHES = f"""{qualify(f"{IS_NOT_DELETED} AND NOT excluded AND {IS_NOT_HIDDEN_BY_USER}", "m")}
    AND {TEXT_HASH} = t.text_hash"""
"""Whether the message `m` has the text of the teaching `t`, and is neither deleted, excluded nor hidden by a person."""

_TEACH_BY_MESSAGES = f"""
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, hidden, message_id,
        text_hash, said_at)
    SELECT $1, $2, t.teaching_id, $3, $4, $5, m.seq, NOT ({_MATCHES}), t.message_id, t.text_hash,
        least(m.sent_at, $9::timestamptz)
    FROM unnest($6::uuid[], $7::text[], $8::bytea[]) AS t (teaching_id, message_id, text_hash)
    JOIN messages m ON m.chat_key = $1 AND m.line_id = $2 AND m.message_id = t.message_id
    WHERE NOT EXISTS (
        SELECT FROM teachings k WHERE k.chat_key = $1 AND k.line_id = $2 AND k.statement_id = $4
            AND k.first_seq = m.seq AND k.text_hash = t.text_hash)
    RETURNING hidden"""  # noqa: S608

# A column is selected because asyncpg 0.32 overruns its memory when it reads a row without columns.
_LOCK = "SELECT 1 FROM statements WHERE owner_key = $1 AND line_id = $2 AND statement_id = $3 FOR KEY SHARE"

_RECHECK = f"""
    UPDATE teachings o SET hidden = n.hidden, said_at = n.said_at FROM (
        SELECT t.teaching_id, NOT ({_MATCHES}) AS hidden,
            CASE WHEN t.said_at IS NOT NULL AND m.seq = ANY($4::int[]) THEN least(m.sent_at, $5) ELSE t.said_at
                END AS said_at
        FROM teachings t CROSS JOIN LATERAL (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = t.first_seq {ONE_LOOKUP_EACH}) AS m
        WHERE t.chat_key = $1 AND t.line_id = $2 AND t.first_seq = ANY($3) AND t.text_hash IS NOT NULL
    ) AS n
    WHERE o.chat_key = $1 AND o.line_id = $2 AND o.teaching_id = n.teaching_id
        AND (o.hidden, o.said_at) IS DISTINCT FROM (n.hidden, n.said_at)
    RETURNING o.wide_key"""  # noqa: S608

_MOVE_BY_MESSAGES = f"""
    INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq, hidden, message_id,
        text_hash, said_at)
    SELECT $1, $2, t.teaching_id, t.layer, t.statement_id, t.wide_key, m.seq, NOT ({_MATCHES}), t.message_id,
        t.text_hash, CASE WHEN t.said_at IS NOT NULL THEN least(m.sent_at, $5::timestamptz) END
    FROM teachings t CROSS JOIN LATERAL (
        SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND message_id = t.message_id
        {ONE_LOOKUP_EACH}) AS m
    WHERE t.chat_key = $1 AND t.line_id = $3 AND t.first_seq > $4 AND t.text_hash IS NOT NULL"""  # noqa: S608


_MESSAGES = """
    SELECT t.statement_id, m.message_id FROM teachings t
    JOIN messages m ON m.chat_key = t.chat_key AND m.line_id = t.line_id AND m.seq = t.first_seq
    WHERE t.chat_key = $1 AND t.line_id = $2 AND t.statement_id = ANY($3) AND NOT t.hidden
    ORDER BY t.first_seq"""


async def teach_by_messages(
    db_session: DbSession,
    line: Line,
    layer: str,
    statement_id: UUID,
    wide_key: UUID | None,
    sources: Sequence[tuple[UUID, str, bytes]],
    now: datetime,
) -> list[bool]:
    """Insert a teaching for each source: (teaching_id, message_id, text_hash). Return `hidden` of each inserted one.

    The date of a teaching is the time at which its message was sent, or `now` if `now` is earlier. A source is left out
    if the line does not have the message, or if the message already taught the statement with this text.
    """
    rows = await db_session.raw.fetch(
        _TEACH_BY_MESSAGES, *line, layer, statement_id, wide_key, *zip(*sources, strict=True), now
    )
    return [row["hidden"] for row in rows]


async def lock_statement(db_session: DbSession, scope: ScopeKey, statement_id: UUID) -> bool:
    """Keep a statement from being deleted until the end of the transaction; return whether it still exists."""
    where = (scope.owner_key, scope.line_id, statement_id)
    return await db_session.raw.fetchrow(_LOCK, *where) is not None


async def recheck(
    db_session: DbSession, line: Line, seqs: Sequence[int], *, redated: Collection[int], now: datetime
) -> list[UUID]:
    """Hide or show the teachings by messages at `seqs`, and update the dates of the teachings at `redated`.

    `redated` is a part of `seqs`. No date is after `now`. Rows that are older than the column `said_at` stay without a
    date. Return the `wide_key`s of the changed teachings, without null.
    """
    return _wide(await db_session.raw.fetch(_RECHECK, *line, list(seqs), list(redated), now))


async def move_by_messages(
    db_session: DbSession, line: Line, from_line_id: UUID, after_seq: int, now: datetime
) -> None:
    """Copy teachings by messages from another line: those after `after_seq` whose messages are on this line, too.

    No date is after `now`. Rows that are older than the column `said_at` stay without a date.
    """
    await db_session.raw.execute(_MOVE_BY_MESSAGES, *line, from_line_id, after_seq, now)


async def list_messages(db_session: DbSession, line: Line, statement_ids: Sequence[UUID]) -> dict[UUID, list[str]]:
    """Return the ids of the messages of a line that taught each statement, in story order."""
    found: dict[UUID, list[str]] = {}
    for statement_id, message_id in await db_session.raw.fetch(_MESSAGES, *line, list(statement_ids)):
        found.setdefault(statement_id, []).append(message_id)
    return found


def _wide(rows: Sequence[asyncpg.Record]) -> list[UUID]:
    return [row["wide_key"] for row in rows if row["wide_key"] is not None]
