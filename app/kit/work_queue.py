"""The queue of due work in PostgreSQL. Redis only wakes the workers.

Due work is a row for each item, written in the transaction that makes it due, so no item is lost when a process dies.
An item belongs to an owner: a line of a chat, a user or a tenant. An item is ripe if its time has come, it has not
failed for good, and no worker holds it. A worker claims ripe items of an owner under a lease, which ends by the
database's clock. It writes each result in one transaction that checks the lease and deletes the row. A model may
therefore be called twice for an item, but the result is written once. `ripe_work` finds the owners with ripe items.
Each kind of work belongs to a `layer`, such as `memos`, whose jobs make the result.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import CheckConstraint, Index, Text, select, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import DbSession, Table, after_commit, defer
from app.kit.ids import uuid7
from app.kit.owners import NO_LINE, Owner
from app.kit.refusals import Refusal, read_refusals

log = logging.getLogger(__name__)

Time = TIMESTAMP(timezone=True)

RETRY_DELAYS_S = (1, 10, 60, 600, 3_600)
MAX_ATTEMPTS = len(RETRY_DELAYS_S) + 1
MAX_WAIT_S = 30
"""The maximum time by which repeated edits can postpone an item."""
LEASE_S, RENEW_S = 15, 5

IS_FREE = """(leased_until IS NULL
    OR leased_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute')"""
"""SQL: no worker holds the item. A lease that ends more than a minute from now does not count: it was made before
PostgreSQL's clock was set back."""

# A copied item gets a new id with the timestamp of its original, because the list of work is ordered by id.
_NEW_WORK_ID = "overlay(gen_random_uuid()::text PLACING left(work_id::text, 15) FROM 1 FOR 15)::uuid"

# Attempts at a copy are counted from zero, unless its original has failed for good.
_COPIED_ATTEMPTS = "CASE WHEN failed_at IS NULL THEN 0 ELSE attempts END"


class WorkItem(Table):
    """An item of due work: `key` identifies it among those of an owner and a layer.

    `failed_at` is set when the final attempt failed; the row stays, so that the failure can be shown and retried.
    `run_after` is infinity while the item is parked. Either all items of an owner are parked or none is. `first_due_at`
    is when the item began to wait: when it was first scheduled, when its latest attempt failed, or when it was made due
    again. `start_over` (`kit/attempts.py`) delays the next attempt by the time since `first_due_at`, at least 1 and at
    most 60 seconds. It then sets `first_due_at` to the present minus this delay, so that the next delay is at least
    twice as long, up to 60 seconds. `user_id` is set if the owner is a user. `refusals` has the kind and the reason of
    each answer of the model that was refused since the item was last scheduled or started over. `progress` has the
    parts that earlier attempts have finished, for the next attempt.
    """

    __tablename__ = "work"
    __table_args__ = (
        CheckConstraint("attempts >= 0", name="attempts"),
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease"),
        CheckConstraint(f"user_id IS NULL OR line_id = '{NO_LINE}'", name="user"),
        Index("ix_work_ripe", "tenant", "run_after", postgresql_where=text("failed_at IS NULL")),
        Index("ix_work_soonest", "run_after", postgresql_where=text("failed_at IS NULL")),
        Index("ix_work_transient", "failed_at", postgresql_where=text("transient AND failed_at IS NOT NULL")),
        Index("ix_work_tenant", "tenant", "work_id"),
        Index("ix_work_failed", "tenant", "work_id", postgresql_where=text("failed_at IS NOT NULL")),
        {"postgresql_with": {"fillfactor": 70}, "info": {"begins": "at_seq"}},
    )

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    layer: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None]
    work_id: Mapped[UUID] = mapped_column(info={"copied_as": _NEW_WORK_ID})
    tenant: Mapped[str]
    at_seq: Mapped[int]
    run_after: Mapped[datetime] = mapped_column(Time)
    first_due_at: Mapped[datetime] = mapped_column(Time)
    attempts: Mapped[int] = mapped_column(server_default="0", info={"copied_as": _COPIED_ATTEMPTS})
    lease: Mapped[UUID | None] = mapped_column(info={"copied_as": "NULL"})
    leased_until: Mapped[datetime | None] = mapped_column(Time, info={"copied_as": "NULL"})
    error: Mapped[str | None] = mapped_column(Text)
    transient: Mapped[bool] = mapped_column(server_default="false")
    failed_at: Mapped[datetime | None] = mapped_column(Time)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    refusals: Mapped[list[dict[str, str]]] = mapped_column(JSONB, server_default="[]")
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


@dataclass(frozen=True, slots=True)
class WorkScheduled:
    """The event that work was scheduled; it wakes the workers."""


@dataclass(frozen=True, slots=True)
class NewWork:
    """An item to schedule: `key` identifies it in its layer; `at_seq` is its position on a line, 0 if it has none."""

    key: str
    at_seq: int = 0
    payload: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """An item whose lease this process holds."""

    owner: Owner
    layer: str
    key: str
    attempts: int
    lease: UUID
    work_id: UUID
    payload: dict[str, Any] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    progress: dict[str, Any] = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        """The owner's tenant."""
        return self.owner.tenant


async def schedule(
    db_session: DbSession,
    owner: Owner,
    layer: str,
    items: Sequence[NewWork],
    *,
    now: datetime,
    settle_s: float,
    parked: bool = False,
) -> None:
    """Schedule `items` for after the settle time and wake the workers.

    If an item with the same key is already due, it is updated:

    - The settle time starts again, but the item ripens at most 30 s (MAX_WAIT_S) after `first_due_at`.
    - A new payload replaces the old one. Without a new payload the old one stays.
    - The lease is cleared, because the source has changed. A worker that holds it cannot save its result.
    - The attempts start at zero. The refused answers and the finished parts of former attempts are dropped.

    An item that has failed for good is scheduled like a new one: its payload and `first_due_at` are replaced, too. If
    `parked`, the items are parked at once, like all others of their owner.
    """
    rows = [
        (new.key, uuid7(), new.at_seq, orjson.dumps(new.payload).decode() if new.payload else None) for new in items
    ]
    # Rows are locked in this order; all transactions use the same order to avoid deadlocks.
    rows.sort()
    scheduled = await db_session.raw.fetch(
        """
        INSERT INTO work (owner_key, line_id, user_id, layer, key, work_id, tenant, at_seq, run_after, first_due_at,
            payload)
        SELECT $1, $2, $13, $3, g.key, g.work_id, $4, g.at_seq, CASE WHEN $12 THEN 'infinity' ELSE $5::timestamptz END,
            $6, g.payload::jsonb
        FROM unnest($7::text[], $8::uuid[], $9::int[], $10::text[]) AS g (key, work_id, at_seq, payload)
        ON CONFLICT (owner_key, line_id, layer, key) DO UPDATE SET
            run_after = CASE WHEN work.failed_at IS NULL AND NOT $12
                THEN least(excluded.run_after, work.first_due_at + make_interval(secs => $11))
                ELSE excluded.run_after END,
            first_due_at = CASE WHEN work.failed_at IS NULL
                THEN least(work.first_due_at, excluded.first_due_at) ELSE excluded.first_due_at END,
            payload = CASE WHEN work.failed_at IS NULL
                THEN coalesce(excluded.payload, work.payload) ELSE excluded.payload END,
            attempts = 0, error = NULL, transient = false, failed_at = NULL, refusals = '[]', progress = NULL,
            lease = NULL, leased_until = NULL
        RETURNING work_id
        """,
        owner.key,
        owner.line_id,
        layer,
        owner.tenant,
        now + timedelta(seconds=settle_s),
        now,
        [key for key, _, _, _ in rows],
        [work_id for _, work_id, _, _ in rows],
        [at_seq for _, _, at_seq, _ in rows],
        [payload for _, _, _, payload in rows],
        float(MAX_WAIT_S),
        parked,
        owner.user_id,
    )
    fields = {"work": [row["work_id"] for row in scheduled]}
    after_commit(db_session, lambda: log.info("scheduled %s", layer, extra={"fields": fields}))
    defer(db_session, WorkScheduled())


async def claim(
    db_session: DbSession, owner: Owner, *, limit: int, now: datetime, anchor_seq: int = 0
) -> list[Claimed]:
    """Claim up to `limit` ripe items of an owner: first those before `anchor_seq`, then the others.

    In both groups, the items nearest to `anchor_seq` come first. `anchor_seq` is the seq at which the history in
    contexts of the line begins. Contexts contain the messages before the history only as memories, so the items of
    these messages come first. An attempt is counted when an item is claimed, so an item that crashes its workers also
    runs out of attempts: `attempts` above MAX_ATTEMPTS means that the last attempt crashed. Items of users and tenants
    have no position and are claimed in the order in which they ripened.
    """
    lease = uuid7()
    rows = await db_session.raw.fetch(
        f"""
        WITH ripe AS (
            SELECT layer, key FROM work
            WHERE owner_key = $1 AND line_id = $2 AND failed_at IS NULL AND run_after <= $3 AND {IS_FREE}
            ORDER BY at_seq >= $4, abs(at_seq - $4), run_after, key LIMIT $5 FOR UPDATE SKIP LOCKED
        )
        UPDATE work SET attempts = attempts + 1, lease = $6,
            leased_until = clock_timestamp() + make_interval(secs => $7)
        FROM ripe WHERE owner_key = $1 AND line_id = $2 AND work.layer = ripe.layer AND work.key = ripe.key
        RETURNING work.layer, work.key, work.work_id, work.attempts, work.payload::text AS payload,
            work.refusals::text AS refusals, work.progress::text AS progress
        """,  # noqa: S608 - composed of constants
        owner.key,
        owner.line_id,
        now,
        anchor_seq,
        limit,
        lease,
        float(LEASE_S),
    )
    return [
        Claimed(
            owner=owner,
            layer=row["layer"],
            key=row["key"],
            attempts=row["attempts"],
            lease=lease,
            work_id=row["work_id"],
            payload=orjson.loads(row["payload"]) if row["payload"] else {},
            refusals=read_refusals(row["refusals"]),
            progress=orjson.loads(row["progress"]) if row["progress"] else {},
        )
        for row in rows
    ]


async def renew(db_session: DbSession, claims: Sequence[Claimed]) -> None:
    """Extend the leases of claimed items. Skips locked rows, which are being completed or rescheduled."""
    await db_session.raw.execute(
        """
        WITH held AS (
            SELECT work.owner_key, work.line_id, work.layer, work.key
            FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[])
                AS mine (owner_key, line_id, layer, key, lease)
            JOIN work USING (owner_key, line_id, layer, key) WHERE work.lease = mine.lease
            FOR UPDATE OF work SKIP LOCKED
        )
        UPDATE work SET leased_until = clock_timestamp() + make_interval(secs => $6) FROM held
        WHERE work.owner_key = held.owner_key AND work.line_id = held.line_id AND work.layer = held.layer
            AND work.key = held.key
        """,
        *zip(*(_where(claimed) for claimed in claims), strict=True),
        float(LEASE_S),
    )


async def holds_lease(db_session: DbSession, claimed: Claimed) -> bool:
    """Return whether the lease is still held; locks the row until the transaction ends."""
    return bool(
        await db_session.raw.fetchval(
            "SELECT true FROM work WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5"
            " FOR UPDATE",
            *_where(claimed),
        )
    )


async def complete(db_session: DbSession, claimed: Claimed) -> None:
    """Delete an item whose result has been written, if the lease is still held."""
    await db_session.raw.execute(
        "DELETE FROM work WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        *_where(claimed),
    )


async def release(db_session: DbSession, claimed: Claimed) -> None:
    """Release a claim without counting the attempt, as a worker does when it stops."""
    await db_session.raw.execute(
        "UPDATE work SET lease = NULL, leased_until = NULL, attempts = attempts - 1"
        " WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
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
    final: bool = False,
) -> bool:
    """Record a failed attempt. The item is retried after a delay; after the last attempt it has failed for good.

    Returns whether the lease was still held. If not, nothing is recorded.

    Args:
        db_session: Open unit of work.
        claimed: The item.
        error: The cause, one line that is shown to people.
        transient: Whether the cause may pass without a change of the item: the model was down or overloaded, its key,
            account or settings were wrong, or the database refused to write. If this was the last attempt, the item is
            retried all the same when the model answers again.
        now: The service's time.
        retry_after_s: The minimum delay that the model's server asked for, or None.
        final: Whether no further attempt can succeed, so that this one is the last.

    """
    last = final or claimed.attempts >= MAX_ATTEMPTS
    wait_s = max(RETRY_DELAYS_S[min(claimed.attempts, len(RETRY_DELAYS_S)) - 1], retry_after_s or 0)
    status = await db_session.raw.execute(
        "UPDATE work SET lease = NULL, leased_until = NULL, error = $6, transient = $7, failed_at = $9,"
        " first_due_at = $10, run_after = CASE WHEN run_after = 'infinity' THEN run_after ELSE $8 END"
        " WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        *_where(claimed),
        error,
        transient,
        now + timedelta(seconds=wait_s),
        now if last else None,
        now,
    )
    return status == "UPDATE 1"


async def park(db_session: DbSession, owner: Owner) -> None:
    """Park all items of an owner, such as a line that is not current. Workers do not find parked items."""
    await db_session.raw.execute(
        "UPDATE work SET run_after = 'infinity' WHERE owner_key = $1 AND line_id = $2", owner.key, owner.line_id
    )


async def unpark(db_session: DbSession, owner: Owner, *, now: datetime) -> None:
    """Unpark all items of an owner; those that have not failed for good, and that no worker holds, are ripe at once."""
    await db_session.raw.execute(
        "UPDATE work SET run_after = $3, first_due_at = $3"
        " WHERE owner_key = $1 AND line_id = $2 AND run_after = 'infinity'",
        owner.key,
        owner.line_id,
        now,
    )


async def find_work(db_session: DbSession, owner: Owner, layer: str, key: str) -> WorkItem | None:
    """Return the item, whether it is due or has failed for good, or None if it does not exist."""
    query = select(WorkItem).where(
        WorkItem.owner_key == owner.key,
        WorkItem.line_id == owner.line_id,
        WorkItem.layer == layer,
        WorkItem.key == key,
    )
    return (await db_session.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def unschedule(db_session: DbSession, owner: Owner, layer: str, keys: Sequence[str]) -> bool:
    """Delete items, whether they are due, claimed or failed; return whether there were any.

    A worker that holds the lease of such an item loses the lease.
    """
    status = await db_session.raw.execute(
        "DELETE FROM work WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = ANY($4)",
        owner.key,
        owner.line_id,
        layer,
        list(keys),
    )
    return status != "DELETE 0"


async def cancel_automatic(db_session: DbSession, owner: Owner, layer: str, keys: Sequence[str]) -> bool:
    """Delete those items that have no payload; return whether there were any.

    Work that a person requested always has a payload, as does some work of the service.
    """
    status = await db_session.raw.execute(
        "DELETE FROM work WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = ANY($4) AND payload IS NULL",
        owner.key,
        owner.line_id,
        layer,
        list(keys),
    )
    return status != "DELETE 0"


def _where(claimed: Claimed) -> tuple[UUID, UUID, str, str, UUID]:
    return claimed.owner.key, claimed.owner.line_id, claimed.layer, claimed.key, claimed.lease
