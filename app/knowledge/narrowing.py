"""Separates what is known in the chat itself from what is known in wider scopes, for callers who see only the chat.

Such a caller must not see what is known in the scope of the user or the tenant, even if it was learnt from this chat.
"""

from collections.abc import Sequence
from uuid import UUID

from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE

_WIDE_CALLS = """
    SELECT teaching_id FROM teachings
    WHERE chat_key = $1 AND line_id = $2 AND teaching_id = ANY ($3) AND wide_key IS NOT NULL"""

_OWN = f"""
    SELECT id FROM unnest($2::text[]) AS id WHERE EXISTS (
        SELECT FROM statements s
        WHERE s.owner_key = $1 AND s.line_id = '{CHAT_WIDE}' AND (s.statement_id::text = id OR s.key = id))"""  # noqa: S608


async def list_wide_calls(db_session: DbSession, line: tuple[UUID, UUID], call_ids: Sequence[UUID]) -> set[UUID]:
    """Return which tool calls of a line (the chat's key, the line's id) wrote into a wider scope."""
    return {row["teaching_id"] for row in await db_session.raw.fetch(_WIDE_CALLS, *line, list(call_ids))}


async def list_own_ids(db_session: DbSession, chat_key: UUID, ids: Sequence[str]) -> set[str]:
    """Return which of `ids` are ids of facts or memories of the chat itself."""
    return {row["id"] for row in await db_session.raw.fetch(_OWN, chat_key, list(ids))} if ids else set()
