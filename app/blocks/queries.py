"""SQL of core blocks: the operations on them, and the memories that the block `facts` begins with."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from app.blocks.settings import BlockSettings
from app.kit.db import DbSession
from app.kit.planner import COMPUTED_ONCE
from app.knowledge.important import Important
from app.knowledge.liveness import (
    OWNER_GIVEN,
    OWNERS_OF_CHAT,
    keep_to_chat,
    write_important,
    write_is_live,
    write_json,
    write_log,
)
from app.knowledge.reading import Viewpoint

_LIVE = write_is_live(chat="c.chat_key", line="c.line_id", before="b.seq")
_LIVE_NOW = write_is_live(chat="c.chat_key", line="c.line_id", before="NULL::int")
_ANYWHERE = write_is_live(chat="NULL::uuid", line="NULL::uuid", before="NULL::int")


def _write_setting(name: str) -> str:
    """Return SQL for a setting of blocks on the chat's row `c`. No preset changes the schema's default."""
    default = str(BlockSettings.model_fields[name].default).lower()
    return f"coalesce((c.settings #>> '{{{BlockSettings.section},{name}}}')::boolean, {default})"


_WANTED = f"{_write_setting('enabled')} AND {_write_setting('from_memories')}"

_IMPORTANT_OF_CHAT = f"""
    SELECT n.* FROM chats c CROSS JOIN LATERAL (
        {write_important(OWNERS_OF_CHAT, _LIVE_NOW, wanted=_WANTED, chat="c.chat_key")}) AS n
    WHERE c.chat_key = $1 AND c.line_id = $2"""  # noqa: S608 - constants only
_IMPORTANT_OF_CHAT_ITSELF = keep_to_chat(_IMPORTANT_OF_CHAT)
_IMPORTANT_OF_SCOPE = write_important(OWNER_GIVEN, _ANYWHERE)

_IMPORTANT_JSON = f"""
    SELECT json_agg(json_build_array(i.rank, i.character, i.key, i.statement_id, i.content, i.importance, i.learnt_us))
    FROM ({write_important(OWNERS_OF_CHAT, _LIVE, wanted=_WANTED, chat="c.chat_key")}) AS i"""  # noqa: S608

_LOG_JSON = write_json(write_log(OWNERS_OF_CHAT, _LIVE, "block"))

BLOCKS_OF_LINE = f"""
    SELECT CASE WHEN q.log IS NOT NULL OR q.important IS NOT NULL
        THEN '[' || coalesce(q.log, '[]') || ',' || coalesce(q.important, '[]') || ']' END
    FROM (SELECT ({_LOG_JSON}) AS log, ({_IMPORTANT_JSON})::text AS important {COMPUTED_ONCE}) AS q"""  # noqa: S608
"""A scalar subquery that returns two lists as JSON: the live operations on the blocks, and the most important memories,
of all scopes that the line sees. NULL if both lists are empty."""


async def list_important(db_session: DbSession, view: Viewpoint) -> list[Important]:
    """Return the most important memories of each scope of the view, in no order; none if the settings exclude them."""
    if view.line is not None:
        return await list_important_of_line(db_session, view.line, only_chat=view.only_chat)
    scope = view.scope
    where = (scope.owner_key, scope.line_id, scope.rank, scope.character)
    return _important(await db_session.raw.fetch(_IMPORTANT_OF_SCOPE, *where))


async def list_important_of_line(
    db_session: DbSession, line: tuple[UUID, UUID], *, only_chat: bool = False
) -> list[Important]:
    """Return the most important memories of each scope that a line sees, in no order.

    Those of all characters are included. There are none if the chat's settings exclude them.
    """
    query = _IMPORTANT_OF_CHAT_ITSELF if only_chat else _IMPORTANT_OF_CHAT
    return _important(await db_session.raw.fetch(query, *line))


def _important(rows: Sequence[asyncpg.Record]) -> list[Important]:
    return [Important(*row) for row in rows]
