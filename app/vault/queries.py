"""SQL of vaults; the statements for single tables are made in `tables.py`."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from app.kit.db import DbSession
from app.kit.owners import NO_LINE
from app.vault.tables import DIFFERING

_PREFETCHED_ROWS = 50
"""How many rows are in memory at once; a row can have some hundred kilobytes."""

# With these, the form of the written values does not depend on the settings of the database.
_SETTINGS = "SET LOCAL TimeZone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1"

_CURRENT = "SELECT line_id FROM chats WHERE chat_key = $1 AND line_status = 'current'"

_REVISION = "SELECT revision FROM chats WHERE chat_key = $1 AND line_id = $2"

_WRONG_NUMBER = """
    SELECT f.name, f.counted
    FROM chats c CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE deleted_at IS NULL) AS memos, coalesce(max(number), 0) AS newest,
            max(last_seq) AS last_seq
        FROM memos b WHERE b.chat_key = c.chat_key AND b.line_id = c.line_id) AS b
    CROSS JOIN LATERAL (
        SELECT coalesce(max(number), 0) AS newest FROM (
            SELECT number FROM diary_entries d WHERE d.chat_key = c.chat_key AND d.line_id = c.line_id
            UNION ALL
            SELECT (w.payload ->> 'number')::int FROM work w
            WHERE w.owner_key = c.chat_key AND w.line_id = c.line_id AND w.layer = 'diary') AS taken) AS d
    CROSS JOIN LATERAL (
        SELECT coalesce(max(number), 1) AS newest
        FROM sessions s WHERE s.chat_key = c.chat_key AND s.line_id = c.line_id) AS s
    CROSS JOIN LATERAL (VALUES
        ('memo_count', c.memo_count <> b.memos, b.memos::text),
        ('memo_number', c.memo_number < b.newest, 'at least ' || b.newest),
        ('cursors.memos.first_seq', (c.cursors #>> '{memos,first_seq}')::int <= b.last_seq,
            'at least ' || b.last_seq + 1),
        ('cursors.memos.first_seq', (c.cursors #>> '{memos,first_seq}')::int > c.head_seq + 1,
            'at most ' || c.head_seq + 1),
        ('cursors.diary.number', coalesce((c.cursors #>> '{diary,number}')::int, 0) < d.newest,
            'at least ' || d.newest),
        ('cursors.sessions.number', coalesce((c.cursors #>> '{sessions,number}')::int, 1) < s.newest,
            'at least ' || s.newest)) AS f (name, is_wrong, counted)
    WHERE c.chat_key = $1 AND f.is_wrong LIMIT 1"""

_MOST_KEYS = f"""
    SELECT coalesce(max(keys), 0)::int FROM (
        SELECT count(DISTINCT key) AS keys FROM statements
        WHERE owner_key = $1 AND line_id = '{NO_LINE}' AND kind <> 'memory' GROUP BY kind, character) AS counted"""  # noqa: S608


async def begin(db_session: DbSession) -> None:
    """Make this transaction write times, bytes and numbers in the form of a vault, whatever the database's settings."""
    await db_session.raw.execute(_SETTINGS)


async def stream(db_session: DbSession, query: str, *parameters: Any) -> AsyncIterator[Any]:
    """Yield the rows of a query, a few in memory at a time."""
    async for row in db_session.raw.cursor(query, *parameters, prefetch=_PREFETCHED_ROWS):
        yield row


async def insert(db_session: DbSession, statement: str, *parameters: Any) -> None:
    """Insert rows of one table (`VaultTable.write_insert`)."""
    await db_session.raw.execute(statement, *parameters)


async def differs(
    db_session: DbSession, chat_key: UUID, rows: str, of_user: UUID | None, of_tenant: UUID | None
) -> bool:
    """Return whether the user or the tenant has a statement with the id of one of these rows, but other content."""
    return bool(await db_session.raw.fetchval(DIFFERING, chat_key, rows, of_user, of_tenant))


async def find_current(db_session: DbSession, chat_key: UUID) -> UUID | None:
    """Return the id of a chat's current line, or None."""
    found: UUID | None = await db_session.raw.fetchval(_CURRENT, chat_key)
    return found


async def find_wrong_number(db_session: DbSession, chat_key: UUID) -> tuple[str, str] | None:
    """Return a number of a chat's line that disagrees with the line's rows, and the right value; None without one.

    A number that is too low would be given to a second memo, diary entry or session. From an open batch that begins too
    early, an append would form a batch of messages that are in a batch already; from one that begins after the next
    message, a batch that ends before it begins.
    """
    row = await db_session.raw.fetchrow(_WRONG_NUMBER, chat_key)
    return (row["name"], row["counted"]) if row else None


async def get_revision(db_session: DbSession, line: tuple[UUID, UUID]) -> int:
    """Return the revision of a line."""
    revision: int = await db_session.raw.fetchval(_REVISION, *line)
    return revision


async def count_most_keys(db_session: DbSession, owner_key: UUID) -> int:
    """Count, for each kind and character, the keys that a user or a tenant has or had; return the largest count.

    Memories are not counted, because their number is not limited.
    """
    count: int = await db_session.raw.fetchval(_MOST_KEYS, owner_key)
    return count


# --- what the pages show ---

_ON_LINE = "chat_key = $1 AND line_id = $2"

MEMOS = f"""
    SELECT b.memo_id, b.number, b.first_seq, b.last_seq, b.text, b.created_at, (
        SELECT m.sent_at FROM messages m WHERE m.chat_key = $1 AND m.line_id = $2 AND m.seq = b.first_seq) AS began_at
    FROM memos b WHERE {_ON_LINE} AND status = 'ready' AND deleted_at IS NULL ORDER BY sort_key, number"""  # noqa: S608

SCENES = f"""
    SELECT scene_id, number, title, recap, first_seq, last_seq
    FROM scenes WHERE {_ON_LINE} AND lifted_at IS NULL ORDER BY first_seq"""  # noqa: S608

ENTRIES = f"""
    SELECT entry_id, character, content, dated_at FROM diary_entries
    WHERE {_ON_LINE} AND NOT hidden AND deleted_at IS NULL AND content <> ''
    ORDER BY character COLLATE "C", number"""  # noqa: S608

NARRATIVE = f"""
    SELECT kept_text, text FROM narrative_versions WHERE {_ON_LINE} AND layer = $3 AND current
    ORDER BY subject COLLATE "C\""""  # noqa: S608

_DELETED_MEMOS = f"""
    SELECT text FROM memos WHERE {_ON_LINE} AND deleted_at IS NOT NULL"""  # noqa: S608

_DELETED_ENTRIES = f"""
    SELECT character, content FROM diary_entries WHERE {_ON_LINE} AND deleted_at IS NOT NULL"""  # noqa: S608

_END_OF_MEMO = f"""
    SELECT coalesce(last_seq, sort_key / 2) FROM memos WHERE {_ON_LINE} AND memo_id = $3"""  # noqa: S608

_TAUGHT = "SELECT DISTINCT statement_id FROM teachings WHERE chat_key = $1 AND wide_key IS NOT NULL"


async def list_taught(db_session: DbSession, chat_key: UUID) -> frozenset[UUID]:
    """Return the ids of the statements (facts, blocks, memories) of a user or a tenant that were learnt in a chat."""
    return frozenset(row["statement_id"] for row in await db_session.raw.fetch(_TAUGHT, chat_key))


async def list_deleted(
    db_session: DbSession, line: tuple[UUID, UUID]
) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the texts of the deleted memos of a line, and of its deleted diary entries with their characters."""
    memos = await db_session.raw.fetch(_DELETED_MEMOS, *line)
    entries = await db_session.raw.fetch(_DELETED_ENTRIES, *line)
    return frozenset(row["text"] for row in memos), frozenset((row["character"], row["content"]) for row in entries)


async def find_end_of_memo(db_session: DbSession, line: tuple[UUID, UUID], memo_id: UUID) -> int | None:
    """Return the last seq that a memo covers or, if it covers none, the seq that it follows; None for an unknown id."""
    seq: int | None = await db_session.raw.fetchval(_END_OF_MEMO, *line, memo_id)
    return seq
