"""SQL of consolidated ranges, and of ranges with work due."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy.dialects.postgresql import insert

from app.chats.ranges import Range
from app.consolidation.models import Consolidation
from app.kit.db import Connection, DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.kit.work_queue import IS_FREE

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

_FIND = """
    SELECT first_seq, last_seq, filters::text AS filters, source_hash, current_hash, learnt_at FROM consolidations
    WHERE chat_key = $1 AND line_id = $2 AND first_seq = $3"""

# The range that contains each seq. Ranges do not overlap, so it is the last one that begins at or before the seq.
_TOUCHED = """
    SELECT DISTINCT r.first_seq, r.last_seq, r.filters::text AS filters, r.source_hash, r.current_hash
    FROM unnest($3::int[]) AS changed (seq) CROSS JOIN LATERAL (
        SELECT * FROM consolidations WHERE chat_key = $1 AND line_id = $2 AND first_seq <= changed.seq
        ORDER BY first_seq DESC LIMIT 1) AS r
    WHERE r.last_seq >= changed.seq ORDER BY r.first_seq"""

# The ranges that the rules have read. A range without any eligible message has the origin `extractive`, too, although
# neither a model nor the rules have read it. Its `prompt_version` is that of the model's prompt, so it is not found.
_READ_BY_RULE = """
    FROM consolidations
    WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND first_seq <= $4 AND origin = 'extractive'
        AND prompt_version LIKE 'extractive/%'"""

_LIST_READ_BY_RULE = f"SELECT first_seq, last_seq {_READ_BY_RULE} ORDER BY first_seq LIMIT $5"

_COUNT_READ_BY_RULE = f"SELECT count(*)::int, min(first_seq), max(last_seq) {_READ_BY_RULE}"

_ASKED = f"""
    SELECT key, failed_at IS NULL AND (attempts = 0 OR NOT {IS_FREE}) AS is_under_way FROM work
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND payload ? $4
        AND ($5::text[] IS NULL OR key = ANY ($5))"""  # noqa: S608

_UPDATE_HASHES = f"""
    UPDATE consolidations c SET current_hash = n.current_hash FROM (
        SELECT g.current_hash, here.row_ref FROM unnest($3::int[], $4::bytea[]) AS g (first_seq, current_hash)
        CROSS JOIN LATERAL (
            SELECT ctid AS row_ref FROM consolidations
            WHERE chat_key = $1 AND line_id = $2 AND first_seq = g.first_seq {ONE_LOOKUP_EACH}) AS here
    ) AS n WHERE c.ctid = n.row_ref"""  # noqa: S608

_TRUNCATE = """
    DELETE FROM consolidations
    WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND first_seq >= (
        SELECT coalesce(max(first_seq), 0) FROM consolidations
        WHERE chat_key = $1 AND line_id = $2 AND first_seq < $3)
    RETURNING first_seq"""

_DUE = """
    SELECT at_seq AS first_seq, (payload ->> 'last_seq')::int AS last_seq, payload::text AS payload FROM work
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND (payload ->> 'last_seq')::int >= $4 ORDER BY at_seq"""

_FIRST_UNSETTLED = """
    SELECT min(w.at_seq) FROM work w
    LEFT JOIN consolidations r ON r.chat_key = $1 AND r.line_id = $2 AND r.first_seq = w.at_seq
    WHERE w.owner_key = $1 AND w.line_id = $2 AND w.layer = $3 AND w.failed_at IS NULL AND starts_with(w.key, $5)
        AND coalesce(r.last_seq, (w.payload ->> 'last_seq')::int) >= $4"""


async def find(connection: Connection, line: Line, first_seq: int) -> asyncpg.Record | None:
    """Return the consolidated range that begins at a seq, or None."""
    return await connection.fetchrow(_FIND, *line, first_seq)


async def save(db_session: DbSession, line: Line, values: Mapping[str, Any]) -> None:
    """Insert a range, or update its row, except for its ends, `learnt_at` and `filters`."""
    row = {"chat_key": line[0], "line_id": line[1], **values}
    statement = insert(Consolidation).values(row)
    kept = ("chat_key", "line_id", "first_seq", "last_seq", "learnt_at", "filters")
    replaced = {name: statement.excluded[name] for name in row if name not in kept}
    await db_session.execute(statement.on_conflict_do_update(index_elements=kept[:3], set_=replaced))


async def list_touched(db_session: DbSession, line: Line, seqs: Sequence[int]) -> list[asyncpg.Record]:
    """Return the consolidated ranges that contain one of `seqs`, in order."""
    return await db_session.raw.fetch(_TOUCHED, *line, list(seqs))


async def list_read_by_rule(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int, at_most: int
) -> list[Range]:
    """Return the first `at_most` ranges that were read by rules instead of a model, in order.

    Only ranges that overlap with the messages `first_seq` to `last_seq` (both inclusive) are returned. Ranges of which
    no message was eligible (`app/chats/eligibility.py`) are left out: the rules had nothing to read.
    """
    rows = await db_session.raw.fetch(_LIST_READ_BY_RULE, *line, first_seq, last_seq, at_most)
    return [(row["first_seq"], row["last_seq"]) for row in rows]


async def count_read_by_rule(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int
) -> tuple[int, int | None, int | None]:
    """Return how many ranges `list_read_by_rule` finds without a limit, and their first and last seq altogether."""
    row = await db_session.raw.fetchrow(_COUNT_READ_BY_RULE, *line, first_seq, last_seq)
    return tuple(row) if row else (0, None, None)


async def list_asked(
    db_session: DbSession, line: Line, layer: str, field: str, keys: Sequence[str] | None = None
) -> dict[str, bool]:
    """Return the keys of the work items whose payload has the given `field`, and whether each item is under way.

    An item is under way if a worker holds it, or if its first attempt is still to come. An item that waits for a retry
    or has failed is not under way. If `keys` are given, only the items with these keys are returned.
    """
    rows = await db_session.raw.fetch(_ASKED, *line, layer, field, None if keys is None else list(keys))
    return {row["key"]: row["is_under_way"] for row in rows}


async def update_hashes(db_session: DbSession, line: Line, rows: Sequence[tuple[int, bytes]]) -> None:
    """Update the current hashes of ranges: (first_seq, current_hash)."""
    await db_session.raw.execute(_UPDATE_HASHES, *line, *zip(*rows, strict=True))


async def truncate(db_session: DbSession, line: Line, from_seq: int) -> list[int]:
    """Delete the ranges that end at or after a seq, and return where they begin."""
    return [row["first_seq"] for row in await db_session.raw.fetch(_TRUNCATE, *line, from_seq)]


async def list_due(db_session: DbSession, line: Line, layer: str, from_seq: int) -> list[asyncpg.Record]:
    """Return (first_seq, last_seq, payload) of the ranges that end at or after a seq and were never read."""
    return await db_session.raw.fetch(_DUE, *line, layer, from_seq)


async def find_first_unsettled(db_session: DbSession, line: Line, layer: str, prefix: str, from_seq: int) -> int | None:
    """Return the first seq of the first range that ends at or after a seq and has due work, or None.

    The keys of the work begin with `prefix`.
    """
    first: int | None = await db_session.raw.fetchval(_FIRST_UNSETTLED, *line, layer, from_seq, prefix)
    return first
