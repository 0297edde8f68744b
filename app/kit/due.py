"""Due work: PostgreSQL says what is due, Redis only rings.

Due work is a row for each thing to make, written in the transaction that made it due, so nothing is
forgotten when a process dies. A worker claims ripe rows under a lease by the database's clock; what it
makes is written in one transaction that checks the lease and deletes the row. A call to a model may so
happen twice, a result never.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import CheckConstraint, Index, Text, select, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import DbSession, Table
from app.kit.ids import uuid7

Time = TIMESTAMP(timezone=True)

RETRY_DELAYS_S = (1, 10, 60, 600, 3_600)
MAX_ATTEMPTS = len(RETRY_DELAYS_S) + 1
MAX_WAIT_S = 30
"""Edits push due work back by the settle time again and again, but not longer than this."""
LEASE_S = 15
RENEW_S = 5

# Another id with the time of the former: the list of work is ordered by it.
_NEW_WORK_ID = "overlay(gen_random_uuid()::text PLACING left(work_id::text, 15) FROM 1 FOR 15)::uuid"


class Work(Table):
    """One thing that is to be made: the row `key` of `layer` on a line.

    `failed_at` is set when it has been tried often enough; the row stays, so that it can be seen and retried.
    """

    __tablename__ = "work"
    __table_args__ = (
        CheckConstraint("attempts >= 0", name="attempts"),
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease"),
        Index("ix_work_ripe", "tenant", "run_after", postgresql_where=text("failed_at IS NULL")),
        Index("ix_work_soonest", "run_after", postgresql_where=text("failed_at IS NULL")),
        Index("ix_work_transient", "failed_at", postgresql_where=text("transient AND failed_at IS NOT NULL")),
        Index("ix_work_tenant", "tenant", "work_id"),
        {"postgresql_with": {"fillfactor": 70}, "info": {"begins": "at_seq"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    layer: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    work_id: Mapped[UUID] = mapped_column(info={"copied_as": _NEW_WORK_ID})
    tenant: Mapped[str]
    at_seq: Mapped[int]
    run_after: Mapped[datetime] = mapped_column(Time)
    first_due_at: Mapped[datetime] = mapped_column(Time)
    attempts: Mapped[int] = mapped_column(server_default="0")
    lease: Mapped[UUID | None] = mapped_column(info={"copied_as": "NULL"})
    leased_until: Mapped[datetime | None] = mapped_column(Time, info={"copied_as": "NULL"})
    error: Mapped[str | None] = mapped_column(Text)
    transient: Mapped[bool] = mapped_column(server_default="false")
    failed_at: Mapped[datetime | None] = mapped_column(Time)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


@dataclass(frozen=True, slots=True)
class Due:
    """A thing to make: `key` within `layer`; `at_seq` is where on the line it belongs."""

    key: str
    at_seq: int
    payload: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of due work that this process holds the lease of."""

    tenant: str
    chat_key: UUID
    line_id: UUID
    layer: str
    key: str
    attempts: int
    lease: UUID
    payload: dict[str, Any] = field(default_factory=dict)


async def add_due(
    db_session: DbSession,
    *,
    tenant: str,
    chat_key: UUID,
    line_id: UUID,
    layer: str,
    items: Sequence[Due],
    now: datetime,
    settle_s: float,
    rests: bool = False,
) -> None:
    """Make `items` due after the settle time; one that is due already waits again, at most 30 s in all.

    Where the line `rests`, so do they, until it is woken.
    Whoever is working on one loses the lease: its source has changed. A payload that it waits with stays
    unless a new one is given; one that failed for good begins with nothing.
    """
    await db_session.raw.execute(
        """
        INSERT INTO work (chat_key, line_id, layer, key, work_id, tenant, at_seq, run_after, first_due_at, payload)
        SELECT $1, $2, $3, g.key, g.work_id, $4, g.at_seq, CASE WHEN $12 THEN 'infinity' ELSE $5::timestamptz END, $6,
            g.payload::jsonb
        FROM unnest($7::text[], $8::uuid[], $9::int[], $10::text[]) AS g (key, work_id, at_seq, payload)
        ON CONFLICT (chat_key, line_id, layer, key) DO UPDATE SET
            run_after = CASE WHEN work.failed_at IS NULL AND NOT $12
                THEN least(excluded.run_after, work.first_due_at + make_interval(secs => $11))
                ELSE excluded.run_after END,
            first_due_at = CASE WHEN work.failed_at IS NULL THEN work.first_due_at ELSE excluded.first_due_at END,
            payload = CASE WHEN work.failed_at IS NULL
                THEN coalesce(excluded.payload, work.payload) ELSE excluded.payload END,
            attempts = 0, error = NULL, transient = false, failed_at = NULL,
            lease = NULL, leased_until = NULL
        """,
        chat_key,
        line_id,
        layer,
        tenant,
        now + timedelta(seconds=settle_s),
        now,
        [item.key for item in items],
        [uuid7() for _ in items],
        [item.at_seq for item in items],
        [orjson.dumps(item.payload).decode() if item.payload else None for item in items],
        float(MAX_WAIT_S),
        rests,
    )


async def claim(
    db_session: DbSession, *, chat_key: UUID, line_id: UUID, anchor_seq: int, limit: int, now: datetime
) -> list[Claimed]:
    """Claim up to `limit` ripe rows of one line: those just before the anchor first, then those after it.

    The attempt counts from here on, so one that kills its workers uses its attempts up like any other:
    `attempts` above MAX_ATTEMPTS says that no worker survived making it.
    """
    lease = uuid7()
    rows = await db_session.raw.fetch(
        """
        WITH ripe AS (
            SELECT layer, key FROM work
            WHERE chat_key = $1 AND line_id = $2 AND failed_at IS NULL AND run_after <= $3
                AND (leased_until IS NULL OR leased_until < clock_timestamp())
            ORDER BY at_seq >= $4, abs(at_seq - $4), key LIMIT $5 FOR UPDATE SKIP LOCKED
        )
        UPDATE work SET attempts = attempts + 1, lease = $6,
            leased_until = clock_timestamp() + make_interval(secs => $7)
        FROM ripe WHERE chat_key = $1 AND line_id = $2 AND work.layer = ripe.layer AND work.key = ripe.key
        RETURNING work.tenant, work.layer, work.key, work.attempts, work.payload::text AS payload
        """,
        chat_key,
        line_id,
        now,
        anchor_seq,
        limit,
        lease,
        float(LEASE_S),
    )
    return [
        Claimed(
            tenant=row["tenant"],
            chat_key=chat_key,
            line_id=line_id,
            layer=row["layer"],
            key=row["key"],
            attempts=row["attempts"],
            lease=lease,
            payload=orjson.loads(row["payload"]) if row["payload"] else {},
        )
        for row in rows
    ]


async def renew(db_session: DbSession, claims: Sequence[Claimed]) -> None:
    """Keep the leases of what is still being made; a row that is being written just now needs none."""
    await db_session.raw.execute(
        """
        WITH held AS (
            SELECT work.chat_key, work.line_id, work.layer, work.key
            FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[])
                AS mine (chat_key, line_id, layer, key, lease)
            JOIN work USING (chat_key, line_id, layer, key) WHERE work.lease = mine.lease
            FOR UPDATE OF work SKIP LOCKED
        )
        UPDATE work SET leased_until = clock_timestamp() + make_interval(secs => $6) FROM held
        WHERE work.chat_key = held.chat_key AND work.line_id = held.line_id AND work.layer = held.layer
            AND work.key = held.key
        """,
        *zip(*(_where(claimed) for claimed in claims), strict=True),
        float(LEASE_S),
    )


async def holds_lease(db_session: DbSession, claimed: Claimed) -> bool:
    """Whether the claim still stands; its row is locked until the transaction ends."""
    return bool(
        await db_session.raw.fetchval(
            "SELECT true FROM work WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5"
            " FOR UPDATE",
            *_where(claimed),
        )
    )


async def finish(db_session: DbSession, claimed: Claimed) -> None:
    """It is made: the row goes."""
    await db_session.raw.execute(
        "DELETE FROM work WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        *_where(claimed),
    )


async def release(db_session: DbSession, claimed: Claimed) -> None:
    """Give a claim back unused, as a worker does that is told to stop; the attempt does not count."""
    await db_session.raw.execute(
        "UPDATE work SET lease = NULL, leased_until = NULL, attempts = attempts - 1"
        " WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        *_where(claimed),
    )


async def record_failure(
    db_session: DbSession,
    claimed: Claimed,
    *,
    error: str,
    transient: bool,
    now: datetime,
    retry_after_s: float | None = None,
) -> None:
    """It failed for now: again after the next delay, or for good after the last.

    Args:
        db_session: Open unit of work.
        claimed: What was tried.
        error: One line for a person.
        transient: Whether the cause passes by itself (connection, time-out, 429, 5xx).
        now: The service's time.
        retry_after_s: The least wait that the model asked for.

    """
    last = claimed.attempts >= MAX_ATTEMPTS
    wait_s = max(RETRY_DELAYS_S[min(claimed.attempts, len(RETRY_DELAYS_S)) - 1], retry_after_s or 0)
    await db_session.raw.execute(
        "UPDATE work SET lease = NULL, leased_until = NULL, error = $6, transient = $7, failed_at = $9,"
        " run_after = CASE WHEN run_after = 'infinity' THEN run_after ELSE $8 END"
        " WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        *_where(claimed),
        error,
        transient,
        now + timedelta(seconds=wait_s),
        now if last else None,
    )


async def revive_transient(db_session: DbSession, *, now: datetime, limit: int = 500) -> int:
    """Make due again what failed for good while the model was away, unless it rests; returns how many rows."""
    revived = await db_session.raw.fetch(
        """
        UPDATE work SET failed_at = NULL, attempts = 0, first_due_at = $1, run_after = $1
        WHERE (chat_key, line_id, layer, key) IN (
            SELECT chat_key, line_id, layer, key FROM work
            WHERE transient AND failed_at IS NOT NULL AND run_after < 'infinity'
            ORDER BY failed_at LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1
        """,
        now,
        limit,
    )
    return len(revived)


async def next_ripe_at(db_session: DbSession, *, now: datetime) -> datetime | None:
    """When the next row ripens after `now`, or None."""
    ripens: datetime | None = await db_session.raw.fetchval(
        "SELECT run_after FROM work WHERE failed_at IS NULL AND run_after > $1 AND run_after < 'infinity'"
        " ORDER BY run_after LIMIT 1",
        now,
    )
    return ripens


async def rest(db_session: DbSession, chat_key: UUID, line_id: UUID) -> None:
    """Let the due work of a line that is not current rest: no worker comes across it while it looks for ripe work."""
    await db_session.raw.execute(
        "UPDATE work SET run_after = 'infinity' WHERE chat_key = $1 AND line_id = $2", chat_key, line_id
    )


async def wake(db_session: DbSession, chat_key: UUID, line_id: UUID, *, now: datetime) -> None:
    """Make the due work of a line that has become current ripe, as much of it as rested."""
    await db_session.raw.execute(
        "UPDATE work SET run_after = $3, first_due_at = $3"
        " WHERE chat_key = $1 AND line_id = $2 AND run_after = 'infinity'",
        chat_key,
        line_id,
        now,
    )


async def find_work(db_session: DbSession, *, chat_key: UUID, line_id: UUID, layer: str, key: str) -> Work | None:
    """The row of one thing that is due or has failed for good, if it is."""
    query = select(Work).where(Work.chat_key == chat_key, Work.line_id == line_id, Work.layer == layer, Work.key == key)
    return (await db_session.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def delete_work(db_session: DbSession, *, chat_key: UUID, line_id: UUID, layer: str, keys: Sequence[str]) -> None:
    """Forget due work; whoever is making it finds no lease."""
    await db_session.raw.execute(
        "DELETE FROM work WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = ANY($4)",
        chat_key,
        line_id,
        layer,
        list(keys),
    )


async def forget_unasked(
    db_session: DbSession, *, chat_key: UUID, line_id: UUID, layer: str, keys: Sequence[str]
) -> None:
    """Forget due work that nobody gave a payload: what it was due for is as it was before."""
    await db_session.raw.execute(
        "DELETE FROM work WHERE chat_key = $1 AND line_id = $2 AND layer = $3 AND key = ANY($4) AND payload IS NULL",
        chat_key,
        line_id,
        layer,
        list(keys),
    )


def _where(claimed: Claimed) -> tuple[UUID, UUID, str, str, UUID]:
    return claimed.chat_key, claimed.line_id, claimed.layer, claimed.key, claimed.lease
