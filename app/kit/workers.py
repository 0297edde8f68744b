"""The workers that are running, and how long ripe work has waited for them.

Each worker reports: it writes the time, by the clock of PostgreSQL, into a row of its own. A worker that ends deletes
its row. If a worker is killed, its row stays and is no longer updated. `kit/work_queue.py` says when work is ripe.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Connection, Table
from app.kit.work_queue import IS_FREE

BEAT_S: Final = 5.0
"""The time between two reports of a worker, in seconds."""

SILENT_S: Final = 30.0
"""After this many seconds without a report, a worker no longer runs, or cannot reach the database."""

_FORGET_S = 86_400.0

# A report from the future was made before PostgreSQL's clock was set back, and does not show that the worker runs now.
_REPORTS = f"""seen_at BETWEEN clock_timestamp() - interval '{SILENT_S} seconds'
    AND clock_timestamp() + interval '{SILENT_S} seconds'"""


class Worker(Table):
    """A worker that runs, or that was killed within the last day."""

    __tablename__ = "workers"
    __table_args__ = ({"info": {"has_lines": False}},)

    worker_id: Mapped[UUID] = mapped_column(primary_key=True)
    started_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=func.now())
    seen_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))


async def report(connection: Connection, worker_id: UUID) -> None:
    """Write that the worker runs, and delete the rows of workers that have not reported for a day."""
    await connection.execute(
        """
        WITH forgotten AS (DELETE FROM workers WHERE seen_at < clock_timestamp() - make_interval(secs => $2))
        INSERT INTO workers (worker_id, seen_at) VALUES ($1, clock_timestamp())
        ON CONFLICT (worker_id) DO UPDATE SET seen_at = excluded.seen_at
        """,
        worker_id,
        _FORGET_S,
    )


async def sign_off(connection: Connection, worker_id: UUID) -> None:
    """Delete the worker's row, because the worker ends."""
    await connection.execute("DELETE FROM workers WHERE worker_id = $1", worker_id)


async def has_reported(connection: Connection, worker_id: UUID) -> bool | None:
    """Return whether the worker has reported within `SILENT_S`; None if it has no row.

    A worker has no row before its first report, after it has ended, and after it was silent for a day.
    """
    reported: bool | None = await connection.fetchval(
        f"SELECT {_REPORTS} FROM workers WHERE worker_id = $1",  # noqa: S608 - constant
        worker_id,
    )
    return reported


async def count_workers(connection: Connection) -> int:
    """Return the number of workers that have reported within `SILENT_S`."""
    count: int = await connection.fetchval(f"SELECT count(*) FROM workers WHERE {_REPORTS}")  # noqa: S608 - constant
    return count


async def find_lateness_s(connection: Connection, *, now: datetime, without: Sequence[str] = ()) -> float:
    """Return for how many seconds the oldest ripe item has waited for a worker; 0 if there is none.

    Args:
        connection: The database.
        now: The time by the service's clock.
        without: Tenants whose work is held, because they have reached their token limits.

    """
    seconds: float | None = await connection.fetchval(
        f"""
        SELECT extract(epoch FROM $1 - min(run_after))::float8 FROM work
        WHERE failed_at IS NULL AND run_after <= $1 AND NOT tenant = ANY($2) AND {IS_FREE}
        """,  # noqa: S608 - composed of constants
        now,
        list(without),
    )
    return seconds or 0.0
