"""Which owners a look finds, and that it costs the same however much is due."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from app.kit.db import Connection, Database
from app.kit.ids import chat_key, uuid7
from app.kit.owners import Owner
from app.kit.ripe_work import list_ripe_owners, next_ripe_at
from tests.conftest import NOON, sqlalchemy_url

LINE = Owner.of_line("t", chat_key("t", "c"), uuid7())
OTHER_LINE = Owner.of_line("t", chat_key("t", "c"), uuid7())
USER = Owner.of_user("t", "c")
TENANT = Owner.of_tenant("t")
EVERYWHERE = (UUID(int=0), UUID(int=2**128 - 1), LINE.key, USER.key, TENANT.key)

PARKED = "'infinity'"
RIPE = f"'{NOON}'::timestamptz"
A_SECOND_LATER = f"{RIPE} + interval '1 second'"


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing is due."""
    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=2)
    yield opened
    await opened.close()


async def add(connection: Connection, owner: Owner, count: int = 1, run_after: str = RIPE) -> None:
    """Insert `count` items; with `i` for the number of each, from 1 on, in `run_after`."""
    await connection.execute(
        f"""
        INSERT INTO work (owner_key, line_id, user_id, tenant, layer, key, work_id, at_seq, run_after, first_due_at)
        SELECT $1, $2, $3, $4, 'memos', i::text, gen_random_uuid(), i, {run_after}, {RIPE} FROM generate_series(1, $5) i
        """,
        owner.key,
        owner.line_id,
        owner.user_id,
        owner.tenant,
        count,
        timeout=300,
    )


async def found(
    database: Database, *, rows: int = 4, from_key: UUID = LINE.key, without: Sequence[str] = ()
) -> dict[Owner, int]:
    """The owners that a look finds, in its order, with their items."""
    async with database.unit_of_work() as db_session:
        ripe = await list_ripe_owners(db_session, now=NOON, rows=rows, from_key=from_key, without=without)
    return {one.owner: one.rows for one in ripe}


async def test_owners_of_every_kind_are_found(database: Database, connection: Connection) -> None:
    for number, owner in enumerate((TENANT, LINE, USER)):
        await add(connection, owner, 1 + number, f"{RIPE} - interval '{9 - number} seconds'")
    for from_key in EVERYWHERE:
        assert list((await found(database, from_key=from_key)).items()) == [(TENANT, 1), (LINE, 2), (USER, 3)]


async def test_unripe_leased_parked_and_failed_work_is_not_found(database: Database, connection: Connection) -> None:
    await add(connection, LINE, 3)
    await add(connection, OTHER_LINE, 2, PARKED)
    await add(connection, USER, 2, A_SECOND_LATER)
    await add(connection, TENANT)
    await connection.execute("UPDATE work SET failed_at = now() WHERE owner_key = $1 AND at_seq = 1", LINE.key)
    lease = "lease = gen_random_uuid(), leased_until = now() + interval '50 seconds'"
    await connection.execute(f"UPDATE work SET {lease} WHERE owner_key = $1 AND at_seq = 2", LINE.key)
    await connection.execute(f"UPDATE work SET {lease} WHERE owner_key = $1", TENANT.key)
    for from_key in EVERYWHERE:
        assert await found(database, from_key=from_key) == {LINE: 1}


async def test_a_flood_of_one_owner_hides_no_other_owner(database: Database, connection: Connection) -> None:
    counts = {LINE: 1_000, USER: 1, TENANT: 2, OTHER_LINE: 1}
    for owner, count in counts.items():
        await add(connection, owner, count, RIPE if owner == LINE else f"{RIPE} - interval '1 ms'")
    await connection.execute("UPDATE work SET run_after = run_after - interval '1 s' WHERE line_id = $1", LINE.line_id)
    for from_key in EVERYWHERE:
        ripe = await found(database, from_key=from_key)
        assert ripe == {owner: min(count, 4) for owner, count in counts.items()}
        assert next(iter(ripe)) == LINE, "the oldest comes first"


async def test_of_every_tenant_the_oldest_work_is_found(database: Database, connection: Connection) -> None:
    """Behind more owners than a run of them reaches."""
    for number in range(300):
        await add(connection, Owner.of_user("crowd", f"user {number}"))
    others = {Owner.of_tenant("alone"), Owner.of_user("zoe's", "zoe"), Owner.of_line("b", uuid7(), uuid7())}
    for owner in others:
        await add(connection, owner)
    ripe = await found(database, from_key=UUID(int=0))
    assert others < set(ripe)
    assert 64 <= len(ripe) < 300


async def test_owners_of_tenants_that_are_held_are_left_out(database: Database, connection: Connection) -> None:
    for owner in (LINE, USER, TENANT, Owner.of_user("u", "c")):
        await add(connection, owner)
    assert await found(database, without=["t"]) == {Owner.of_user("u", "c"): 1}
    assert await found(database, without=["t", "u"]) == {}


async def test_the_cost_of_a_poll_is_the_same_with_100_000_items(database: Database, connection: Connection) -> None:
    """Also with a plan that was made while the queue was empty, as queues are."""
    await connection.execute("VACUUM ANALYZE work")
    for _ in range(10):  # after five times PostgreSQL keeps a plan
        await found(database)
    for number in range(300):
        await add(connection, Owner.of_user(f"t{number % 4}", f"user {number}"), 4)
    before = await _read_rows(database)
    await add(connection, LINE, 50_000)
    await add(connection, USER, 50_000, f"{RIPE} - make_interval(secs => i)")
    for _ in range(20):
        await add(connection, Owner.of_line("t", LINE.key, uuid7()), 2_000, PARKED)
    behind = [await _read_rows(database)]
    await connection.execute("VACUUM ANALYZE work")
    behind += [await _read_rows(database)]
    assert 300 < before < 3_000
    assert max(behind) < before + 100, (before, behind)


async def test_the_next_item_ripens_when_it_is_due(connection: Connection) -> None:
    async def next_at() -> float | None:
        ripens = await next_ripe_at(connection, now=NOON)
        return None if ripens is None else (ripens - NOON) / timedelta(seconds=1)

    await add(connection, LINE, 1, PARKED)
    await add(connection, TENANT)
    assert await next_at() is None
    await add(connection, USER, 2, f"{RIPE} + make_interval(secs => 3 * i)")
    assert await next_at() == 3
    await connection.execute("UPDATE work SET failed_at = now() WHERE key = '1'")
    assert await next_at() == 6


async def _read_rows(database: Database) -> int:
    """How many rows of the table and entries of its indexes a look reads, by PostgreSQL's own count."""
    count = """SELECT seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'work')
        FROM pg_stat_user_tables WHERE relname = 'work'"""

    async def read() -> int:
        async with database.raw() as connection:
            await connection.execute("SELECT pg_stat_force_next_flush()")
            return int(await connection.fetchval(count))

    before = await read()
    await found(database, from_key=UUID(int=LINE.key.int - 1))  # which begins with the lines of this chat
    return await read() - before
