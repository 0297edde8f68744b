"""SQL of memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from app.chats.presets import PRESETS
from app.kit.db import DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.liveness import (
    LEARNT_US,
    OWNER_GIVEN,
    OWNERS_OF_CHAT,
    SCOPE_GIVEN,
    keep_to_chat,
    write_hash,
    write_versions,
)
from app.knowledge.scopes import ScopeKey
from app.memories.memory import DEFAULT_IMPORTANCE, Memory
from app.memories.settings import MemorySettings

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

KIND = "memory"

LEAST_ORDER_KEY = -1e300
"""The order key of a memory whose importance is 0. It is not -infinity, because a cursor is JSON."""

_VERSIONS_OF_ROW = write_versions(OWNERS_OF_CHAT, KIND, chat="c.chat_key", line="c.line_id")
_VERSIONS_OF_CHAT = f"""
    SELECT n.* FROM chats c CROSS JOIN LATERAL ({_VERSIONS_OF_ROW}) AS n
    WHERE c.chat_key = $1 AND c.line_id = $2"""  # noqa: S608 - constants only
_VERSIONS_OF_SCOPE = write_versions(OWNER_GIVEN, KIND, chat="NULL::uuid", line="NULL::uuid")

COLUMNS = """key, statement_id, rank, current_name, content, category, importance, tags, origin, edited, learnt_at,
    said_at, pinned, order_key, is_archived, archived, chosen"""
"""The columns of a judged memory, in the order of the fields of `Memory`."""


def write_order_key(half_life: str) -> str:
    """Return SQL for `decay.order_key` of the memory `h`; `half_life` is SQL for its half-life in days."""
    return f"""CASE WHEN h.importance > 0 THEN ln(h.importance) / ln(2::float8)
            + extract(epoch FROM h.said_at)::float8 / 86400 / {half_life}::float8
            ELSE {LEAST_ORDER_KEY:.0e} END"""


def _write_judged(versions: str, *, of_character: str, half_life: str, most: str, floor: str) -> str:
    """Return the CTE `judged`: the memories that hold, and whether each of them is in the archive.

    Of the versions of a memory, the newest one of the nearest scope holds, unless it was learnt in a wider scope and
    its text was forgotten or replaced in the chat. A memory is in the archive if a person put it there. One that is too
    weak or not among the strongest is in the archive, too, unless a person pinned it or brought it back.
    `half_life`, `most` and `floor` are SQL for the fields of `Keeping`.
    """
    return f"""
    WITH held AS (
        SELECT DISTINCT ON (v.key) v.* FROM ({versions}) AS v WHERE {of_character}
        ORDER BY v.key, v.rank, v.learnt_at DESC, v.statement_id DESC
    ), gone AS (
        SELECT unnest(h.forgotten) AS hash FROM held h WHERE h.rank = 0
    ), ordered AS (
        SELECT h.*, {write_order_key(half_life)} AS order_key
        FROM held h WHERE h.content IS NOT NULL AND (h.rank = 0 OR h.is_set OR NOT EXISTS (SELECT FROM gone)
            OR {write_hash("h.content")} NOT IN (SELECT g.hash FROM gone g))
    ), placed AS (
        SELECT o.*, row_number() OVER (ORDER BY o.archived IS TRUE, NOT (o.pinned OR o.archived IS FALSE),
            o.order_key DESC, o.key DESC) AS place
        FROM ordered o
    ), judged AS (
        SELECT p.*, CASE WHEN p.archived THEN true WHEN p.pinned OR p.archived IS FALSE THEN false
            ELSE p.place > {most}::int OR p.order_key < coalesce({floor}::float8, '-Infinity') END AS is_archived
        FROM placed p
    )"""  # noqa: S608


def _write_list(versions: str, n: int, *, of_character: str) -> str:
    """Return the query of a page of memories, the strongest first; the values of `_parameters` begin at `$n`."""
    half_life, most, floor, archived, first_at, last_at, after_order, after_key, only_key, limit = (
        f"${number}" for number in range(n, n + 10)
    )
    judged = _write_judged(versions, of_character=of_character, half_life=half_life, most=most, floor=floor)
    return f"""{judged}
    SELECT {COLUMNS} FROM judged j
    WHERE ({archived}::boolean IS NULL OR j.is_archived = {archived})
        AND ({first_at}::timestamptz IS NULL OR j.learnt_at >= {first_at})
        AND ({last_at}::timestamptz IS NULL OR j.learnt_at < {last_at})
        AND ({after_order}::float8 IS NULL OR (j.order_key, j.key) < ({after_order}, {after_key}::text))
        AND ({only_key}::text IS NULL OR j.key = {only_key})
    ORDER BY j.order_key DESC, j.key DESC LIMIT {limit}"""  # noqa: S608


_LIST_OF_CHAT = _write_list(
    _VERSIONS_OF_CHAT, 5, of_character="v.current_name IS NULL OR $3::boolean OR v.current_name = $4"
)
_LIST_OF_CHAT_ITSELF = keep_to_chat(_LIST_OF_CHAT)
_LIST_OF_SCOPE = _write_list(_VERSIONS_OF_SCOPE, 5, of_character="true")

_defaults = MemorySettings()


def _write_setting(name: str, type_: str) -> str:
    """Return SQL for a setting of memories: from the chat's row `c`, else from its preset, else the default."""
    of_presets = {preset: values.get(MemorySettings.section, {}).get(name) for preset, values in PRESETS.items()}
    whens = "".join(f" WHEN '{preset}' THEN {value}" for preset, value in of_presets.items() if value is not None)
    default = "NULL" if (value := getattr(_defaults, name)) is None else str(value)
    of_preset = f"CASE c.settings ->> 'preset'{whens} ELSE {default} END" if whens else default
    stored = f"c.settings #>> '{{{MemorySettings.section},{name}}}'"
    return f"coalesce(({stored})::{type_}, {of_preset})"


_HALF_LIFE = _write_setting("half_life_days", "float8")
_FLOOR = _write_setting("forget_below", "float8")
_MOST = _write_setting("max_memories", "int")
_AGE_OF_EPOCH = f"extract(epoch FROM q.now)::float8 / 86400 / {_HALF_LIFE}"
_LEAST_ORDER_KEY_OF_ROW = f"(ln({_FLOOR}) / ln(2::float8) + {_AGE_OF_EPOCH})"

# A strength of less than 2^-60 is as good as 0, and powers that are far smaller or greater are errors in PostgreSQL.
_STRENGTH = f"least(j.importance, power(2::float8, least(0, greatest(-60, j.order_key - {_AGE_OF_EPOCH}))))"
_FADES = "NOT (j.pinned OR j.archived IS FALSE)"
_WEIGHED = f"CASE WHEN {_FADES} THEN {_STRENGTH} ELSE greatest(j.importance, {DEFAULT_IMPORTANCE}) END"

_JUDGED_OF_ROW = _write_judged(
    write_versions(OWNERS_OF_CHAT, KIND, chat="c.chat_key", line="c.line_id", before="q.before_seq"),
    of_character="v.current_name IS NULL OR v.current_name = q.character",
    half_life=_HALF_LIFE,
    most=_MOST,
    floor=_LEAST_ORDER_KEY_OF_ROW,
)

DOCUMENTS = f"""
    {_JUDGED_OF_ROW}
    SELECT 'memory:' || j.key, j.content, coalesce(t.first_seq, 0), coalesce(t.last_seq, 0), j.category,
        (CASE q.fading WHEN 'weighs' THEN {_WEIGHED} ELSE j.importance END)::float8
    FROM judged j CROSS JOIN LATERAL (
        SELECT min(t.first_seq) AS first_seq, max(t.first_seq) AS last_seq FROM teachings t
        WHERE t.statement_id = j.statement_id AND t.chat_key IS NOT DISTINCT FROM c.chat_key
            AND t.line_id IS NOT DISTINCT FROM c.line_id AND NOT t.hidden
            AND (q.before_seq IS NULL OR t.first_seq < q.before_seq)
        {ONE_LOOKUP_EACH}) AS t
    WHERE CASE q.fading
        WHEN 'ignored' THEN j.archived IS NOT TRUE AND (NOT {_FADES} OR j.place <= {_MOST})
        WHEN 'weighs' THEN NOT j.is_archived
            AND ({_FADES} AND j.order_key < {_LEAST_ORDER_KEY_OF_ROW} + 1
                AND {_STRENGTH} <= j.importance / 2) IS NOT TRUE
        ELSE NOT j.is_archived END"""  # noqa: S608
"""The memories that the line sees. `first_seq` and `last_seq` are the first and the last message of this line that
taught the memory; 0 if no message of this line did.

The column `fading` of the row `q` is one of `app.layers.documents.Fading`:

- `archives`: the memories that are not in the archive.
- `ignored`: these, and those that are only in the archive because they are weaker than `forget_below`. Memories that a
  person put into the archive and those beyond `max_memories` are left out. There can be any number of them, and a
  search must not read them all.
- `weighs`: the memories that are not in the archive, except those that are older than a half-life and will be in the
  archive within the next one (the least order key rises by 1 in a half-life). Here, the importance of a memory is its
  present strength. Memories that were pinned or brought back do not fade; theirs is at least the default importance.
"""

_JUDGED_OF_SCOPE = _write_judged(
    write_versions(SCOPE_GIVEN, KIND, chat="NULL::uuid", line="NULL::uuid"),
    of_character="true",
    half_life="kept.half_life",
    most="kept.most",
    floor="NULL",
)

SCOPE_DOCUMENTS = f"""
    SELECT found.* FROM (
        SELECT {_HALF_LIFE} AS half_life, {_MOST} AS most FROM chats c
        WHERE c.chat_key = ANY (scope.chat_keys) AND c.line_status = 'current'
        ORDER BY most DESC, half_life DESC LIMIT 1) AS kept
    CROSS JOIN LATERAL (
        {_JUDGED_OF_SCOPE}
        SELECT 'memory:' || j.key, j.content, j.category, j.importance::float8, '{KIND}', j.key, j.statement_id,
            {LEARNT_US.format("j")}, CASE WHEN NOT j.is_set THEN {write_hash("j.content")} END
        FROM judged j WHERE j.archived IS NOT TRUE AND (NOT {_FADES} OR j.place <= kept.most)) AS found"""  # noqa: S608
"""The memories of one scope above a chat, as `DOCUMENTS` finds them with the fading `ignored`. `max_memories` limits
the memories of this scope alone. Its value and the half-life are those of the chat with the greatest `max_memories`."""

_LIST_CONTENTS = f"""
    SELECT content FROM statements
    WHERE owner_key = $1 AND line_id = $2 AND kind = '{KIND}' AND character = $3 AND key = $4
        AND content IS NOT NULL"""  # noqa: S608

_CHANGE = f"""
    UPDATE statements SET category = $5, importance = $6, tags = $7, pinned = $8, archived = $9, chosen = $10
    WHERE owner_key = $1 AND line_id = $2 AND kind = '{KIND}' AND character = $3 AND key = $4"""  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The settings that decide which memories are in the archive.

    Attributes:
        half_life_days: In how many days the importance of a memory halves.
        max_memories: How many memories stay out of the archive: the strongest ones.
        least_order_key: Memories with a smaller order key are in the archive; None sets no limit.

    """

    half_life_days: float
    max_memories: int
    least_order_key: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which memories to list.

    Attributes:
        archived: True lists the memories of the archive, False the others, None both.
        first_at: Only memories that were learnt at this time or later.
        until: Only memories that were learnt before this time.
        after: The order key and the id of the last memory of the previous page.
        memory_id: Only this one.
        limit: The maximum number to return; None returns all.

    """

    archived: bool | None = None
    first_at: datetime | None = None
    until: datetime | None = None
    after: tuple[float, str] | None = None
    memory_id: UUID | None = None
    limit: int | None = None


async def list_of_chat(
    db_session: DbSession,
    line: Line,
    keeping: Keeping,
    choice: Choice,
    *,
    character: str | None,
    of_all: bool = False,
    only_chat: bool = False,
) -> list[Memory]:
    """Return memories as a line sees them.

    Memories of the user with one character are included only for `character`, or for all characters with `of_all`. With
    `only_chat`, the line sees only the chat itself.
    """
    query = _LIST_OF_CHAT_ITSELF if only_chat else _LIST_OF_CHAT
    rows = await db_session.raw.fetch(query, *line, of_all, character, *_parameters(keeping, choice))
    return [read_memory(row) for row in rows]


async def list_of_scope(db_session: DbSession, scope: ScopeKey, keeping: Keeping, choice: Choice) -> list[Memory]:
    """Return memories of one scope, as the current lines of all chats see it."""
    rows = await db_session.raw.fetch(_LIST_OF_SCOPE, *_where(scope), *_parameters(keeping, choice))
    return [read_memory(row) for row in rows]


async def list_contents(db_session: DbSession, scope: ScopeKey, memory_id: UUID) -> list[str]:
    """Return every text that a memory has in a scope, live or not."""
    rows = await db_session.raw.fetch(_LIST_CONTENTS, *_key(scope, memory_id))
    return [row["content"] for row in rows]


async def change(db_session: DbSession, scope: ScopeKey, memory_id: UUID, values: Mapping[str, Any]) -> None:
    """Change columns other than the text in all statements of a memory in a scope."""
    names = ("category", "importance", "tags", "pinned", "archived", "chosen")
    await db_session.raw.execute(_CHANGE, *_key(scope, memory_id), *(values[name] for name in names))


def _where(scope: ScopeKey) -> tuple[UUID, UUID, int, str]:
    return scope.owner_key, scope.line_id, scope.rank, scope.character


def _key(scope: ScopeKey, memory_id: UUID) -> tuple[UUID, UUID, str, str]:
    return scope.owner_key, scope.line_id, scope.character, str(memory_id)


def _parameters(keeping: Keeping, choice: Choice) -> Sequence[Any]:
    after_order, after_key = choice.after or (None, None)
    return (
        keeping.half_life_days,
        keeping.max_memories,
        keeping.least_order_key,
        choice.archived,
        choice.first_at,
        choice.until,
        after_order,
        after_key,
        str(choice.memory_id) if choice.memory_id else None,
        choice.limit,
    )


def read_memory(row: asyncpg.Record) -> Memory:
    """Return the memory of a row with `COLUMNS`."""
    key, *values = row
    memory = Memory(UUID(key), *values)
    return memory._replace(tags=tuple(memory.tags or ()), chosen=tuple(memory.chosen or ()))
