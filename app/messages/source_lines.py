"""Reads the extra data of imported files page by page: parts of their lines for which the service has no fields."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from app.kit.db import DbSession
from app.kit.paging import MAX_PAGE_BYTES, count_fitting

_AFTER = "chat_key = $1 AND line_id = $2 AND (seq, number) > ($3, $4)"

# PostgreSQL stores a long text outside the row, and knows its length without reading it.
_SIZES = f"""
    SELECT octet_length(source) AS bytes FROM source_lines WHERE {_AFTER} ORDER BY seq, number LIMIT $5"""  # noqa: S608

_LIST = f"SELECT seq, number, source FROM source_lines WHERE {_AFTER} ORDER BY seq, number LIMIT $5"  # noqa: S608


async def list_sources(
    db_session: DbSession, chat_key: UUID, line_id: UUID, after: tuple[int, int], limit: int
) -> Sequence[asyncpg.Record]:
    """Return the rows after (seq, number) as (seq, number, source), in this order.

    The result has at most `limit` rows and at most MAX_PAGE_BYTES of sources, but at least one row if there is any.
    """
    place = (chat_key, line_id, *after)
    sizes = [row["bytes"] for row in await db_session.raw.fetch(_SIZES, *place, limit)]
    return await db_session.raw.fetch(_LIST, *place, count_fitting(sizes, MAX_PAGE_BYTES)) if sizes else []
