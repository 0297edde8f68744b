"""SQL for changes to scenes: breaks that are set or removed, messages that change or move, lines that are truncated.

A scene is *lifted* if its break was removed: its row stays for its recap, in case the break is set again. A lifted row
is `truncated` if a truncation of the line removed the scene's last message; the next scene that ends on the row's
`last_seq` or later takes over its text.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Select, select

from app.chats.head import Head
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
    WHERE {_OF} AND s.lifted_at IS NOT NULL AND NOT s.truncated AND s.last_seq BETWEEN $3 AND $4"""  # noqa: S608

_BREAK_BEFORE = f"SELECT max(s.last_seq) FROM scenes s WHERE {_LIVE} AND s.last_seq < $3"  # noqa: S608


async def find_holding(db_session: DbSession, head: Head, seq: int) -> Scene | None:
    """Return the closed scene that contains a seq, or None if the seq is in the open scene."""
    query = _live(head).where(Scene.last_seq >= seq).order_by(Scene.last_seq).limit(1)
    return (await db_session.execute(query)).scalar_one_or_none()


async def list_holding(db_session: DbSession, head: Head, seqs: Sequence[int]) -> Sequence[Scene]:
    """Return the closed scenes that contain one of `seqs`, in order."""
    rows = await db_session.raw.fetch(_HOLDING, *head.line, list(seqs))
    query = _live(head).where(Scene.last_seq.in_([row["last_seq"] for row in rows]))
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def list_reaching(db_session: DbSession, head: Head, from_seq: int) -> Sequence[Scene]:
    """Return the scenes that end at or after `from_seq`, in order, including those whose break was removed."""
    query = _all(head).where(Scene.last_seq >= from_seq)
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def find_lifted(db_session: DbSession, head: Head, last_seq: int) -> Scene | None:
    """Return the scene whose break on `last_seq` was removed, or None; of several, the one that was removed last."""
    query = _all(head).where(Scene.lifted_at.is_not(None), Scene.last_seq == last_seq)
    return (await db_session.execute(query.order_by(Scene.lifted_at.desc()).limit(1))).scalar_one_or_none()


async def list_lifted_written(db_session: DbSession, head: Head, last_seqs: Sequence[int]) -> Sequence[Scene]:
    """Return the lifted scenes on `last_seqs` that have text by a person, without `truncated` ones, in order."""
    written = Scene.is_written | Scene.titled
    query = _all(head).where(Scene.lifted_at.is_not(None), ~Scene.truncated, Scene.last_seq.in_(last_seqs), written)
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def list_truncated(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> Sequence[Scene]:
    """Return the `truncated` scenes that end in a range (inclusive), in order; all have text by a person."""
    query = _all(head).where(Scene.truncated, Scene.lifted_at.is_not(None), Scene.last_seq.between(first_seq, last_seq))
    return (await db_session.execute(query.order_by(Scene.last_seq, Scene.first_seq))).scalars().all()


async def list_lifted_between(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> frozenset[int]:
    """Return the seqs in a range (inclusive) whose break was removed; `truncated` scenes do not count."""
    rows = await db_session.raw.fetch(_LIFTED_BETWEEN, *head.line, first_seq, last_seq)
    return frozenset(row["last_seq"] for row in rows)


async def list_moving(db_session: DbSession, head: Head, line_id: UUID, after_seq: int) -> Sequence[Scene]:
    """Return the scenes of another line of the chat that end after a seq and that a person has worked on, in order.

    The person set or removed the break, or wrote the recap or the title. Breaks that a truncation removed are included.
    """
    query = select(Scene).where(
        Scene.chat_key == head.chat_key,
        Scene.line_id == line_id,
        Scene.last_seq > after_seq,
        (Scene.closed_by == "person") | Scene.is_written | Scene.titled | Scene.lifted_at.is_not(None),
    )
    return (await db_session.execute(query.order_by(Scene.last_seq))).scalars().all()


async def renumber_after(db_session: DbSession, head: Head, last_seq: int, by: int) -> None:
    """Add `by` to the numbers of the closed scenes after a break."""
    await db_session.flush()
    await db_session.raw.execute(_RENUMBER, *head.line, last_seq, by)


async def find_break_before(db_session: DbSession, head: Head, seq: int) -> int:
    """Return the seq of the last break before a seq, or 0 if there is none."""
    found: int | None = await db_session.raw.fetchval(_BREAK_BEFORE, *head.line, seq)
    return found or 0


def _all(head: Head) -> Select[Scene]:
    query = select(Scene).where(Scene.chat_key == head.chat_key, Scene.line_id == head.line_id)
    return query.execution_options(populate_existing=True)


def _live(head: Head) -> Select[Scene]:
    return _all(head).where(Scene.lifted_at.is_(None))
