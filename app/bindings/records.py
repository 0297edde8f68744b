"""The records of a chat's tool calls: each with its arguments, its outcome and the answer.

A record is not copied when a line is copied, because the call was made once, on one line. If the call wrote something,
there is also a binding with the same id, and the binding is copied with the line.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from app.bindings.models import ToolCallRecord
from app.chats.chat_lock import ChatRef
from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE

KEPT_CALLS = 1_000
"""A chat keeps the records of this many calls, the newest."""

MAX_ARGUMENTS_CHARS = 10_000
"""Longer arguments are not recorded. Tools usually refuse such arguments."""

MAX_ANSWER_CHARS = 500
"""The number of characters of an answer that are recorded, from its beginning."""

_COLUMNS = ", ".join(column.name for column in ToolCallRecord.__table__.columns)

# A call that names no character is a call of the chat's only active character. The lock keeps the chat from being
# erased before the record is committed. As a side effect, an append waits for that commit. If there is no chat that
# the caller may see, nothing is inserted.
_INSERT = f"""
    INSERT INTO tool_calls ({_COLUMNS})
    SELECT c.chat_key, '{CHAT_WIDE}', $3, c.line_id, $4,
        coalesce($5, (
            SELECT min(p.value ->> 'name') FROM jsonb_array_elements(c.characters) AS p
            WHERE coalesce(p.value ->> 'disabled', 'false') <> 'true' HAVING count(*) = 1), ''),
        $6, $7, $8, c.head_seq, $9, $10
    FROM chats c
    WHERE c.chat_key = $1 AND c.line_status = 'current' AND ($2::text IS NULL OR c.user_id = $2)
    FOR KEY SHARE OF c"""  # noqa: S608 - constants only

_PRUNE = f"""
    DELETE FROM tool_calls WHERE owner_key = $1 AND line_id = '{CHAT_WIDE}' AND call_id <= (
        SELECT call_id FROM tool_calls WHERE owner_key = $1 AND line_id = '{CHAT_WIDE}'
        ORDER BY call_id DESC OFFSET {KEPT_CALLS} LIMIT 1)"""  # noqa: S608

_LIST = f"""
    SELECT call_id, tool, character, arguments, outcome, answer, at_seq, only_chat, created_at FROM tool_calls
    WHERE owner_key = $1 AND line_id = '{CHAT_WIDE}' AND made_on = $2 AND ($3::uuid IS NULL OR call_id > $3)
    ORDER BY call_id LIMIT $4"""  # noqa: S608

_RENAME = f"""
    UPDATE tool_calls SET character = $4
    WHERE owner_key = $1 AND line_id = '{CHAT_WIDE}' AND made_on = $2 AND character = $3"""  # noqa: S608


class Recorded(NamedTuple):
    """A recorded call.

    Attributes:
        call_id: Its id; if it wrote something, also the id of what it wrote.
        tool: The name of the tool, as the model gave it.
        character: The character that called it; empty if that is unknown.
        arguments: The arguments as JSON; None if they were too long or not JSON.
        outcome: Whether it wrote something, only read, or was refused.
        answer: The beginning of the answer to the model.
        at_seq: The newest seq when the tool was called.
        only_chat: Whether the caller saw only what is known in the chat itself.
        created_at: When the tool was called.

    """

    call_id: UUID
    tool: str
    character: str
    arguments: str | None
    outcome: Literal["wrote", "read", "refused"]
    answer: str
    at_seq: int
    only_chat: bool
    created_at: datetime


async def insert_record(db_session: DbSession, ref: ChatRef, record: Recorded) -> None:
    """Record a call of a tool on the chat's current line, if the chat exists; `at_seq` is taken from the line."""
    arguments = record.arguments if record.arguments and len(record.arguments) <= MAX_ARGUMENTS_CHARS else None
    await db_session.raw.execute(
        _INSERT,
        ref.key,
        ref.only_user,
        record.call_id,
        record.tool,
        record.character or None,
        arguments,
        record.outcome,
        record.answer[:MAX_ANSWER_CHARS],
        record.only_chat,
        record.created_at,
    )
    await db_session.raw.execute(_PRUNE, ref.key)


async def list_records(
    db_session: DbSession, line: tuple[UUID, UUID], *, after: UUID | None, limit: int
) -> Sequence[Recorded]:
    """Return records of the calls that were made on a line (its chat's key and its id), in the order of the calls."""
    return [Recorded(*row) for row in await db_session.raw.fetch(_LIST, *line, after, limit)]


async def rename_character(db_session: DbSession, line: tuple[UUID, UUID], former: str, name: str) -> None:
    """Give the records of a character on a line its new name."""
    await db_session.raw.execute(_RENAME, *line, former, name)
