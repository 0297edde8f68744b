"""How PostgreSQL finds failed work among due work."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event

from app.kit.auth import Caller
from app.kit.clock import SteppedClock
from app.kit.db import Database, DbSession
from app.operations import queries

DUE = 3_000
FAILED = 3

_FILL = """
    INSERT INTO work (owner_key, line_id, user_id, tenant, layer, key, work_id, at_seq, run_after, first_due_at,
        failed_at)
    SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'mira', $1, 'memos', n::text,
        gen_random_uuid(), 0, at, at, CASE WHEN n > $3 THEN at END
    FROM (SELECT $2::timestamptz AS at) AS now, generate_series(1, $3::int + $4::int) AS n"""

Find = Callable[..., Awaitable[Sequence[Any]]]


class _Undone(Exception):
    """Rolls back a test's rows."""


@pytest.mark.parametrize("after", [None, UUID(int=0)], ids=["first page", "next page"])
@pytest.mark.parametrize(
    "find",
    [partial(queries.list_work, status="failed"), partial(queries.list_failed, layer=None)],
    ids=["list", "retry"],
)
async def test_failed_work_is_found_without_reading_due_work(
    database: Database, tenant: str, clock: SteppedClock, find: Find, after: UUID | None
) -> None:
    caller = Caller(tenant, frozenset({"read", "write"}))
    search = partial(find, caller=caller, chat_id=None, after=after, limit=50)
    async with _rolled_back(database) as db_session:
        for one in (*(f"a{n}" for n in range(9)), tenant):
            await db_session.raw.execute(_FILL, one, clock(), DUE, FAILED)
        await db_session.raw.execute("ANALYZE work")
        assert len(await search(db_session)) == FAILED
        plan = await _explain(db_session, search)
    assert "ix_work_failed" in plan
    assert "Rows Removed by Filter" not in plan


@asynccontextmanager
async def _rolled_back(database: Database) -> AsyncIterator[DbSession]:
    with suppress(_Undone):
        async with database.unit_of_work() as db_session:
            yield db_session
            raise _Undone


async def _explain(db_session: DbSession, find: Find) -> str:
    """The plan of the one statement that `find` runs."""
    seen: list[tuple[str, tuple[Any, ...]]] = []

    def keep(_connection: Any, _cursor: Any, statement: str, parameters: tuple[Any, ...], *_more: Any) -> None:
        seen.append((statement, parameters))

    connection = await db_session.connection()
    event.listen(connection.sync_connection, "before_cursor_execute", keep)
    await find(db_session)
    event.remove(connection.sync_connection, "before_cursor_execute", keep)
    ((statement, parameters),) = seen
    rows = await db_session.raw.fetch(f"EXPLAIN (ANALYZE) {statement}", *parameters)
    return "\n".join(row[0] for row in rows)
