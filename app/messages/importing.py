"""Appends the messages of a file to a new chat, and stores the extra data of the file.

Extra data is the parts of a file's lines for which the service has no fields. An export in the same format contains it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from app.chats.errors import MessageIdTaken
from app.chats.events import count_appended
from app.chats.head import Head, NewMessage
from app.chats.revision import record_append
from app.kit.db import DbSession, defer
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages import queries as message_queries

_SET_MARKS = f"""
    UPDATE messages m SET excluded = n.excluded, pinned = n.pinned, hidden_by = n.hidden_by,
        visibility_pinned = n.visibility_pinned
    FROM (
        SELECT g.*, here.row_ref FROM unnest($3::int[], $4::bool[], $5::bool[], $6::text[], $7::bool[])
            AS g (seq, excluded, pinned, hidden_by, visibility_pinned)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = g.seq
            {ONE_LOOKUP_EACH}) AS here
    ) AS n WHERE m.ctid = n.row_ref"""  # noqa: S608 - constants only

_ADD_SOURCES = """
    INSERT INTO source_lines (chat_key, line_id, seq, number, source)
    SELECT $1, $2, n.* FROM unnest($3::int[], $4::int[], $5::text[]) AS n (seq, number, source)"""


class Marked(NamedTuple):
    """A message to append, with marks that `NewMessage` lacks; `excluded` and `hidden_by` are taken from `message`."""

    message: NewMessage
    pinned: bool = False
    visibility_pinned: bool = False


class SourceRow(NamedTuple):
    """The extra data of a line of a file, as JSON.

    `number` is 0 for the line of the message at `seq`, and 1, 2, … for the lines between this message and the next. The
    header has the seq 0 and the number 0. Lines before the first message have the seq 0 and the numbers 1, 2, ….
    """

    seq: int
    number: int
    source: str


async def append_marked(db_session: DbSession, head: Head, given: Sequence[Marked], *, now: datetime) -> list[int]:
    """Append messages to a new line, whose row the caller has locked, and return their seqs.

    The texts stay as they are given. Raises MessageIdTaken.
    """
    messages = [head.with_current_name(one.message) for one in given]
    rows = {row["message_id"]: row for row in await message_queries.insert_messages(db_session, head, messages)}
    if taken := [one.message_id for one in messages if rows[one.message_id]["same"] is not None]:
        raise MessageIdTaken(f"The id {taken[0]!r} is given twice.")
    fresh = [message._replace(seq=rows[message.message_id]["seq"]) for message in messages]
    await message_queries.insert_given_swipes(db_session, head, fresh)
    marks = [
        (message.seq, message.excluded, one.pinned, message.hidden_by, one.visibility_pinned)
        for message, one in zip(fresh, given, strict=True)
        if message.excluded or message.hidden_by or one.pinned or one.visibility_pinned
    ]
    if marks:
        await db_session.raw.execute(_SET_MARKS, *head.line, *zip(*marks, strict=True))
    record_append(db_session, head.line)
    defer(db_session, count_appended(head, fresh, now=now, settle_s=db_session.settle_s, created=True))
    await db_session.run_deferred()
    return [message.seq for message in fresh]


async def add_sources(db_session: DbSession, head: Head, rows: Sequence[SourceRow]) -> None:
    """Store the extra data of lines of a file."""
    if rows:
        await db_session.raw.execute(_ADD_SOURCES, *head.line, *zip(*rows, strict=True))
