"""SQL of diaries for messages that change, move or are truncated."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from app.diary.queries import Line
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH

# The periods that the service's entries are about (`changes.py`) do not overlap, so the entries about a message belong
# to the first period that ends at the message or later.
_TOUCHED = """
    SELECT DISTINCT e.entry_id, e.character, e.number, e.at_seq, e.first_seq, e.last_seq, e.filters::text AS filters,
        e.source_hash, e.current_hash, e.origin
    FROM unnest($3::int[]) AS changed (seq) CROSS JOIN LATERAL (
        SELECT min(last_seq) AS last_seq FROM diary_entries
        WHERE chat_key = $1 AND line_id = $2 AND first_seq IS NOT NULL AND last_seq >= changed.seq
    ) AS period JOIN diary_entries e
        ON e.chat_key = $1 AND e.line_id = $2 AND e.first_seq <= changed.seq AND e.last_seq = period.last_seq
    WHERE e.deleted_at IS NULL ORDER BY e.number"""

_UPDATE_HASHES = """
    UPDATE diary_entries e SET current_hash = n.current_hash
    FROM unnest($3::uuid[], $4::bytea[]) AS n (entry_id, current_hash)
    WHERE e.chat_key = $1 AND e.line_id = $2 AND e.entry_id = n.entry_id"""

_SAVED_AT = """
    SELECT entry_id FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND at_seq = ANY($3) AND identity IS NOT NULL"""

_UPDATE_DATES = f"""
    UPDATE diary_entries e SET dated_at = n.dated_at FROM (
        SELECT about.entry_id, max(m.sent_at) AS dated_at
        FROM unnest($3::uuid[], $4::int[]) AS about (entry_id, seq) CROSS JOIN LATERAL (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = about.seq {ONE_LOOKUP_EACH}) AS m
        GROUP BY about.entry_id
    ) AS n
    WHERE e.chat_key = $1 AND e.line_id = $2 AND e.entry_id = n.entry_id AND e.dated_at <> n.dated_at
    RETURNING e.character"""  # noqa: S608

_REACHING = """
    SELECT character, min(number) AS number FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND at_seq >= $3 GROUP BY character"""

_DELETE_UNWRITTEN = """
    DELETE FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND at_seq >= $3
        AND ((origin <> 'person' AND NOT kept) OR deleted_at IS NOT NULL)
    RETURNING entry_id, first_seq"""

# An entry of the service that a person edited loses its range of messages, because the end of the range was cut off.
_MOVE_WRITTEN = """
    UPDATE diary_entries SET at_seq = $3 - 1, first_seq = NULL, last_seq = NULL, filters = NULL,
        source_hash = NULL, current_hash = NULL
    WHERE chat_key = $1 AND line_id = $2 AND at_seq >= $3
    RETURNING entry_id"""

_LIST_WRITING = """
    SELECT key, (payload ->> 'first_seq')::int AS first_seq, (payload ->> 'last_seq')::int AS last_seq,
        (payload ->> 'number')::int AS number
    FROM work
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND starts_with(key, $4)
        AND (payload ->> 'last_seq')::int >= $5"""

_WRITTEN_PERIODS = """
    SELECT DISTINCT last_seq FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND first_seq IS NOT NULL AND last_seq = ANY ($3)"""

_OLDEST_FAILED = """
    SELECT key FROM work
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND starts_with(key, $4) AND failed_at IS NOT NULL
    ORDER BY at_seq DESC, key OFFSET $5"""

# An item that waits for its retry has an error. If an item without an error becomes due $6 seconds or more after
# `first_due_at`, it was scheduled with this wait.
_WAITING = """
    SELECT key FROM work
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = ANY($4) AND error IS NULL
        AND run_after > $5 AND run_after < 'infinity' AND run_after >= first_due_at + make_interval(secs => $6)"""

_WRITTEN_AFTER = """
    SELECT entry_id, at_seq, origin = 'tool' AND NOT kept AS depends FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND at_seq > $3 AND deleted_at IS NULL AND origin <> 'model'
    ORDER BY at_seq, number"""

# An entry of the service that a person edited can already be on the new line: if the messages that it is about begin
# before the lines diverge, the entry was copied with these messages, and then moved to the end of the copy.
_COPY_WRITTEN = f"""
    INSERT INTO diary_entries (chat_key, line_id, entry_id, character, number, at_seq, origin, content, identity, model,
        prompt_version, edited, kept, hidden, dated_at, created_at)
    SELECT $1, $2, e.entry_id, e.character, e.number, n.at_seq,
        e.origin, e.content, e.identity, e.model, e.prompt_version, e.edited, e.kept, n.hidden, e.dated_at, e.created_at
    FROM unnest($4::uuid[], $5::int[], $6::bool[]) AS n (entry_id, at_seq, hidden) CROSS JOIN LATERAL (
        SELECT * FROM diary_entries WHERE chat_key = $1 AND line_id = $3 AND entry_id = n.entry_id
        {ONE_LOOKUP_EACH}) AS e
    ON CONFLICT (chat_key, line_id, entry_id) DO UPDATE SET at_seq = excluded.at_seq
    RETURNING character"""  # noqa: S608

_NAME_ENTRIES = """
    UPDATE diary_entries SET character = $3 WHERE chat_key = $1 AND line_id = $2 AND character = '' RETURNING number"""


_RENAME_ENTRIES = """
    UPDATE diary_entries SET character = $4 WHERE chat_key = $1 AND line_id = $2 AND character = $3
    RETURNING entry_id, number"""

_HAS_DIARY = """
    SELECT EXISTS (SELECT FROM diary_entries WHERE chat_key = $1 AND line_id = $2 AND character = $3)"""

# An attempt that is running has read the former name, so it loses its lease, and it is not counted.
_RENAME_WORK = """
    UPDATE work SET key = n.key, attempts = greatest(attempts - (lease IS NOT NULL)::int, 0),
        lease = NULL, leased_until = NULL
    FROM unnest($4::text[], $5::text[]) AS n (former, key)
    WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND work.key = n.former"""

_DEPENDS = "chat_key = $1 AND line_id = $2 AND origin = 'tool' AND NOT kept"

_DROP_OPEN = f"""
    DELETE FROM diary_entries WHERE {_DEPENDS} AND entry_id = ANY($3)"""  # noqa: S608

_CHARACTERS = """
    SELECT entry_id, character FROM diary_entries WHERE chat_key = $1 AND line_id = $2 AND entry_id = ANY($3)"""

_BIND = """
    UPDATE diary_entries e SET at_seq = n.at_seq, number = n.number, dated_at = n.dated_at,
        hidden = n.hidden AND NOT e.kept
    FROM unnest($3::uuid[], $4::int[], $5::int[], $6::timestamptz[], $7::bool[])
        AS n (entry_id, at_seq, number, dated_at, hidden)
        JOIN diary_entries former ON former.chat_key = $1 AND former.line_id = $2 AND former.entry_id = n.entry_id
    WHERE e.chat_key = $1 AND e.line_id = $2 AND e.entry_id = n.entry_id AND e.origin = 'tool'
    RETURNING e.character, e.number, former.number AS former_number"""

_HIDE = f"""
    UPDATE diary_entries SET hidden = n.hidden FROM unnest($3::uuid[], $4::bool[]) AS n (entry_id, hidden)
    WHERE {_DEPENDS} AND diary_entries.entry_id = n.entry_id
    RETURNING character, number"""  # noqa: S608


class Gone(NamedTuple):
    """The entries that a truncation has deleted or moved.

    Attributes:
        entry_ids: The entries that were deleted or moved.
        first_seqs: The first message of each period that a deleted entry covered.

    """

    entry_ids: Sequence[UUID]
    first_seqs: Sequence[int]


async def list_touched(db_session: DbSession, line: Line, seqs: Sequence[int]) -> list[asyncpg.Record]:
    """Return the entries of the service about any of the messages at `seqs`, in the order of their numbers."""
    return await db_session.raw.fetch(_TOUCHED, *line, list(seqs))


async def update_hashes(db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, bytes]]) -> None:
    """Update the current hashes of entries; `rows` are (entry_id, current_hash)."""
    await db_session.raw.execute(_UPDATE_HASHES, *line, *zip(*rows, strict=True))


async def list_saved(db_session: DbSession, line: Line, seqs: Sequence[int]) -> list[UUID]:
    """Return the ids of the entries at `seqs` that a tool wrote, even if a person edited or deleted them since."""
    return [row["entry_id"] for row in await db_session.raw.fetch(_SAVED_AT, *line, list(seqs))]


async def update_dates(db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, int]]) -> set[str]:
    """Set the date of each entry to the time of its newest message; return the characters whose diaries changed.

    `rows` are (entry_id, seq), one for each message of an entry.
    """
    changed = await db_session.raw.fetch(_UPDATE_DATES, *line, *zip(*rows, strict=True))
    return {row["character"] for row in changed}


async def list_reaching(db_session: DbSession, line: Line, from_seq: int) -> dict[str, int]:
    """Return the number of the first entry from `from_seq` on, by character, for each diary with such an entry."""
    return {row["character"]: row["number"] for row in await db_session.raw.fetch(_REACHING, *line, from_seq)}


async def truncate(db_session: DbSession, line: Line, from_seq: int) -> Gone:
    """Delete the entries from `from_seq` on; those that a person wrote, edited or keeps move to the new head."""
    deleted = await db_session.raw.fetch(_DELETE_UNWRITTEN, *line, from_seq)
    moved = await db_session.raw.fetch(_MOVE_WRITTEN, *line, from_seq)
    return Gone(
        [row["entry_id"] for row in (*deleted, *moved)],
        [row["first_seq"] for row in deleted if row["first_seq"] is not None],
    )


async def list_writing(
    db_session: DbSession, line: Line, layer: str, prefix: str, from_seq: int
) -> list[asyncpg.Record]:
    """Return (key, first_seq, last_seq, number) of the unwritten entries that end at or after `from_seq`.

    An unwritten entry has no row yet, only a work item; the work item's key begins with `prefix`.
    """
    return await db_session.raw.fetch(_LIST_WRITING, *line, layer, prefix, from_seq)


async def list_written_periods(db_session: DbSession, line: Line, ends: Sequence[int]) -> set[int]:
    """Return, out of the last seqs in `ends`, those of periods about which the service has an entry."""
    return {row["last_seq"] for row in await db_session.raw.fetch(_WRITTEN_PERIODS, *line, list(ends))}


async def list_oldest_failed(db_session: DbSession, line: Line, layer: str, prefix: str, *, newest: int) -> list[str]:
    """Return the keys of the unwritten entries that failed for good, except the last `newest` in story order."""
    return [row["key"] for row in await db_session.raw.fetch(_OLDEST_FAILED, *line, layer, prefix, newest)]


async def list_waiting(
    db_session: DbSession, line: Line, layer: str, keys: Sequence[str], *, now: datetime, wait_s: float
) -> set[str]:
    """Return those of `keys` whose work items were scheduled to wait for `wait_s` and still wait.

    Items that are parked, or that wait for a retry, are left out.
    """
    rows = await db_session.raw.fetch(_WAITING, *line, layer, list(keys), now, wait_s)
    return {row["key"] for row in rows}


async def name_entries(db_session: DbSession, line: Line, character: str) -> list[int]:
    """Move the entries of the unnamed diary to a character's diary, and return their numbers."""
    return [row["number"] for row in await db_session.raw.fetch(_NAME_ENTRIES, *line, character)]


async def rename_entries(db_session: DbSession, line: Line, former: str, name: str) -> list[asyncpg.Record]:
    """Move the entries of a character to the diary of another name; return (entry_id, number) of each."""
    return await db_session.raw.fetch(_RENAME_ENTRIES, *line, former, name)


async def has_diary(db_session: DbSession, line: Line, character: str) -> bool:
    """Return whether a character has a diary, even if all of its entries are soft-deleted."""
    return bool(await db_session.raw.fetchval(_HAS_DIARY, *line, character))


async def rename_work(db_session: DbSession, line: Line, layer: str, keys: Sequence[tuple[str, str]]) -> None:
    """Give work items other keys, and start their running attempts again; `keys` are (former key, key)."""
    await db_session.raw.execute(_RENAME_WORK, *line, layer, *zip(*keys, strict=True))


async def list_written_after(db_session: DbSession, line: Line, seq: int) -> list[asyncpg.Record]:
    """Return (entry_id, at_seq, depends) of the entries of characters and people after `seq`, in story order.

    `depends` is whether a tool wrote the current text and no person keeps it.
    """
    return await db_session.raw.fetch(_WRITTEN_AFTER, *line, seq)


async def copy_written(
    db_session: DbSession, line: Line, from_line_id: UUID, positions: Sequence[tuple[UUID, int, bool]]
) -> set[str]:
    """Copy entries from another line to `positions` (entry_id, at_seq, hidden).

    Return the characters whose diaries changed.
    """
    rows = await db_session.raw.fetch(_COPY_WRITTEN, *line, from_line_id, *zip(*positions, strict=True))
    return {row["character"] for row in rows}


async def list_characters(db_session: DbSession, line: Line, entry_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the characters of entries, by id, even of soft-deleted entries; ids without an entry are left out."""
    rows = await db_session.raw.fetch(_CHARACTERS, *line, list(entry_ids))
    return {row["entry_id"]: row["character"] for row in rows}


async def drop_open(db_session: DbSession, line: Line, entry_ids: Sequence[UUID]) -> None:
    """Delete entries whose reply never came, except those that a person edited or keeps."""
    await db_session.raw.execute(_DROP_OPEN, *line, list(entry_ids))


async def bind(
    db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, int, int, datetime, bool]]
) -> list[asyncpg.Record]:
    """Give entries the position of their reply; `rows` are (entry_id, at_seq, number, dated_at, hidden).

    Entries that a person edited stay as they are. An entry that a person keeps is not hidden, but it gets the position,
    too, because it depends on the reply again if the person no longer keeps it. Return (character, number,
    former_number) of each.
    """
    return await db_session.raw.fetch(_BIND, *line, *zip(*rows, strict=True))


async def hide(db_session: DbSession, line: Line, rows: Sequence[tuple[UUID, bool]]) -> list[asyncpg.Record]:
    """Hide or show entries; `rows` are (entry_id, hidden).

    Return (character, number) of each, except for those that a person edited or keeps: they stay as they are.
    """
    return await db_session.raw.fetch(_HIDE, *line, *zip(*rows, strict=True))
