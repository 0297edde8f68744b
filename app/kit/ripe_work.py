"""Queries for owners with ripe work, at a cost that does not grow with the amount of work.

An item is ripe if its `run_after` has passed, it has not failed for good, and no worker holds an unexpired lease on it.
An item whose `run_after` is infinity is parked: it is kept back while its line is not current. `list_ripe_owners`
combines two searches. One reads the oldest ripe items of each tenant, so it finds some if there are any. The other
reads some owners in key order from a random key on, so that an owner with very many items cannot hide the others. Every
step is an index probe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.kit.db import Connection, DbSession
from app.kit.owners import NO_LINE, Owner
from app.kit.planner import PROBES_ONLY, is_equal
from app.kit.work_queue import IS_FREE

_RUN_OWNERS = 64
"""The maximum number of owners that a run reads. One run goes from a random key to the last key, the other from the
first key to the random one."""

_LAST_KEY = UUID(int=2**128 - 1)

_CLAIMABLE = f"w.failed_at IS NULL AND w.run_after <= $1 AND {IS_FREE}"

# Skips from the first index entry of a tenant to that of the next one; DISTINCT would read all entries.
WAITING_TENANTS = """waiting_tenants (tenant) AS (
        (SELECT w.tenant FROM work w WHERE w.failed_at IS NULL ORDER BY w.tenant, w.run_after LIMIT 1)
        UNION ALL
        SELECT next.tenant FROM waiting_tenants AS former CROSS JOIN LATERAL (
            SELECT w.tenant FROM work w WHERE w.failed_at IS NULL AND w.tenant > former.tenant
            ORDER BY w.tenant, w.run_after LIMIT 1
        ) AS next
    )"""
"""Part of a recursive query: the tenants with items that have not failed for good."""

# Without `is_equal` the planner may use the index on the time alone and read the items of all tenants.
_OLDEST = f"""oldest (owner_key, line_id, tenant, user_id) AS (
        SELECT first.* FROM waiting_tenants AS waiting CROSS JOIN LATERAL (
            SELECT w.owner_key, w.line_id, w.tenant, w.user_id FROM work w
            WHERE {is_equal("w.tenant", "waiting.tenant")}
                AND {_CLAIMABLE}
            ORDER BY w.tenant, w.run_after LIMIT $2
        ) AS first WHERE waiting.tenant <> ALL($5::text[])
    )"""  # noqa: S608 - composed of constants

# Two runs of owners: from $3 to the end of all keys, and from their start to $3. Each step skips to the first item of
# the next owner. If this item is parked, all items of the owner are. $5 are tenants that are left out. Their owners
# count as steps, too: otherwise a run could become arbitrarily long.
_RUN = f"""run (owner_key, line_id, tenant, user_id, is_parked, last_key, steps) AS (
        VALUES ($3::uuid, '{_LAST_KEY}'::uuid, NULL::text, NULL::text, true, '{_LAST_KEY}'::uuid, 0),
            ('{NO_LINE}', '{NO_LINE}', NULL, NULL, true, $3, 0)
        UNION ALL
        SELECT next.*, run.last_key, run.steps + 1 FROM run CROSS JOIN LATERAL (
            SELECT w.owner_key, w.line_id, w.tenant, w.user_id, w.run_after = 'infinity' FROM work w
            WHERE (w.owner_key, w.line_id) > (run.owner_key, run.line_id) AND w.owner_key <= run.last_key
            ORDER BY w.owner_key, w.line_id LIMIT 1
        ) AS next WHERE run.steps < $4
    )"""  # noqa: S608 - composed of constants

_FOUND = """found AS (
        SELECT owner_key, line_id, tenant, user_id FROM oldest
        UNION
        SELECT owner_key, line_id, tenant, user_id FROM run WHERE NOT is_parked AND tenant <> ALL($5::text[])
    )"""

# The items are read in primary key order, so that the index is used and reading stops at the limit.
_COUNTED = f"""SELECT count(*)::int AS rows, min(run_after) AS since FROM (
            SELECT w.run_after FROM work w
            WHERE w.owner_key = found.owner_key AND w.line_id = found.line_id
                AND {_CLAIMABLE}
            ORDER BY w.layer, w.key LIMIT $2
        ) AS claimable"""  # noqa: S608 - composed of constants

_RIPE = f"""
    WITH RECURSIVE {WAITING_TENANTS}, {_OLDEST}, {_RUN}, {_FOUND}
    SELECT found.*, counted.rows FROM found CROSS JOIN LATERAL ({_COUNTED}) AS counted
    WHERE counted.rows > 0 ORDER BY counted.since, found.owner_key, found.line_id"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class RipeOwner:
    """An owner with ripe items; `rows` is their number, counted up to a limit."""

    owner: Owner
    rows: int


async def list_ripe_owners(
    db_session: DbSession, *, now: datetime, rows: int, from_key: UUID, without: Sequence[str] = ()
) -> list[RipeOwner]:
    """Return owners with ripe items, those that have waited longest first.

    Args:
        db_session: A unit of work that runs only short queries, because of `PROBES_ONLY`.
        now: The service's time.
        rows: The maximum number of items that are read for each tenant, the oldest first. It is also the maximum number
            that is counted for each owner, and only the counted items decide how long an owner has waited.
        from_key: The key at which the run of owners begins; choose it at random.
        without: Tenants whose owners are left out.

    """
    await db_session.raw.execute(PROBES_ONLY)
    found = await db_session.raw.fetch(_RIPE, now, rows, from_key, _RUN_OWNERS, without)
    return [
        RipeOwner(Owner(row["tenant"], row["owner_key"], row["line_id"], row["user_id"]), row["rows"]) for row in found
    ]


async def next_ripe_at(connection: Connection, *, now: datetime) -> datetime | None:
    """Return when the next item ripens after `now`, or None if none will."""
    ripens: datetime | None = await connection.fetchval(
        "SELECT run_after FROM work WHERE failed_at IS NULL AND run_after > $1 AND run_after < 'infinity'"
        " ORDER BY run_after LIMIT 1",
        now,
    )
    return ripens


async def list_revivable(connection: Connection, *, limit: int = 500) -> list[Owner]:
    """Return the owners of items that `revive_transient` can reschedule.

    These items have used up their attempts (`failed_at` is set), their last error was transient, and they are not
    parked. At most `limit` items are read, beginning with those that failed first.
    """
    rows = await connection.fetch(
        """
        SELECT DISTINCT tenant, owner_key, line_id, user_id FROM (
            SELECT tenant, owner_key, line_id, user_id FROM work
            WHERE transient AND failed_at IS NOT NULL AND run_after < 'infinity' ORDER BY failed_at LIMIT $1
        ) AS failed
        """,
        limit,
    )
    return [Owner(row["tenant"], row["owner_key"], row["line_id"], row["user_id"]) for row in rows]


async def revive_transient(db_session: DbSession, owner: Owner, *, now: datetime) -> list[str]:
    """Reschedule those items of an owner that failed with a transient error; return their layers.

    Only items that have used up their attempts (`failed_at` is set) are rescheduled. Skips parked items, and locked
    ones, which are being rescheduled or erased.
    """
    revived = await db_session.raw.fetch(
        """
        UPDATE work SET failed_at = NULL, attempts = 0, first_due_at = $3, run_after = $3
        WHERE (owner_key, line_id, layer, key) IN (
            SELECT owner_key, line_id, layer, key FROM work
            WHERE owner_key = $1 AND line_id = $2 AND transient AND failed_at IS NOT NULL AND run_after < 'infinity'
            FOR UPDATE SKIP LOCKED)
        RETURNING layer
        """,
        owner.key,
        owner.line_id,
        now,
    )
    return [row["layer"] for row in revived]


_STUCK = """failed_at IS NULL AND run_after > $1 AND run_after < 'infinity'
    AND first_due_at > $1::timestamptz + interval '1 second'"""
"""Items whose `first_due_at` is in the future, because the clock that wrote it was ahead, or ours was set back."""


async def list_stuck(connection: Connection, *, now: datetime, limit: int = 500) -> list[Owner]:
    """Return the owners of items that `hasten` makes ripe; at most `limit` items are read."""
    rows = await connection.fetch(
        f"""
        SELECT DISTINCT tenant, owner_key, line_id, user_id FROM (
            SELECT tenant, owner_key, line_id, user_id FROM work WHERE {_STUCK} ORDER BY run_after LIMIT $2
        ) AS stuck
        """,  # noqa: S608 - composed of constants
        now,
        limit,
    )
    return [Owner(row["tenant"], row["owner_key"], row["line_id"], row["user_id"]) for row in rows]


async def hasten(db_session: DbSession, owner: Owner, *, now: datetime) -> list[str]:
    """Make the stuck items of an owner ripe and return their layers. Skips locked items.

    An item is stuck if its times were set by a clock that is ahead of `now`: it would wait longer than intended.
    """
    hastened = await db_session.raw.fetch(
        f"""
        UPDATE work SET first_due_at = $1, run_after = $1
        WHERE (owner_key, line_id, layer, key) IN (
            SELECT owner_key, line_id, layer, key FROM work
            WHERE owner_key = $2 AND line_id = $3 AND {_STUCK} FOR UPDATE SKIP LOCKED)
        RETURNING layer
        """,  # noqa: S608 - composed of constants
        now,
        owner.key,
        owner.line_id,
    )
    return [row["layer"] for row in hastened]
