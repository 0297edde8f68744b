"""SQL of the entries that a character wrote in the user's other chats.

An entry stays a row of the chat in which it was written, so restores, swipes and erasing apply to it without further
code. A context reads the current lines of the user's other chats that share their diaries, by an index, and the newest
valid entries of each. Both chats must have `diary.scope: character`.
"""

from typing import Any
from uuid import UUID

import orjson

from app.chats.known_names import write_known_names
from app.chats.presets import PRESETS
from app.diary.shared.merging import Elsewhere
from app.diary.wording import ELSEWHERE
from app.kit.db import DbSession
from app.kit.owners import Owner
from app.kit.planner import ONE_LOOKUP_EACH

_WRITES_BY_SERVICE = [name for name, preset in PRESETS.items() if preset.get("diary", {}).get("enabled")]

SETTING = "settings #>> '{diary,scope}' = 'character'"
"""Whether a line has `diary.scope: character`: the condition of the partial index `ix_chats_diaries`.

It reads only the stored settings of the chat, because no preset sets this scope.
"""

SHARES = f"c.user_key IS NOT NULL AND c.{SETTING}"
"""Whether the line `c` shares its diaries."""

CREATED_US = "(extract(epoch FROM {}created_at) * 1000000)::bigint"
"""SQL for when a row was created, in microseconds since 1970."""

_MOST = "(coalesce((c.settings #>> '{diary,lines}')::int, 50) / 3 + 8)"
"""SQL for the number that `merging.count_most` returns."""

# Entries of the service count only while diaries are on in their own chat.
_HOLDS = f"""e.deleted_at IS NULL AND e.content <> '' AND NOT e.hidden AND (e.origin <> 'model' OR (
        coalesce((o.settings #>> '{{diary,enabled}}')::bool,
            coalesce(o.settings ->> 'preset', 'memo') = ANY('{{{",".join(_WRITES_BY_SERVICE)}}}'))
        AND e.source_hash IS NOT DISTINCT FROM e.current_hash))"""

_OTHER = f"""o.user_key = c.user_key AND o.line_status = 'current' AND o.{SETTING} AND o.chat_key <> c.chat_key"""

_NAMES = write_known_names(_OTHER)

# A fork has copies of the original chat's entries, with the same ids. `_NOT_OWN` leaves out entries that are also on
# the line `c`. If several other chats have an entry, `_NEWEST` reads it from the oldest of these chats: that one has
# the original, which people edit. `_NEWEST` reads the newest entries of each chat, up to a limit, and then leaves out
# copies. A fork's copies are older than its other entries, so they use up none of the limit that others would need.
_NOT_OWN = """NOT EXISTS (
        SELECT FROM diary_entries m
        WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.entry_id = e.entry_id)"""

_COLUMNS = "o.chat_key, o.chat_id, e.entry_id, e.origin, e.content, e.dated_at, e.created_at"

_NEWEST = f"""
    SELECT n.* FROM (
        SELECT DISTINCT ON (e.entry_id) {_COLUMNS}
        FROM {_NAMES} AS named (name) JOIN chats o ON {_OTHER} CROSS JOIN LATERAL (
            SELECT * FROM diary_entries e
            WHERE e.chat_key = o.chat_key AND e.line_id = o.line_id AND e.character = named.name AND {_HOLDS}
            ORDER BY e.number DESC LIMIT {_MOST}) AS e
        WHERE {_NOT_OWN}
        ORDER BY e.entry_id, o.created_at, o.chat_key) AS n
    ORDER BY n.created_at DESC, n.entry_id DESC LIMIT {_MOST}"""  # noqa: S608 - constants only

_HELD = f"""
    SELECT {_COLUMNS}
    FROM jsonb_array_elements(c.context_cache #> ARRAY['diary', 'characters', p.value ->> 'name', 'shared', 'held'])
            AS h
        JOIN chats o ON o.chat_key = (h.value ->> 0)::uuid AND {_OTHER} CROSS JOIN LATERAL (
            SELECT * FROM diary_entries e
            WHERE e.chat_key = o.chat_key AND e.line_id = o.line_id AND e.entry_id = (h.value ->> 1)::uuid
            {ONE_LOOKUP_EACH}) AS e
    WHERE e.character IN {_NAMES} AND {_HOLDS} AND {_NOT_OWN}"""  # noqa: S608


# An entry that the segment `diary` holds is read from the chat from which the segment has it, as in the list.
DOCUMENTS = f"""
    SELECT DISTINCT ON (f.entry_id) f.chat_key, f.chat_id, 'diary:' || f.entry_id, f.content, '{ELSEWHERE}'
    FROM jsonb_array_elements(c.characters) AS p CROSS JOIN LATERAL (
        SELECT h.*, 0 AS rank FROM ({_HELD}) AS h
        UNION ALL
        SELECT n.*, 1 FROM ({_NEWEST}) AS n) AS f
    WHERE {SHARES} AND p.value ->> 'name' = q.character
    ORDER BY f.entry_id, f.rank"""  # noqa: S608
"""A query on the rows `c` and `q` of a search: the entries of other chats that `GET …/diary/shared` lists."""


def _write_rows(entries: str) -> str:
    """Return a scalar subquery that selects [character, entries] for each character of the line, as JSON."""
    return f"""(
        SELECT json_agg(json_build_array(p.value ->> 'name', (
            SELECT json_agg(json_build_array(f.chat_key, f.chat_id, f.entry_id, f.origin, f.content, f.dated_at,
                {CREATED_US.format("f.")}) ORDER BY f.created_at, f.entry_id, f.chat_key)
            FROM ({entries}) AS f)))
        FROM jsonb_array_elements(c.characters) AS p)"""  # noqa: S608


_BEGAN = f"'began_us', {CREATED_US.format('c.')}, 'time_zone', c.time_zone"

SHARED = f"""
    CASE WHEN {SHARES} THEN json_build_object({_BEGAN}, 'rows', {_write_rows(f"({_NEWEST}) UNION {_HELD}")}) END"""
"""A scalar expression on the line's row `c`: the newest entries of other chats, and those that its diaries hold."""

_READ_NEWEST = f"""
    SELECT CASE WHEN {SHARES} THEN json_build_object({_BEGAN}, 'rows', {_write_rows(_NEWEST)})::text END
    FROM chats c WHERE c.chat_key = $1 AND c.line_id = $2"""  # noqa: S608

_READ = f"""
    SELECT json_build_object('shared', {SHARED})::text FROM chats c
    WHERE c.chat_key = $1 AND c.line_id = $2 AND {SHARES}"""  # noqa: S608

_HAS_SHARED = f"""
    SELECT DISTINCT c.user_key FROM chats c WHERE c.chat_key = $1 AND {SHARES}"""  # noqa: S608

_IS_KNOWN = "SELECT EXISTS (SELECT FROM scopes WHERE owner_key = $1 AND line_id = $2)"


async def list_newest(db_session: DbSession, line: tuple[UUID, UUID], character: str) -> tuple[int, list[Elsewhere]]:
    """Return when the chat began (microseconds since 1970), and the character's newest entries in other chats.

    The entries are sorted by time.
    """
    stored = await db_session.raw.fetchval(_READ_NEWEST, *line)
    found: dict[str, Any] = orjson.loads(stored) if stored else {"began_us": 0, "rows": ()}
    rows = next((rows for name, rows in found["rows"] or () if name == character), None)
    return found["began_us"], [Elsewhere.from_row(row) for row in rows or ()]


async def read_shared(db_session: DbSession, line: tuple[UUID, UUID]) -> str | None:
    """Return the entries of other chats as a context reads them (`View.queried`); None if the line shares nothing."""
    found: str | None = await db_session.raw.fetchval(_READ, *line)
    return found


async def list_sharing_users(db_session: DbSession, chat_key: UUID) -> list[UUID]:
    """Return the key of the chat's user if any line of the chat shares its diaries."""
    return [row["user_key"] for row in await db_session.raw.fetch(_HAS_SHARED, chat_key)]


async def has_shared(db_session: DbSession, owner: Owner) -> bool:
    """Return whether a chat of the user may have shared a diary: whether the user has a row in `scopes`.

    Each change of a shared diary raises the user's revision, which is in this row.
    """
    found: bool = await db_session.raw.fetchval(_IS_KNOWN, owner.key, owner.line_id)
    return found
