"""SQL that reads scenes, with their recaps and their work items."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
from sqlalchemy import Select, String, and_, cast, select

from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.work_queue import WorkItem
from app.messages.rules import IS_HIDDEN_BY_SCENES, IS_NOT_DELETED
from app.scenes.models import Scene
from app.scenes.recap_fold import ClosedScene, digest_of

_LIVE = "s.chat_key = $1 AND s.line_id = $2 AND s.lifted_at IS NULL"

_LAST_BREAK = f"SELECT max(s.last_seq) FROM scenes s WHERE {_LIVE}"  # noqa: S608 - constants only

_NEWEST_BREAKS = f"SELECT s.last_seq FROM scenes s WHERE {_LIVE} ORDER BY s.last_seq DESC LIMIT $3"  # noqa: S608

_BREAKS = f"""
    SELECT s.last_seq FROM scenes s WHERE {_LIVE} AND s.last_seq >= (
        SELECT coalesce(max(s.last_seq), 0) FROM scenes s WHERE {_LIVE} AND s.last_seq < $3)
    ORDER BY s.last_seq"""  # noqa: S608

# Whether a recap is valid: a person's recap always is. While scenes are on, a recap that is not valid is scheduled or
# has failed for good.
_HOLDS = "s.status <> 'pending' AND (s.origin = 'person' OR s.source_hash = s.current_hash)"

DOCUMENTS = f"""
    SELECT 'recap:' || (c.context_cache -> 'scenes' ->> 'version'), c.context_cache -> 'scenes' ->> 'text', 1,
        (c.context_cache -> 'scenes' ->> 'last_seq')::int, NULL::text, NULL::float8
    WHERE c.context_cache -> 'scenes' ->> 'text' <> ''
    UNION ALL
    SELECT 'scene:' || s.scene_id, concat_ws(E'\\n', s.title, s.recap), s.first_seq, s.last_seq, NULL, NULL
    FROM scenes s
    WHERE s.chat_key = c.chat_key AND s.line_id = c.line_id AND s.lifted_at IS NULL AND s.status = 'ready'
        AND {_HOLDS}"""  # noqa: S608

_CLOSED_SCENE = f"""s.scene_id, s.first_seq, s.last_seq,
    CASE WHEN {_HOLDS} THEN CASE s.status WHEN 'empty' THEN 'empty' ELSE 'made' END
        WHEN w.failed_at IS NOT NULL THEN 'failed' ELSE 'pending' END AS state"""

_WITH_WORK = """scenes s LEFT JOIN work w
        ON w.owner_key = s.chat_key AND w.line_id = s.line_id AND w.layer = 'scenes' AND w.key = s.scene_id::text"""

_CLOSED_WITH_TEXT = f"""
    SELECT {_CLOSED_SCENE}, s.title, s.recap FROM {_WITH_WORK}
    WHERE {_LIVE} AND s.last_seq BETWEEN $3 AND $4 ORDER BY s.last_seq LIMIT $5"""  # noqa: S608

_CLOSED = f"SELECT {_CLOSED_SCENE} FROM {_WITH_WORK} WHERE {_LIVE} ORDER BY s.last_seq"  # noqa: S608

_LAST_WITH_RECAP = f"""
    SELECT s.last_seq FROM scenes s WHERE {_LIVE} AND s.last_seq <= $3 AND {_HOLDS}
    ORDER BY s.last_seq DESC LIMIT 1"""  # noqa: S608

_OVERLAPPING = f"""
    SELECT {_CLOSED_SCENE}, s.filters::text AS filters FROM {_WITH_WORK}
    WHERE {_LIVE} AND s.last_seq BETWEEN $3 AND (
        SELECT coalesce(min(s.last_seq), $4) FROM scenes s WHERE {_LIVE} AND s.last_seq >= $4)
    ORDER BY s.last_seq"""  # noqa: S608

_GAPS = f"""
    WITH uncovered AS (
        SELECT s.first_seq, s.last_seq FROM scenes s WHERE {_LIVE} AND s.last_seq > $4 AND s.last_seq <= $5
        UNION ALL
        SELECT s.first_seq, s.last_seq FROM scenes s
        WHERE {_LIVE} AND s.last_seq <= $4 AND s.origin <> 'person' AND s.source_hash IS DISTINCT FROM s.current_hash
    )
    SELECT u.first_seq, CASE WHEN hides THEN u.last_seq ELSE least(u.last_seq, $3 - 1) END AS last_seq
    FROM uncovered u CROSS JOIN LATERAL (SELECT EXISTS (
        SELECT FROM messages WHERE chat_key = $1 AND line_id = $2 AND {IS_HIDDEN_BY_SCENES} AND {IS_NOT_DELETED}
            AND seq BETWEEN greatest(u.first_seq, $3) AND u.last_seq) AS hides) AS behind
    WHERE u.first_seq < $3 OR hides ORDER BY first_seq"""  # noqa: S608

_NEWEST_FAILED = f"""
    SELECT s.last_seq, w.failed_at FROM {_WITH_WORK}
    WHERE {_LIVE} AND s.last_seq > $3 AND s.last_seq <= $4 AND w.failed_at IS NOT NULL
    ORDER BY s.last_seq DESC LIMIT 1"""  # noqa: S608

_RECAPS = f"""
    SELECT s.number, s.title, s.recap FROM scenes s WHERE {_LIVE} AND s.scene_id = ANY($3) ORDER BY s.last_seq"""  # noqa: S608


async def find_last_break(db_session: DbSession, head: Head) -> int:
    """Return the last seq of the newest closed scene, or 0 if there is none."""
    last: int | None = await db_session.raw.fetchval(_LAST_BREAK, *head.line)
    return last or 0


async def list_newest_breaks(db_session: DbSession, head: Head, limit: int) -> list[int]:
    """Return the last seqs of the newest closed scenes, newest first."""
    rows = await db_session.raw.fetch(_NEWEST_BREAKS, *head.line, limit)
    return [row["last_seq"] for row in rows]


async def list_breaks(db_session: DbSession, head: Head, from_seq: int) -> list[int]:
    """Return the last seqs of the closed scenes, from the last break before `from_seq` on."""
    return [row["last_seq"] for row in await db_session.raw.fetch(_BREAKS, *head.line, from_seq)]


async def list_closed_between(
    db_session: DbSession, head: Head, first_seq: int, last_seq: int, *, limit: int | None = None
) -> list[ClosedScene]:
    """Return the closed scenes whose last seq is in a range (inclusive), in order."""
    rows = await db_session.raw.fetch(_CLOSED_WITH_TEXT, *head.line, first_seq, last_seq, limit)
    return [
        ClosedScene(
            row["scene_id"],
            row["first_seq"],
            row["last_seq"],
            row["state"],
            digest_of(row["state"], row["title"], row["recap"]),
        )
        for row in rows
    ]


async def list_closed(db_session: DbSession, head: Head) -> list[tuple[int, int, bool]]:
    """Return (first_seq, last_seq, has a valid recap or needs none) of all closed scenes, in order."""
    rows = await db_session.raw.fetch(_CLOSED, *head.line)
    return [(row["first_seq"], row["last_seq"], row["state"] in ("made", "empty")) for row in rows]


async def find_last_with_recap(db_session: DbSession, head: Head, last_seq: int) -> int | None:
    """Return the last seq of the newest closed scene up to `last_seq` that has a valid recap or needs none, or None."""
    last: int | None = await db_session.raw.fetchval(_LAST_WITH_RECAP, *head.line, last_seq)
    return last


async def list_recaps(
    db_session: DbSession, head: Head, scene_ids: Sequence[UUID]
) -> list[tuple[int, str | None, str]]:
    """Return (number, title, recap) of scenes, in order."""
    rows = await db_session.raw.fetch(_RECAPS, *head.line, list(scene_ids))
    return [(row["number"], row["title"], row["recap"]) for row in rows]


async def find_user_name_and_language(db_session: DbSession, head: Head) -> tuple[str | None, str | None]:
    """Return the user's name and the chat's language as a BCP 47 tag; None for what is not known."""
    row = await db_session.raw.fetchrow(
        "SELECT user_name, language FROM chats WHERE chat_key = $1 AND line_id = $2", *head.line
    )
    return (None, None) if row is None else (row["user_name"], row["language"])


async def list_overlapping(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> list[asyncpg.Record]:
    """Return the closed scenes that overlap a range of messages, in order, with their state and filters."""
    return await db_session.raw.fetch(_OVERLAPPING, chat_key, line_id, first_seq, last_seq)


async def list_gaps(db_session: DbSession, head: Head, covered_seq: int, limit_seq: int) -> list[tuple[int, int]]:
    """Return the ranges of messages that are neither sent nor covered by the running recap.

    The recap covers the scenes up to `covered_seq`, except those without a valid recap; scenes after `limit_seq` are
    left out. Messages before the anchor are not sent, and messages that auto-hide has hidden are not sent either. If
    auto-hide has hidden a message at or after the anchor, the whole range of its scene is returned.
    """
    line = head.line
    rows = await db_session.raw.fetch(_GAPS, *line, head.anchor_seq, covered_seq, limit_seq)
    return [(row["first_seq"], row["last_seq"]) for row in rows]


async def find_newest_failed(
    db_session: DbSession, head: Head, covered_seq: int, limit_seq: int
) -> tuple[int, datetime] | None:
    """Return (last_seq, failed_at) of the newest scene after `covered_seq`, up to `limit_seq`, that failed for good."""
    row = await db_session.raw.fetchrow(_NEWEST_FAILED, *head.line, covered_seq, limit_seq)
    return (row["last_seq"], row["failed_at"]) if row else None


async def list_page(
    db_session: DbSession, chat_key: UUID, line_id: UUID, *, after_seq: int, limit: int
) -> Sequence[tuple[Scene, WorkItem | None]]:
    """Return the closed scenes that end after `after_seq`, in story order, each with its work item."""
    query = _with_work(chat_key, line_id).where(Scene.last_seq > after_seq, Scene.lifted_at.is_(None))
    rows = await db_session.execute(query.order_by(Scene.last_seq).limit(limit))
    return [(scene, work) for scene, work in rows]


async def find_newest(db_session: DbSession, chat_key: UUID, line_id: UUID) -> Scene | None:
    """Return the newest closed scene, or None."""
    query = select(Scene).where(Scene.chat_key == chat_key, Scene.line_id == line_id, Scene.lifted_at.is_(None))
    newest = query.order_by(Scene.last_seq.desc()).limit(1).execution_options(populate_existing=True)
    return (await db_session.execute(newest)).scalar_one_or_none()


async def find_scene(
    db_session: DbSession, chat_key: UUID, line_id: UUID, scene_id: UUID
) -> tuple[Scene, WorkItem | None] | None:
    """Return one closed scene with its work item, or None."""
    query = _with_work(chat_key, line_id).where(Scene.scene_id == scene_id, Scene.lifted_at.is_(None))
    row = (await db_session.execute(query)).one_or_none()
    return None if row is None else (row[0], row[1])


def _with_work(chat_key: UUID, line_id: UUID) -> Select[Scene, WorkItem]:
    return (
        select(Scene, WorkItem)
        .outerjoin(
            WorkItem,
            and_(
                WorkItem.owner_key == Scene.chat_key,
                WorkItem.line_id == Scene.line_id,
                WorkItem.layer == "scenes",
                WorkItem.key == cast(Scene.scene_id, String),
            ),
        )
        .where(Scene.chat_key == chat_key, Scene.line_id == line_id)
        .execution_options(populate_existing=True)
    )
