"""SQL of bindings (`models.py`): for each tool call that wrote something, which reply it belongs to.

A binding is open while that reply is not stored yet.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
from sqlalchemy import insert, select

from app.bindings.models import Binding
from app.bindings.rule import HASH_BYTES, TEXT_HASH, LogMessage, Open, Placement, find_turn_seq
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages.rules import IS_NOT_DELETED, IS_NOT_HIDDEN_BY_USER, qualify

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

_MAY_MATCH = qualify(f"{IS_NOT_DELETED} AND {IS_NOT_HIDDEN_BY_USER}", "m")
"""Whether the message `m` is neither deleted nor hidden by a person."""

_MATCHES = f"{_MAY_MATCH} AND {TEXT_HASH} = b.text_hash"
"""Whether the reply `m` has the text of the binding `b`. A reply that a person hid does not match."""

_SPOKEN = f"m.seq, m.message_id, m.role, m.name, m.kind, m.tool_calls IS NOT NULL AS tool_calls, {TEXT_HASH}, m.sent_at"

_NEWEST = f"""
    SELECT {_SPOKEN} FROM messages m
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.kind IS NULL AND {_MAY_MATCH}
    ORDER BY m.seq DESC LIMIT 1"""  # noqa: S608 - constants only

_AT = f"""
    SELECT {_SPOKEN} FROM messages m
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq = ANY($3) ORDER BY m.seq"""  # noqa: S608

_NAMED = f"""
    SELECT {_SPOKEN}, m.deleted_at IS NOT NULL, {qualify(IS_NOT_HIDDEN_BY_USER, "m")} FROM messages m
    WHERE m.chat_key = $1 AND m.line_id = $2 AND m.message_id = $3"""  # noqa: S608

_KNOWN = """
    SELECT binding_id FROM bindings
    WHERE chat_key = $1 AND line_id = $2 AND at_seq = $3 AND tool = $4 AND character = $5 AND identity = $6
        AND asked_id IS NOT DISTINCT FROM $7 AND asked_hash IS NOT DISTINCT FROM $8
        AND message_id IS NOT DISTINCT FROM $9 AND text_hash IS NOT DISTINCT FROM $10 AND next_swipe = $11
        AND created_at >= $12 AND (matches OR is_open OR $13)
    ORDER BY created_at DESC LIMIT 1"""

# The message `m` is the one at `at_seq`. For a call that awaits the next swipe of a message, `m` is that message.
_OPEN = f"""
    SELECT b.binding_id, b.layer, b.character, b.message_id, b.next_swipe, b.awaits_user, b.at_seq, b.asked_id,
        {_SPOKEN}
    FROM bindings b LEFT JOIN LATERAL (
        SELECT * FROM messages
        WHERE chat_key = $1 AND line_id = $2 AND seq = CASE WHEN b.next_swipe THEN (
            SELECT seq FROM messages WHERE chat_key = $1 AND line_id = $2 AND message_id = b.message_id
        ) ELSE b.at_seq END {ONE_LOOKUP_EACH}) AS m ON true
    WHERE b.chat_key = $1 AND b.line_id = $2 AND b.is_open ORDER BY b.created_at, b.binding_id"""  # noqa: S608

_BIND = f"""
    UPDATE bindings b SET message_id = m.message_id, at_seq = m.seq, is_open = false,
        text_hash = substr(sha256(convert_to(coalesce(n.content, m.content), 'UTF8')), 1, {HASH_BYTES}),
        matches = {_MAY_MATCH} AND coalesce(n.content = m.content, true)
    FROM unnest($3::uuid[], $4::text[], $5::text[]) AS n (binding_id, message_id, content), messages m
    WHERE b.chat_key = $1 AND b.line_id = $2 AND b.binding_id = n.binding_id
        AND m.chat_key = $1 AND m.line_id = $2 AND m.message_id = n.message_id
    RETURNING b.layer, b.binding_id, b.at_seq, m.sent_at, b.matches"""  # noqa: S608

_AWAIT_REPLY = """
    UPDATE bindings SET awaits_user = false
    WHERE chat_key = $1 AND line_id = $2 AND binding_id = ANY($3) AND awaits_user"""

_DROP = "DELETE FROM bindings WHERE chat_key = $1 AND line_id = $2 AND binding_id = ANY($3)"

_RECHECK = f"""
    UPDATE bindings t SET matches = n.matches FROM (
        SELECT b.binding_id, {_MATCHES} AS matches FROM bindings b CROSS JOIN LATERAL (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = b.at_seq {ONE_LOOKUP_EACH}) AS m
        WHERE b.chat_key = $1 AND b.line_id = $2 AND b.at_seq = ANY($3) AND b.text_hash IS NOT NULL
    ) AS n
    WHERE t.chat_key = $1 AND t.line_id = $2 AND t.binding_id = n.binding_id AND t.matches <> n.matches
    RETURNING t.layer, t.binding_id, t.matches"""  # noqa: S608

_TRUNCATE = "DELETE FROM bindings WHERE chat_key = $1 AND line_id = $2 AND at_seq >= $3"

_RENAME = "UPDATE bindings SET character = $4 WHERE chat_key = $1 AND line_id = $2 AND character = $3"

_COUNT_OPEN = "SELECT count(*)::int FROM bindings WHERE chat_key = $1 AND line_id = $2 AND is_open"

_COPIED = "layer, tool, character, identity, asked_id, asked_hash, message_id, next_swipe, awaits_user"
_COPIED_OF_B = ", ".join(f"b.{name}" for name in _COPIED.split(", "))

_COPY_BOUND = f"""
    INSERT INTO bindings (chat_key, line_id, binding_id, {_COPIED}, at_seq, text_hash, matches, created_at)
    SELECT $1, $2, b.binding_id, {_COPIED_OF_B}, m.seq, b.text_hash, {_MATCHES}, b.created_at
    FROM bindings b CROSS JOIN LATERAL (
        SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND message_id = b.message_id
        {ONE_LOOKUP_EACH}) AS m
    WHERE b.chat_key = $1 AND b.line_id = $3 AND b.at_seq > $4 AND b.text_hash IS NOT NULL"""  # noqa: S608

_COPY_OPEN = f"""
    INSERT INTO bindings (chat_key, line_id, binding_id, {_COPIED}, at_seq, is_open, created_at)
    SELECT $1, $2, b.binding_id, {_COPIED_OF_B}, n.at_seq, true, b.created_at
    FROM unnest($4::uuid[], $5::int[]) AS n (binding_id, at_seq)
    JOIN bindings b ON b.chat_key = $1 AND b.line_id = $3 AND b.binding_id = n.binding_id
    WHERE (b.message_id IS NOT NULL AND NOT b.next_swipe) OR EXISTS (
        SELECT FROM messages m WHERE m.chat_key = $1 AND m.line_id = $2 AND {qualify(IS_NOT_DELETED, "m")}
            AND m.message_id = coalesce(b.message_id, b.asked_id))"""  # noqa: S608

_PLACES = """
    SELECT binding_id, message_id, at_seq, matches FROM bindings
    WHERE chat_key = $1 AND line_id = $2 AND binding_id = ANY($3)"""


class Named(NamedTuple):
    """A message that a call names; `in_sight` is false if a person hid it."""

    message: LogMessage
    deleted: bool
    in_sight: bool


class Position(NamedTuple):
    """The position of a binding on a line.

    Attributes:
        message_id: The id of the reply; for an open call, as in `Binding`.
        at_seq: The reply's seq; for an open call, as in `Binding`.
        matches: Whether the reply has the bound text now.

    """

    message_id: str | None
    at_seq: int
    matches: bool


async def find_newest(db_session: DbSession, line: Line) -> LogMessage | None:
    """Return the newest message; None if there is none. Deleted ones, thoughts and those a person hid do not count."""
    row = await db_session.raw.fetchrow(_NEWEST, *line)
    return LogMessage(*row) if row else None


async def list_at(db_session: DbSession, line: Line, seqs: Sequence[int]) -> list[LogMessage]:
    """Return the messages at `seqs`, in order."""
    return [LogMessage(*row) for row in await db_session.raw.fetch(_AT, *line, list(seqs))]


async def find_named(db_session: DbSession, line: Line, message_id: str) -> Named | None:
    """Return the message with this id, even if it is deleted; None if the line has none."""
    row = await db_session.raw.fetchrow(_NAMED, *line, message_id)
    return Named(LogMessage(*list(row)[:-2]), *list(row)[-2:]) if row else None


async def find_known(
    db_session: DbSession,
    line: Line,
    placement: Placement,
    newest: LogMessage | None,
    call: tuple[str, str, bytes],
    *,
    since: datetime,
    in_sight: bool,
) -> UUID | None:
    """Return the id of the binding that an equal call made at or after `since`, or None.

    `newest` is the newest message, and `call` is (tool, character, identity). A binding whose reply was deleted, was
    hidden by a person or has another text is not returned: the same call is then a new one. There is one exception: if
    the call names a reply that a person hid (not `in_sight`), its own `matches` would be false. Then the `matches` of
    the equal call does not count.
    """
    found: UUID | None = await db_session.raw.fetchval(
        _KNOWN,
        *line,
        placement.at_seq,
        *call,
        newest.message_id if newest else None,
        newest.text_hash if newest else None,
        placement.message_id,
        placement.text_hash,
        placement.next_swipe,
        since,
        not in_sight,
    )
    return found


async def insert_binding(db_session: DbSession, line: Line, values: Mapping[str, Any]) -> None:
    """Insert a binding."""
    await db_session.execute(insert(Binding).values(chat_key=line[0], line_id=line[1], **values))


async def list_open(db_session: DbSession, line: Line) -> list[Open]:
    """Return the open bindings of a line, in the order of their calls."""
    found = []
    for row in await db_session.raw.fetch(_OPEN, *line):
        of_binding, of_message = list(row)[:8], list(row)[8:]
        message = LogMessage(*of_message) if row["seq"] is not None else None
        turn_seq = find_turn_seq(message, message if row["next_swipe"] else None)
        found.append(Open(*(*of_binding, turn_seq)))
    return found


async def bind(
    db_session: DbSession, line: Line, found: Sequence[tuple[UUID, str, str | None]]
) -> list[asyncpg.Record]:
    """Bind open bindings to texts of messages; `found` are (binding_id, message_id, text).

    A text of None is the selected text of the message. Return (layer, binding_id, at_seq, sent_at, matches) of each.
    """
    return await db_session.raw.fetch(_BIND, *line, *zip(*found, strict=True)) if found else []


async def await_reply(db_session: DbSession, line: Line, binding_ids: Sequence[UUID]) -> None:
    """Store that the user's message has been appended, and that only the reply to it is still awaited."""
    await db_session.raw.execute(_AWAIT_REPLY, *line, list(binding_ids))


async def drop(db_session: DbSession, line: Line, binding_ids: Sequence[UUID]) -> None:
    """Delete bindings."""
    await db_session.raw.execute(_DROP, *line, list(binding_ids))


async def recheck(db_session: DbSession, line: Line, seqs: Sequence[int]) -> list[asyncpg.Record]:
    """Update `matches` of the bindings to messages at `seqs`; return (layer, binding_id, matches) of changed ones."""
    return await db_session.raw.fetch(_RECHECK, *line, list(seqs))


async def truncate(db_session: DbSession, line: Line, from_seq: int) -> None:
    """Delete the bindings from `from_seq` on."""
    await db_session.raw.execute(_TRUNCATE, *line, from_seq)


async def rename_character(db_session: DbSession, line: Line, former: str, name: str) -> None:
    """Give the bindings of a character its new name."""
    await db_session.raw.execute(_RENAME, *line, former, name)


async def count_open(db_session: DbSession, line: Line) -> int:
    """Return the number of open bindings."""
    count: int = await db_session.raw.fetchval(_COUNT_OPEN, *line)
    return count


async def copy_bound(db_session: DbSession, line: Line, from_line_id: UUID, after_seq: int) -> None:
    """Copy those bindings of another line that are bound to a reply after `after_seq`, if this line has the reply."""
    await db_session.raw.execute(_COPY_BOUND, *line, from_line_id, after_seq)


async def copy_open(db_session: DbSession, line: Line, from_line_id: UUID, moved: Sequence[tuple[UUID, int]]) -> None:
    """Copy open bindings of another line; `moved` are (binding_id, at_seq on this line).

    A binding that waits for the next alternative of a message is left out if this line lacks that message. A binding
    that names no message is left out if this line lacks the message that was the newest when the tool was called.
    """
    if moved:
        await db_session.raw.execute(_COPY_OPEN, *line, from_line_id, *zip(*moved, strict=True))


async def list_positions(db_session: DbSession, line: Line, binding_ids: Sequence[UUID]) -> dict[UUID, Position]:
    """Return the positions of bindings on the line, by id; bindings that do not exist are left out."""
    rows = await db_session.raw.fetch(_PLACES, *line, list(binding_ids))
    return {row["binding_id"]: Position(row["message_id"], row["at_seq"], row["matches"]) for row in rows}


async def list_bindings(db_session: DbSession, line: Line, *, after: UUID | None, limit: int) -> Sequence[Binding]:
    """Return bindings in the order of their ids, which is the order of the calls."""
    query = select(Binding).where(Binding.chat_key == line[0], Binding.line_id == line[1])
    if after is not None:
        query = query.where(Binding.binding_id > after)
    ordered = query.order_by(Binding.binding_id).limit(limit)
    return (await db_session.execute(ordered.execution_options(populate_existing=True))).scalars().all()
