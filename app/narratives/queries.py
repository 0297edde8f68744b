"""SQL of narratives; `chain.py` explains versions, steps and units."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import func, select, update

from app.kit.db import Connection, DbSession
from app.narratives.chain import Link
from app.narratives.models import NarrativeVersion

Key = tuple[UUID, UUID, str, str]
"""(chat_key, line_id, layer, subject)."""

_OF = "v.chat_key = $1 AND v.line_id = $2 AND v.layer = $3 AND v.subject = $4"

# A stale version of a person does not make other versions stale.
_FIRST_STALE = f"""
    SELECT min(v.last_unit) FROM narrative_versions v
    WHERE {_OF} AND v.source_hash <> v.current_hash AND v.origin <> 'person'"""  # noqa: S608

# The query goes back from the current version until it finds a version that is not deleted and ends before $5 and
# before the first stale step. All steps up to the end of the found version are fresh, so it is valid, and earlier
# versions are not needed.
_CHAIN = f"""
    WITH RECURSIVE back (until) AS (
        SELECT least($5::int, ({_FIRST_STALE}))
    ), chain AS (
        SELECT v.version, v.base_version, v.first_unit, v.last_unit, v.origin,
            v.source_hash = v.current_hash AS is_fresh, v.deleted_at IS NOT NULL AS deleted,
            v.kept_text <> '' AS has_kept
        FROM narrative_versions v WHERE {_OF} AND v.current
        UNION ALL
        SELECT v.version, v.base_version, v.first_unit, v.last_unit, v.origin, v.source_hash = v.current_hash,
            v.deleted_at IS NOT NULL, v.kept_text <> ''
        FROM chain CROSS JOIN back JOIN narrative_versions v ON {_OF} AND v.version = chain.base_version
        WHERE chain.last_unit >= back.until OR chain.deleted
    )
    SELECT version, base_version, first_unit, last_unit, origin, is_fresh, deleted, has_kept
    FROM chain ORDER BY version"""  # noqa: S608 - constants only

_STEPS = """
    SELECT subject, version, first_unit, last_unit, origin, filters::text AS filters, source_hash, current_hash
    FROM narrative_versions
    WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND ($6::text IS NULL OR subject = $6)
        AND last_unit >= $4 AND first_unit <= $5 AND first_unit <= last_unit
    ORDER BY subject, version"""

_UPDATE_HASHES = """
    UPDATE narrative_versions v SET current_hash = n.current_hash
    FROM unnest($4::text[], $5::int[], $6::bytea[]) AS n (subject, version, current_hash)
    WHERE v.chat_key = $1 AND v.line_id = $2 AND v.layer = $3 AND v.subject = n.subject AND v.version = n.version"""

_DELETE_REACHING = f"""
    DELETE FROM narrative_versions v WHERE {_OF} AND v.last_unit >= $5
        AND (v.origin <> 'person' OR v.deleted_at IS NOT NULL)"""  # noqa: S608

_CLIP_WRITTEN = f"""
    UPDATE narrative_versions v SET last_unit = $5 - 1, first_unit = least(v.first_unit, $5),
        begins_seq = least(v.begins_seq, $6),
        current_hash = CASE WHEN v.first_unit <= v.last_unit THEN v.source_hash || '\\x00' ELSE v.current_hash END
    WHERE {_OF} AND v.last_unit >= $5"""  # noqa: S608


_RENAME = f"""
    UPDATE narrative_versions v SET subject = $5
    WHERE {_OF} AND NOT EXISTS (
        SELECT FROM narrative_versions n
        WHERE n.chat_key = $1 AND n.line_id = $2 AND n.layer = $3 AND n.subject = $5)
    RETURNING true"""  # noqa: S608

_HAS_WRITTEN = f"""
    SELECT EXISTS (SELECT FROM narrative_versions v WHERE {_OF} AND v.origin = 'person' AND v.deleted_at IS NULL)"""  # noqa: S608

_DELETE_WITH_DESCENDANTS = f"""
    WITH RECURSIVE gone AS (
        SELECT v.version FROM narrative_versions v WHERE {_OF} AND v.version = ANY($5)
        UNION
        SELECT v.version FROM gone JOIN narrative_versions v
            ON {_OF} AND v.base_version = gone.version AND v.origin <> 'person'
    )
    DELETE FROM narrative_versions v USING gone WHERE {_OF} AND v.version = gone.version AND v.origin <> 'person'"""  # noqa: S608


_IN_PLACE_OF = f"""
    SELECT v.version, v.origin = 'person' AS written FROM narrative_versions v
    WHERE {_OF} AND v.base_version IS NOT DISTINCT FROM $5 AND v.first_unit = $6 AND v.version <= $7
        AND v.deleted_at IS NULL"""  # noqa: S608


async def list_chain(db_session: DbSession, key: Key, from_unit: int) -> list[Link]:
    """Return the current version and the versions it was built on, oldest first.

    The chain goes back to a version that is not deleted and ends before `from_unit` and before every stale step.
    """
    return [Link(*row) for row in await db_session.raw.fetch(_CHAIN, *key, from_unit)]


async def has_written(db_session: DbSession, key: Key) -> bool:
    """Return whether any version that is not deleted was written by a person."""
    return bool(await db_session.raw.fetchval(_HAS_WRITTEN, *key))


async def insert_version(db_session: DbSession, version: NarrativeVersion) -> None:
    """Insert a version. If it is current, no other version may be current."""
    db_session.add(version)
    await db_session.flush()


async def next_version(db_session: DbSession, key: Key) -> int:
    """Return the number of the next version, from 1."""
    query = select(func.coalesce(func.max(NarrativeVersion.version), 0) + 1).where(*_of(key))
    return (await db_session.execute(query)).scalar_one()


async def set_current(db_session: DbSession, key: Key, version: int | None) -> None:
    """Make `version` the only current version; None leaves no version current."""
    await db_session.execute(update(NarrativeVersion).where(*_of(key), NarrativeVersion.current).values(current=False))
    if version is not None:
        await db_session.execute(
            update(NarrativeVersion).where(*_of(key), NarrativeVersion.version == version).values(current=True)
        )


async def find_version(db_session: DbSession, key: Key, version: int) -> NarrativeVersion | None:
    """Return a version that is not deleted, or None."""
    query = select(NarrativeVersion).where(*_listed(key), NarrativeVersion.version == version)
    return (await db_session.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def find_text(connection: Connection, key: Key, version: int) -> str | None:
    """Return the text of a version, or None if there is no such version."""
    text: str | None = await connection.fetchval(
        f"SELECT v.text FROM narrative_versions v WHERE {_OF} AND v.version = $5",  # noqa: S608
        *key,
        version,
    )
    return text


async def find_kept_text(connection: Connection, key: Key, version: int) -> str:
    """Return the kept text of a version; "" if it has none, or there is no such version."""
    text: str | None = await connection.fetchval(
        f"SELECT v.kept_text FROM narrative_versions v WHERE {_OF} AND v.version = $5",  # noqa: S608
        *key,
        version,
    )
    return text or ""


async def list_versions(
    db_session: DbSession, key: Key, *, before: int | None, limit: int
) -> Sequence[NarrativeVersion]:
    """Return up to `limit` versions that are not deleted, newest first, with numbers lower than `before` if given."""
    query = select(NarrativeVersion).where(*_listed(key))
    if before is not None:
        query = query.where(NarrativeVersion.version < before)
    return (await db_session.execute(query.order_by(NarrativeVersion.version.desc()).limit(limit))).scalars().all()


async def list_links_between(db_session: DbSession, key: Key, versions: Sequence[int]) -> list[Link]:
    """Return the versions with these numbers and the versions they were built on.

    Each chain goes back to a version that is not deleted and ends before every stale step.
    """
    rows = await db_session.raw.fetch(
        f"""
        WITH RECURSIVE back (until) AS ({_FIRST_STALE}), chain AS (
            SELECT v.* FROM narrative_versions v WHERE {_OF} AND v.version = ANY($5)
            UNION
            SELECT v.* FROM chain CROSS JOIN back JOIN narrative_versions v ON {_OF} AND v.version = chain.base_version
            WHERE chain.last_unit >= back.until OR chain.deleted_at IS NOT NULL
        )
        SELECT version, base_version, first_unit, last_unit, origin, source_hash = current_hash,
            deleted_at IS NOT NULL, kept_text <> ''
        FROM chain
        """,  # noqa: S608
        *key,
        list(versions),
    )
    return [Link(*row) for row in rows]


async def find_newest(db_session: DbSession, key: Key, among: Sequence[int] | None = None) -> int | None:
    """Return the highest number of the versions that are not deleted, or None; `among` limits the versions."""
    query = select(func.max(NarrativeVersion.version)).where(*_listed(key))
    if among is not None:
        query = query.where(NarrativeVersion.version.in_(among))
    return (await db_session.execute(query)).scalar_one_or_none()


async def delete_with_descendants(db_session: DbSession, key: Key, versions: Sequence[int]) -> None:
    """Delete versions and those that were folded onto them, directly or indirectly.

    A person's version is never deleted. If it is among `versions`, the versions that were folded onto it are deleted,
    and it stays. If it is not, the versions that were folded onto it stay, too, unless they are among `versions`.
    """
    await db_session.raw.execute(_DELETE_WITH_DESCENDANTS, *key, list(versions))


async def list_in_place_of(db_session: DbSession, key: Key, link: Link) -> list[tuple[int, bool]]:
    """Return a version and all earlier versions of the same step: (version, whether a person wrote it) for each."""
    rows = await db_session.raw.fetch(_IN_PLACE_OF, *key, link.base_version, link.first_unit, link.version)
    return [(row["version"], row["written"]) for row in rows]


async def soft_delete(db_session: DbSession, key: Key, versions: Sequence[int], now: datetime) -> None:
    """Soft-delete versions: clear their texts, but keep their rows as links of the chain."""
    values = {"kept_text": "", "text": "", "tokens": 0, "current": False, "deleted_at": now}
    await db_session.execute(
        update(NarrativeVersion).where(*_of(key), NarrativeVersion.version.in_(versions)).values(**values)
    )


async def list_steps(
    db_session: DbSession,
    chat_key: UUID,
    line_id: UUID,
    layer: str,
    first_unit: int,
    last_unit: int,
    subject: str | None,
) -> list[asyncpg.Record]:
    """Return the steps that overlap the range (inclusive)."""
    return await db_session.raw.fetch(_STEPS, chat_key, line_id, layer, first_unit, last_unit, subject)


async def update_hashes(
    db_session: DbSession, chat_key: UUID, line_id: UUID, layer: str, rows: Sequence[tuple[str, int, bytes]]
) -> None:
    """Write the current hashes of steps; `rows` are (subject, version, current_hash)."""
    await db_session.raw.execute(_UPDATE_HASHES, chat_key, line_id, layer, *zip(*rows, strict=True))


async def truncate(db_session: DbSession, key: Key, from_unit: int, begins_seq: int) -> None:
    """Remove coverage of `from_unit` and everything after it.

    Versions that end at or after `from_unit` are deleted if the service wrote them, or if they are soft-deleted. The
    other versions of people are shortened to end before `from_unit`.
    """
    await db_session.raw.execute(_DELETE_REACHING, *key, from_unit)
    await db_session.raw.execute(_CLIP_WRITTEN, *key, from_unit, begins_seq)


async def rename(db_session: DbSession, key: Key, subject: str) -> bool:
    """Move all versions to `subject`, unless `subject` has versions already; return whether any were moved."""
    return bool(await db_session.raw.fetch(_RENAME, *key, subject))


def _listed(key: Key) -> list[Any]:
    return [*_of(key), NarrativeVersion.deleted_at.is_(None)]


def _of(key: Key) -> list[Any]:
    chat_key, line_id, layer, subject = key
    return [
        NarrativeVersion.chat_key == chat_key,
        NarrativeVersion.line_id == line_id,
        NarrativeVersion.layer == layer,
        NarrativeVersion.subject == subject,
    ]
