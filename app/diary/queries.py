"""SQL of diaries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import insert, select, tuple_, update

from app.chats.characters import Characters
from app.diary.models import DiaryEntry
from app.diary.shared.queries import CREATED_US, SHARED, SHARES
from app.diary.wording import Written
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages.rules import IS_NOT_DELETED, qualify

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

# An entry is valid unless it is soft-deleted, empty or hidden with its reply. An entry of the service is also invalid
# while diaries are off ($3 is false) or while it is stale; once a person edits it, it is valid regardless of its
# messages.
_HOLDS = """deleted_at IS NULL AND content <> '' AND NOT hidden
    AND (origin <> 'model' OR ($3 AND source_hash IS NOT DISTINCT FROM current_hash))"""

_WRITTEN = f"entry_id, number, at_seq, content, dated_at, {CREATED_US.format('')}"

_NEWEST = f"""
    SELECT {_WRITTEN} FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND {_HOLDS} AND character = $4 AND number > $5
        AND ($6::int IS NULL OR number < $6) AND ($7::int IS NULL OR at_seq < $7) AND number <> ALL($8::int[])
    ORDER BY number DESC LIMIT $9"""  # noqa: S608 - constants only

_NUMBERED = f"""
    SELECT {_WRITTEN} FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND {_HOLDS} AND character = $4 AND number = ANY($5::int[])
    ORDER BY number"""  # noqa: S608

_STEP = f"""
    SELECT {_WRITTEN} FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND {_HOLDS} AND character = $4 AND number BETWEEN $5 AND $6
    ORDER BY number LIMIT $7"""  # noqa: S608

_LAST_SEQ = """
    SELECT coalesce(max(at_seq), 0) FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND character = $3 AND number BETWEEN $4 AND $5"""

# Counts up to a limit, and looks up the last entry by its number, so the cost does not grow with the diary.
_COUNT_FOLDED = f"""
    SELECT count(*) AS entries, min(created_at) AS first_at, (
        SELECT created_at FROM diary_entries
        WHERE chat_key = $1 AND line_id = $2 AND {_HOLDS} AND character = $4 AND number <= $5
        ORDER BY number DESC LIMIT 1
    ) AS last_at
    FROM (
        SELECT created_at FROM diary_entries
        WHERE chat_key = $1 AND line_id = $2 AND {_HOLDS} AND character = $4 AND number <= $5
        ORDER BY number LIMIT $6
    ) AS first_ones"""  # noqa: S608

# One index probe for each name, so the cost does not grow with the diaries.
_NAMES = """
    WITH RECURSIVE names (name) AS (
        SELECT min(character) FROM diary_entries WHERE chat_key = $1 AND line_id = $2
        UNION ALL
        SELECT (SELECT min(e.character) FROM diary_entries e
            WHERE e.chat_key = $1 AND e.line_id = $2 AND e.character > names.name)
        FROM names WHERE names.name IS NOT NULL
    )
    SELECT name FROM names WHERE name IS NOT NULL"""

# `ONE_LOOKUP_EACH` explains the ORDER BY.
SPEAKERS = f"""
    SELECT p.first_seq, p.last_seq, array(
        SELECT DISTINCT m.name FROM (
            SELECT * FROM messages
            WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN p.first_seq AND p.last_seq ORDER BY seq
            {ONE_LOOKUP_EACH}
        ) AS m WHERE m.role = 'assistant' AND m.kind IS NULL AND {qualify(IS_NOT_DELETED, "m")}
    ) AS speakers, array(
        SELECT DISTINCT e.character FROM diary_entries e
        WHERE e.chat_key = $1 AND e.line_id = $2 AND e.at_seq BETWEEN p.first_seq AND p.last_seq
            AND e.identity IS NOT NULL AND NOT e.hidden
    ) AS wrote
    FROM unnest($3::int[], $4::int[]) AS p (first_seq, last_seq) ORDER BY p.first_seq"""  # noqa: S608


# The third column is the first message that the text is about, or 0 if it is about no message (`Document.first_seq`).
# An entry of a tool is about its reply, so the column is `at_seq`. Once a person edits or keeps the entry, `at_seq` can
# become the seq of another message, for example in a truncation, so the column is then 0.
DOCUMENTS = """
    SELECT 'diary:' || e.entry_id, e.content,
        coalesce(e.first_seq, CASE WHEN e.origin = 'tool' AND NOT e.kept THEN e.at_seq ELSE 0 END), e.at_seq,
        NULL::text, NULL::float8
    FROM diary_entries e
    WHERE e.chat_key = c.chat_key AND e.line_id = c.line_id AND e.deleted_at IS NULL AND e.content <> ''
        AND e.character = coalesce(q.character, '') AND NOT e.hidden
        AND (e.origin <> 'model' OR e.source_hash IS NOT DISTINCT FROM e.current_hash)"""

_BEFORE_MESSAGE = f"""
    CASE WHEN b.seq IS NOT NULL THEN (
        SELECT json_agg(
            json_build_array(e.character, e.origin, e.entry_id, e.number, e.at_seq, e.content, e.dated_at,
                {CREATED_US.format("e.")}) ORDER BY e.number)
        FROM (
            SELECT * FROM diary_entries e
            WHERE e.chat_key = c.chat_key AND e.line_id = c.line_id AND e.deleted_at IS NULL AND e.content <> ''
                AND NOT e.hidden AND (e.origin <> 'model' OR e.source_hash IS NOT DISTINCT FROM e.current_hash)
                AND e.at_seq < b.seq
            ORDER BY e.number DESC LIMIT 500
        ) AS e
    ) END"""  # noqa: S608

OF_LINE = f"""
    CASE WHEN b.seq IS NOT NULL OR ({SHARES}) THEN json_build_object(
        'time_zone', c.time_zone, 'entries', {_BEFORE_MESSAGE}, 'shared', {SHARED})::text END"""
"""A scalar expression for contexts: the entries of other chats, if the line shares its diaries. If the context ends
before a message (`b.seq`), it also has the newest valid entries of all diaries from before that message."""

OF_CHAT_ITSELF = f"""
    CASE WHEN b.seq IS NOT NULL THEN json_build_object(
        'time_zone', c.time_zone, 'entries', {_BEFORE_MESSAGE}, 'shared', NULL)::text END"""
"""`OF_LINE` without the entries of other chats."""

OF_CURRENT = f"""
    CASE WHEN {SHARES} THEN json_build_object('shared', {SHARED})::text END"""
"""`OF_LINE` for a context that does not end before a message: only the entries of other chats."""

_CONTENTS = """
    SELECT entry_id, content FROM diary_entries
    WHERE chat_key = $1 AND line_id = $2 AND entry_id = ANY($3) AND deleted_at IS NULL"""

_SAYS_SOMETHING = (DiaryEntry.deleted_at.is_(None), DiaryEntry.content != "")


class Cast(NamedTuple):
    """The fields of the line's row that diaries need.

    Attributes:
        characters: The chat's characters.
        language: The chat's language, a BCP 47 tag; None if it has none.
        time_zone: The chat's time zone, an IANA name.
        user_name: The user's name, if the chat has it.
        user_key: The user's key, if the chat has a user.

    """

    characters: Characters
    language: str | None
    time_zone: str
    user_name: str | None = None
    user_key: UUID | None = None


class Turns(NamedTuple):
    """A range of messages, with the characters that spoke in it, and those that wrote an entry in it with their tool.

    `speakers` contains None if a message of the assistant has no name.
    """

    first_seq: int
    last_seq: int
    speakers: Sequence[str | None]
    wrote: Sequence[str]


async def read_cast(db_session: DbSession, line: Line) -> Cast:
    """Return the fields of the line's row that diaries need; defaults if the line is gone."""
    row = await db_session.raw.fetchrow(
        "SELECT characters::text, language, time_zone, user_name, user_key FROM chats"
        " WHERE chat_key = $1 AND line_id = $2",
        *line,
    )
    return Cast((), None, "UTC") if row is None else Cast(orjson.loads(row[0]), *row[1:])


async def list_names(db_session: DbSession, line: Line) -> list[str]:
    """Return the names of the characters with diaries, including diaries whose entries are all soft-deleted."""
    return [row["name"] for row in await db_session.raw.fetch(_NAMES, *line)]


async def list_contents(db_session: DbSession, line: Line, entry_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the texts of entries that are not deleted, by their ids."""
    rows = await db_session.raw.fetch(_CONTENTS, *line, list(entry_ids))
    return {row["entry_id"]: row["content"] for row in rows}


async def list_newest(
    db_session: DbSession,
    line: Line,
    character: str,
    *,
    after_number: int,
    before_number: int | None = None,
    before_seq: int | None = None,
    without: Sequence[int] = (),
    limit: int,
    by_service: bool,
) -> list[Written]:
    """Return the newest `limit` valid entries of a diary between two numbers (exclusive), in order.

    Entries at or after `before_seq` and those with a number in `without` are left out. Entries of the service are
    included only if `by_service` is true.
    """
    rows = await db_session.raw.fetch(
        _NEWEST, *line, by_service, character, after_number, before_number, before_seq, list(without), limit
    )
    return [Written(*row) for row in reversed(rows)]


async def list_numbered(
    db_session: DbSession, line: Line, character: str, numbers: Sequence[int], *, by_service: bool
) -> list[Written]:
    """Return the valid entries with these numbers, in order; entries of the service only if `by_service` is true."""
    rows = await db_session.raw.fetch(_NUMBERED, *line, by_service, character, list(numbers)) if numbers else ()
    return [Written(*row) for row in rows]


async def list_step(
    db_session: DbSession, line: Line, character: str, first_number: int, last_number: int, *, limit: int | None = None
) -> list[Written]:
    """Return the first `limit` valid entries between two numbers (both inclusive), in order."""
    return [
        Written(*row)
        for row in await db_session.raw.fetch(_STEP, *line, True, character, first_number, last_number, limit)
    ]


async def count_folded(
    db_session: DbSession, line: Line, character: str, last_number: int, *, at_most: int
) -> tuple[int, datetime | None, datetime | None]:
    """Return how many valid entries there are up to `last_number`, and when the first and the last were written.

    At most `at_most` entries are counted.
    """
    row = await db_session.raw.fetchrow(_COUNT_FOLDED, *line, True, character, last_number, at_most)
    return (row["entries"], row["first_at"], row["last_at"]) if row else (0, None, None)


async def list_turns(db_session: DbSession, line: Line, periods: Sequence[tuple[int, int]]) -> list[Turns]:
    """Return the characters that spoke and those that wrote in each of `periods` (both ends inclusive), in order."""
    firsts, lasts = [first for first, _ in periods], [last for _, last in periods]
    return [Turns(*row) for row in await db_session.raw.fetch(SPEAKERS, *line, firsts, lasts)]


async def list_entries(
    db_session: DbSession, line: Line, *, character: str | None, after: tuple[int, int] | None, limit: int
) -> Sequence[DiaryEntry]:
    """Return entries in story order, of one diary or of all, without soft-deleted and empty ones."""
    query = select(DiaryEntry).where(*_on(line), *_SAYS_SOMETHING)
    if character is not None:
        query = query.where(DiaryEntry.character == character)
    if after:
        query = query.where(tuple_(DiaryEntry.at_seq, DiaryEntry.number) > after)
    ordered = query.order_by(DiaryEntry.at_seq, DiaryEntry.number).limit(limit)
    return (await db_session.execute(ordered.execution_options(populate_existing=True))).scalars().all()


async def find_entry(db_session: DbSession, line: Line, entry_id: UUID) -> DiaryEntry | None:
    """Return an entry, or None if it is soft-deleted or empty."""
    query = select(DiaryEntry).where(*_on(line), DiaryEntry.entry_id == entry_id, *_SAYS_SOMETHING)
    return (await db_session.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def find_service_entry(db_session: DbSession, line: Line, entry_id: UUID) -> DiaryEntry | None:
    """Return an entry that the service wrote, also if it is empty, or None if it is soft-deleted."""
    query = select(DiaryEntry).where(
        *_on(line),
        DiaryEntry.entry_id == entry_id,
        DiaryEntry.first_seq.is_not(None),
        DiaryEntry.deleted_at.is_(None),
    )
    return (await db_session.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def find_last_seq(db_session: DbSession, line: Line, character: str, first_number: int, last_number: int) -> int:
    """Return the highest `at_seq` of the entries between two numbers (both inclusive), even hidden and deleted ones."""
    found: int = await db_session.raw.fetchval(_LAST_SEQ, *line, character, first_number, last_number)
    return found


async def insert_entry(db_session: DbSession, line: Line, values: Mapping[str, Any]) -> None:
    """Insert an entry."""
    await db_session.execute(insert(DiaryEntry).values(chat_key=line[0], line_id=line[1], **values))


async def update_entry(db_session: DbSession, line: Line, entry_id: UUID, values: Mapping[str, Any]) -> None:
    """Update an entry."""
    await db_session.execute(update(DiaryEntry).where(*_on(line), DiaryEntry.entry_id == entry_id).values(**values))


def _on(line: Line) -> tuple[Any, ...]:
    return DiaryEntry.chat_key == line[0], DiaryEntry.line_id == line[1]
