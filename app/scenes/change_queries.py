"""SQL of scenes that change: where breaks are set and lifted, messages change, or the end of a line is cut off."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Select, select

from app.chats.service import Head
from app.kit.db import DbSession
from app.scenes.models import Scene

_OF = "s.chat_key = $1 AND s.line_id = $2"
_LIVE = f"{_OF} AND s.lifted_at IS NULL"

_RENUMBER = f"UPDATE scenes s SET number = s.number + $4 WHERE {_LIVE} AND s.last_seq > $3"  # noqa: S608 - constants only

_HOLDING = f"""
    SELECT DISTINCT found.last_seq FROM unnest($3::int[]) AS changed (seq) CROSS JOIN LATERAL (
        SELECT s.last_seq FROM scenes s WHERE {_LIVE} AND s.last_seq >= changed.seq ORDER BY s.last_seq LIMIT 1
    ) AS found"""  # noqa: S608

_LIFTED_BETWEEN = f"""
    SELECT s.last_seq FROM scenes s
    WHERE {_OF} AND s.lifted_at IS NOT NULL AND NOT s.cut_off AND s.last_seq BETWEEN $3 AND $4"""  # noqa: S608

_BREAK_BEFORE = f"SELECT max(s.last_seq) FROM scenes s WHERE {_LIVE} AND s.last_seq < $3"  # noqa: S608

_LAST_LIVING = """
    SELECT seq FROM messages
    WHERE chat_key = $1 AND line_id = $2 AND seq BETWEEN $3 AND $4 AND deleted_at IS NULL
    ORDER BY seq DESC LIMIT 1"""

_NEWEST_FROM = """
    SELECT min(seq) FROM (
        SELECT seq FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq >= $3 AND deleted_at IS NULL
        ORDER BY seq DESC LIMIT $4) AS newest"""


async def find_holding(db_session: DbSession, head: Head, seq: int) -> Scene | None:
    """The closed scene that holds a seq; None if that lies in the open one."""
    query = _live(head).where(Scene.last_seq >= seq).order_by(Scene.last_seq).limit(1)
    return (await db_session.execute(query)).scalar_one_or_none()


async def list_holding(db_session: DbSession, head: Head, seqs: Sequence[int]) -> Sequence[Scene]:
    """The closed scenes that hold one of `seqs`, in order."""
    rows = await db_session.raw.fetch(_HOLDING, *head.line, list(seqs))
    query = _live(head).where(Scene.last_seq.in_([row["last_seq"] for row in rows]))
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def list_reaching(db_session: DbSession, head: Head, from_seq: int) -> Sequence[Scene]:
    """The scenes that hold a seq from `from_seq` on, in order, lifted ones too."""
    query = _all(head).where(Scene.last_seq >= from_seq)
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def find_lifted(db_session: DbSession, head: Head, last_seq: int) -> Scene | None:
    """The scene whose break at a seq was lifted, the last time."""
    query = _all(head).where(Scene.lifted_at.is_not(None), Scene.last_seq == last_seq)
    return (await db_session.execute(query.order_by(Scene.lifted_at.desc()).limit(1))).scalar_one_or_none()


async def list_lifted_written(db_session: DbSession, head: Head, last_seqs: Sequence[int]) -> Sequence[Scene]:
    """The scenes whose breaks at some seqs were lifted, and of which people wrote, in order."""
    written = Scene.is_written | Scene.titled
    query = _all(head).where(Scene.lifted_at.is_not(None), ~Scene.cut_off, Scene.last_seq.in_(last_seqs), written)
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def list_cut_off(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> Sequence[Scene]:
    """The scenes of a range that the line was cut off before, and of which people wrote, in order."""
    query = _all(head).where(Scene.cut_off, Scene.lifted_at.is_not(None), Scene.last_seq.between(first_seq, last_seq))
    return (await db_session.execute(query.order_by(Scene.last_seq, Scene.first_seq))).scalars().all()


async def list_lifted_between(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> frozenset[int]:
    """Where people have lifted breaks of a range (inclusive)."""
    rows = await db_session.raw.fetch(_LIFTED_BETWEEN, *head.line, first_seq, last_seq)
    return frozenset(row["last_seq"] for row in rows)


async def list_moving(db_session: DbSession, head: Head, line_id: UUID, after_seq: int) -> Sequence[Scene]:
    """The scenes behind a seq, on another line of the chat, of which something is a person's; lifted ones too."""
    query = select(Scene).where(
        Scene.chat_key == head.chat_key,
        Scene.line_id == line_id,
        Scene.last_seq > after_seq,
        (Scene.closed_by == "person") | Scene.is_written | Scene.titled | Scene.lifted_at.is_not(None),
    )
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def renumber_after(db_session: DbSession, head: Head, last_seq: int, by: int) -> None:
    """Count the scenes behind a break up or down."""
    await db_session.flush()
    await db_session.raw.execute(_RENUMBER, *head.line, last_seq, by)


async def find_break_before(db_session: DbSession, head: Head, seq: int) -> int:
    """The last break before a seq; 0 without one."""
    found: int | None = await db_session.raw.fetchval(_BREAK_BEFORE, *head.line, seq)
    return found or 0


async def find_last_living(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> int | None:
    """The last message of a range (inclusive) that was not deleted."""
    found: int | None = await db_session.raw.fetchval(_LAST_LIVING, *head.line, first_seq, last_seq)
    return found


async def find_newest_from(db_session: DbSession, head: Head, first_seq: int, limit: int) -> int | None:
    """Where the newest `limit` messages from `first_seq` on begin; None if there are none."""
    line = head.line
    found: int | None = await db_session.raw.fetchval(_NEWEST_FROM, *line, first_seq, limit)
    return found


def _all(head: Head) -> Select[Scene]:
    query = select(Scene).where(Scene.chat_key == head.chat_key, Scene.line_id == head.line_id)
    return query.execution_options(populate_existing=True)


def _live(head: Head) -> Select[Scene]:
    return _all(head).where(Scene.lifted_at.is_(None))
