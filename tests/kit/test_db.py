"""One committer: what a unit of work leaves behind when it fails, is cancelled, or loses its connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import asyncpg
import pytest

from app.kit.db import Database, DbSession, after_commit, defer, open_connections
from app.kit.errors import NotFound, Unavailable
from tests.conftest import sqlalchemy_url
from tests.slowness import SLOWNESS

PATIENCE_S = 10 * SLOWNESS
NOWHERE = "postgresql+asyncpg://nobody@127.0.0.1:1/nothing"


@pytest.fixture
async def own_url(fresh_database_url: str) -> str:
    """A database with one empty table of numbers."""
    admin = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    await admin.execute("CREATE TABLE numbers (n int PRIMARY KEY)")
    await admin.close()
    return sqlalchemy_url(fresh_database_url)


@pytest.fixture
async def single(own_url: str) -> AsyncIterator[Database]:
    """A database with one connection: whatever was done to it, the next one gets it."""
    database = Database(own_url, pool_size=1, statement_s=3_600)
    yield database
    await database.close()


async def insert(database: Database, n: int) -> None:
    async with database.unit_of_work() as db_session:
        await db_session.raw.execute("INSERT INTO numbers VALUES ($1)", n)


async def numbers(own_url: str) -> list[int]:
    """What everybody else sees."""
    other = await asyncpg.connect(own_url.replace("+asyncpg", ""))
    try:
        return [row["n"] for row in await other.fetch("SELECT n FROM numbers ORDER BY n")]
    finally:
        await other.close()


async def test_a_unit_of_work_commits_when_it_ends(single: Database, own_url: str) -> None:
    await insert(single, 1)
    assert await numbers(own_url) == [1]


async def test_a_unit_of_work_rolls_back_when_it_raises(single: Database, own_url: str) -> None:
    async def refuse() -> None:
        async with single.unit_of_work() as db_session:
            await db_session.raw.execute("INSERT INTO numbers VALUES (1)")
            raise NotFound("There is no such thing.")

    with pytest.raises(NotFound):
        await refuse()
    assert await numbers(own_url) == []
    await insert(single, 2)
    assert await numbers(own_url) == [2]


async def test_a_swallowed_database_error_is_not_committed(single: Database, own_url: str) -> None:
    async def swallow() -> None:
        async with single.unit_of_work() as db_session:
            await db_session.raw.execute("INSERT INTO numbers VALUES (1)")
            with pytest.raises(asyncpg.UniqueViolationError):
                await db_session.raw.execute("INSERT INTO numbers VALUES (1)")

    with pytest.raises(RuntimeError, match="had failed"):
        await swallow()
    assert await numbers(own_url) == []


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_a_cancelled_unit_of_work_leaves_a_clean_connection(single: Database, own_url: str, cancels: int) -> None:
    await insert(single, 0)
    for step in range(1, 60):
        work = asyncio.create_task(insert(single, step))
        for _ in range(step % 30):
            await asyncio.sleep(0)
        for _ in range(cancels):
            work.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(work, return_exceptions=True)
        await insert(single, 1_000 + step)  # were a transaction left open, this would be a part of it
    assert [n for n in await numbers(own_url) if n >= 1_000] == list(range(1_001, 1_060))


async def test_a_unit_of_work_cancelled_twice_releases_its_locks(single: Database, own_url: str) -> None:
    await insert(single, 1)
    locked = asyncio.Event()

    async def hang() -> None:
        async with single.unit_of_work() as db_session:
            await db_session.raw.execute("SELECT n FROM numbers FOR UPDATE")
            locked.set()
            await db_session.raw.execute("SELECT pg_sleep(3600)")

    work = asyncio.create_task(hang())
    await locked.wait()
    for _ in range(2):
        work.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await work
    async with asyncio.timeout(PATIENCE_S):
        async with single.unit_of_work() as db_session:
            await db_session.raw.execute("DELETE FROM numbers")
    assert await numbers(own_url) == []


async def test_a_cancelled_read_leaves_its_connection_to_the_next(single: Database) -> None:
    for _ in range(3):
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02), single.raw() as connection:
                    await connection.execute("SELECT pg_sleep(3600)")
            async with single.raw() as connection:
                assert await connection.fetchval("SELECT 1") == 1


async def test_connections_that_the_server_closed_are_replaced(own_url: str) -> None:
    database = Database(own_url, pool_size=3)
    async with AsyncExitStack() as open_all:
        pids = [
            await (await open_all.enter_async_context(database.raw())).fetchval("SELECT pg_backend_pid()")
            for _ in range(3)
        ]
    admin = await asyncpg.connect(own_url.replace("+asyncpg", ""))
    await admin.fetch("SELECT pg_terminate_backend(pid, 5000) FROM unnest($1::int[]) AS pid", pids)
    await admin.close()
    for _ in range(3):
        async with database.raw() as connection:
            assert await connection.fetchval("SELECT 1") == 1
    async with AsyncExitStack() as open_all:
        for n in range(3):
            db_session = await open_all.enter_async_context(database.unit_of_work())
            await db_session.raw.execute("INSERT INTO numbers VALUES ($1)", n)
    assert await numbers(own_url) == [0, 1, 2]
    await database.close()


async def test_a_lost_connection_is_unavailable_and_changes_nothing(single: Database, own_url: str) -> None:
    async def lose() -> None:
        async with single.unit_of_work() as db_session:
            await db_session.raw.execute("INSERT INTO numbers VALUES (1)")
            await db_session.raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            await db_session.raw.execute("INSERT INTO numbers VALUES (2)")

    with pytest.raises(Unavailable):
        await lose()
    await insert(single, 3)
    assert await numbers(own_url) == [3]


async def test_a_server_that_is_away_is_unavailable() -> None:
    database = Database(NOWHERE, pool_size=1)
    with pytest.raises(Unavailable):
        await insert(database, 1)
    with pytest.raises(Unavailable):
        async with database.raw():
            pass
    await database.close()


async def test_more_work_than_connections_waits_its_turn(own_url: str) -> None:
    database = Database(own_url, pool_size=2)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(insert(database, n) for n in range(40)))
    assert await numbers(own_url) == list(range(40))
    await database.close()


class First(NamedTuple):
    payload: object


class Second(NamedTuple):
    payload: object


def recording(seen: list[str], **steps: Callable[[DbSession], None]) -> dict[type, Any]:
    """Followers that write down their name, then take a step."""

    def follower(name: str) -> Any:
        async def follow(db_session: DbSession, event: First | Second) -> None:
            seen.append(f"{name}:{event.payload}")
            if name in steps:
                steps[name](db_session)

        return follow

    return {First: follower("first"), Second: follower("second")}


async def test_deferred_calls_run_in_order_before_the_commit(own_url: str) -> None:
    seen: list[str] = []
    database = Database(
        own_url,
        pool_size=1,
        followers=recording(seen, first=lambda db_session: defer(db_session, Second("from first"))),
    )
    async with database.unit_of_work() as db_session:
        after_commit(db_session, lambda: seen.append("committed"))
        defer(db_session, First(1))
        defer(db_session, Second(2))
        assert seen == []
        await db_session.run_deferred()
        assert seen == ["first:1", "second:2", "second:from first"]
        defer(db_session, Second(3))
    assert seen[3:] == ["second:3", "committed"]
    await database.close()


async def test_handlers_that_defer_endlessly_roll_the_change_back(own_url: str) -> None:
    database = Database(
        own_url, pool_size=1, followers=recording([], first=lambda db_session: defer(db_session, First(None)))
    )

    async def circle() -> None:
        async with database.unit_of_work() as db_session:
            await db_session.raw.execute("INSERT INTO numbers VALUES (1)")
            defer(db_session, First(None))

    with pytest.raises(RuntimeError, match="without end"):
        await circle()
    assert await numbers(own_url) == []
    await database.close()


async def test_no_after_commit_call_runs_after_a_rollback(single: Database) -> None:
    called: list[str] = []

    async def refuse() -> None:
        async with single.unit_of_work() as db_session:
            after_commit(db_session, lambda: called.append("committed"))
            raise NotFound("There is no such thing.")

    with pytest.raises(NotFound):
        await refuse()
    assert called == []


async def test_databases_of_a_process_can_share_their_connections(own_url: str) -> None:
    connections = open_connections(own_url, pool_size=1)
    one, other = (Database(own_url, pool_size=1, connections=connections) for _ in range(2))
    used = []
    for database in (one, other, one):
        async with database.raw() as connection:
            used.append(connection)
    assert len(set(map(id, used))) == 1
    await one.close()
    assert connections.list_idle() == used[:1]
    await connections.close()
    assert connections.list_idle() == []
    assert used[0].is_closed()
