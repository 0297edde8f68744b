"""Due work: when a row ripens, who may have it, and what becomes of it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from app.kit import due
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.due import MAX_ATTEMPTS, RETRY_DELAYS_S, Claimed, Due
from app.kit.ids import uuid7
from tests.conftest import NOON, sqlalchemy_url

CHAT, LINE = uuid7(), uuid7()
PATIENCE_S = 10


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing is due."""
    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=4)
    yield opened
    await opened.close()


async def add(database: Database, clock: SteppedClock, *items: Due, settle_s: float = 0.0, rests: bool = False) -> None:
    async with database.unit_of_work() as db_session:
        await due.add_due(
            db_session,
            tenant="t",
            chat_key=CHAT,
            line_id=LINE,
            layer="memos",
            items=items,
            now=clock(),
            settle_s=settle_s,
            rests=rests,
        )


async def add_at(database: Database, clock: SteppedClock, *seqs: int) -> None:
    """Make something due at each of `seqs`."""
    await add(database, clock, *(Due(key=str(seq), at_seq=seq) for seq in seqs))


async def claim(database: Database, clock: SteppedClock, *, anchor_seq: int = 1, limit: int = 100) -> list[Claimed]:
    async with database.unit_of_work() as db_session:
        return await due.claim(db_session, chat_key=CHAT, line_id=LINE, anchor_seq=anchor_seq, limit=limit, now=clock())


async def fail(
    database: Database,
    clock: SteppedClock,
    claimed: Claimed,
    *,
    error: str = "no",
    transient: bool = False,
    retry_after_s: float | None = None,
) -> None:
    async with database.unit_of_work() as db_session:
        await due.record_failure(
            db_session, claimed, error=error, transient=transient, now=clock(), retry_after_s=retry_after_s
        )


async def rows(database: Database) -> list[asyncpg.Record]:
    async with database.raw() as connection:
        return await connection.fetch("SELECT *, leased_until - clock_timestamp() AS left FROM work ORDER BY at_seq")


async def only(database: Database) -> asyncpg.Record:
    (row,) = await rows(database)
    return row


async def change_all(database: Database, values: str) -> None:
    """Change every row behind the service's back."""
    async with database.raw() as connection:
        await connection.execute(f"UPDATE work SET {values}")


async def expire(database: Database) -> None:
    """Let every lease end, as 15 seconds do."""
    await change_all(database, "leased_until = clock_timestamp() - interval '1 second'")


def keys(claims: Sequence[Claimed]) -> set[str]:
    return {claimed.key for claimed in claims}


# --- when a row ripens ---


async def test_work_ripens_after_the_settle_time(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, Due("1", 1), settle_s=2)
    clock.step(1.999)
    assert await claim(database, clock) == []
    clock.step(0.001)
    assert keys(await claim(database, clock)) == {"1"}


async def test_work_made_due_again_waits_again_but_not_longer_than_thirty_seconds(
    database: Database, clock: SteppedClock
) -> None:
    await add(database, clock, Due("1", 1), settle_s=2)
    ripens = []
    for _ in range(30):
        clock.step(1.5)
        await add(database, clock, Due("1", 1), settle_s=2)
        ripens.append(((await only(database))["run_after"] - NOON).total_seconds())
    assert ripens == [min(1.5 * n + 2, 30) for n in range(1, 31)]
    assert (await only(database))["first_due_at"] == NOON


async def test_work_that_failed_for_good_begins_anew_when_it_is_made_due_again(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1)
    for delay_s in (*RETRY_DELAYS_S, 0):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, transient=True)
        clock.step(delay_s)
    assert (await only(database))["failed_at"] is not None
    clock.step(1_000)
    await add(database, clock, Due("1", 1, {"instruction": "again"}), settle_s=2)
    row = await only(database)
    assert (row["run_after"], row["first_due_at"]) == (clock() + timedelta(seconds=2), clock())
    assert (row["attempts"], row["error"], row["transient"], row["failed_at"]) == (0, None, False, None)
    clock.step(2)
    (claimed,) = await claim(database, clock)
    assert claimed.payload == {"instruction": "again"}


async def test_work_made_due_again_keeps_the_payload_that_it_waits_with_until_there_is_a_new_one(
    database: Database, clock: SteppedClock
) -> None:
    await add(database, clock, Due("1", 1, {"instruction": "once"}))
    await add(database, clock, Due("1", 1))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{"instruction": "once"}]
    await add(database, clock, Due("1", 1, {"instruction": "anew"}))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{"instruction": "anew"}]
    await change_all(database, "failed_at = now(), lease = NULL, leased_until = NULL")
    await add(database, clock, Due("1", 1))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{}]


async def test_the_next_row_to_ripen_is_told_failed_ones_left_out(database: Database, clock: SteppedClock) -> None:
    async def next_ripe_s() -> float | None:
        async with database.unit_of_work() as db_session:
            ripe_at = await due.next_ripe_at(db_session, now=clock())
        return None if ripe_at is None else (ripe_at - clock()).total_seconds()

    assert await next_ripe_s() is None
    await add(database, clock, Due("1", 1), settle_s=5)
    await add(database, clock, Due("2", 2), settle_s=3)
    assert await next_ripe_s() == 3
    clock.step(3)
    assert await next_ripe_s() == 2


# --- who may have it ---


async def test_those_just_before_the_anchor_are_claimed_first(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 9, 17, 25, 33)
    order = []
    for _ in range(5):
        (claimed,) = await claim(database, clock, anchor_seq=24, limit=1)
        order.append(claimed.key)
    assert order == ["17", "9", "1", "25", "33"]


async def test_a_leased_row_is_nobody_elses_until_the_lease_ends(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (first,) = await claim(database, clock)
    clock.step(86_400)  # the service's clock is not the lease's
    assert await claim(database, clock) == []
    await expire(database)
    (second,) = await claim(database, clock)
    assert (first.attempts, second.attempts) == (1, 2)
    assert first.lease != second.lease


async def test_a_lease_lasts_fifteen_seconds_by_the_databases_clock_and_can_be_renewed(
    database: Database, clock: SteppedClock
) -> None:
    clock.step(-86_400)
    await add_at(database, clock, 1)
    claims = await claim(database, clock)
    assert timedelta(seconds=10) < (await only(database))["left"] <= timedelta(seconds=15)
    await expire(database)
    async with database.unit_of_work() as db_session:
        await due.renew(db_session, claims)
    assert timedelta(seconds=10) < (await only(database))["left"] <= timedelta(seconds=15)
    assert await claim(database, clock) == []


async def test_a_lease_that_was_lost_is_not_renewed(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    lost = await claim(database, clock)
    await expire(database)
    await claim(database, clock)
    await expire(database)
    async with database.unit_of_work() as db_session:
        await due.renew(db_session, lost)
    assert (await only(database))["left"] < timedelta()


async def test_renewing_waits_for_no_row_that_somebody_is_writing(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    claims = sorted(await claim(database, clock), key=lambda claimed: claimed.key)
    await expire(database)
    async with asyncio.timeout(PATIENCE_S), database.unit_of_work() as writing:
        assert await due.holds_lease(writing, claims[0])
        async with database.unit_of_work() as db_session:
            await due.renew(db_session, claims)
    assert [row["left"] > timedelta() for row in await rows(database)] == [False, True]


async def test_two_who_claim_at_once_share_the_rows(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, *range(40))
    shares = await asyncio.gather(*(claim(database, clock, limit=15) for _ in range(4)))
    assert sum(len(share) for share in shares) == 40
    assert set.union(*(keys(share) for share in shares)) == {str(seq) for seq in range(40)}


async def test_a_claim_passes_over_a_row_that_is_locked(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 9)
    async with asyncio.timeout(PATIENCE_S), database.unit_of_work() as locking:
        await locking.raw.execute("SELECT 1 FROM work WHERE key = '1' FOR UPDATE")
        assert keys(await claim(database, clock)) == {"9"}


async def test_whoever_makes_it_due_again_takes_the_lease_away(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    await add_at(database, clock, 1)
    async with database.unit_of_work() as db_session:
        assert not await due.holds_lease(db_session, claimed)
        await due.finish(db_session, claimed)
        await due.release(db_session, claimed)
    await fail(database, clock, claimed)
    row = await only(database)
    assert (row["attempts"], row["error"], row["run_after"]) == (0, None, clock())


# --- what becomes of it ---


async def test_what_was_made_is_no_longer_due(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        assert await due.holds_lease(db_session, claimed)
        await due.finish(db_session, claimed)
    assert await rows(database) == []


async def test_a_claim_that_is_given_back_has_cost_no_attempt(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        await due.release(db_session, claimed)
    (again,) = await claim(database, clock)
    assert again.attempts == 1


async def test_failures_are_retried_after_growing_delays_and_then_for_good(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1)
    for attempt, delay_s in enumerate((1, 10, 60, 600, 3_600), start=1):
        (claimed,) = await claim(database, clock)
        assert claimed.attempts == attempt
        await fail(database, clock, claimed, error=f"failure {attempt}")
        clock.step(delay_s - 0.001)
        assert await claim(database, clock) == []
        clock.step(0.001)
    (claimed,) = await claim(database, clock)
    await fail(database, clock, claimed, error="the last")
    row = await only(database)
    assert (row["failed_at"], row["error"], row["attempts"]) == (clock(), "the last", MAX_ATTEMPTS)
    clock.step(1_000_000)
    assert await claim(database, clock) == []


async def test_a_wait_that_the_model_asks_for_is_kept_if_it_is_the_longer_one(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1)
    for asked_s, waits_s in ((0.5, 1), (30, 30)):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, retry_after_s=asked_s)
        assert (await only(database))["run_after"] == clock() + timedelta(seconds=waits_s)
        clock.step(waits_s)


async def test_what_kills_every_worker_uses_its_attempts_up(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for attempt in range(1, MAX_ATTEMPTS + 2):
        (claimed,) = await claim(database, clock)
        assert claimed.attempts == attempt
        await expire(database)
    await fail(database, clock, claimed, error="no worker survived making it")
    assert (await only(database))["failed_at"] == clock()


async def test_only_what_failed_for_good_and_passes_by_itself_is_revived(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1, 2, 3)
    for _ in range(MAX_ATTEMPTS):
        for claimed in await claim(database, clock):
            if claimed.key != "3" or claimed.attempts == 1:
                await fail(database, clock, claimed, transient=claimed.key != "2")
        clock.step(3_600)
        async with database.raw() as connection:
            await connection.execute("UPDATE work SET leased_until = NULL, lease = NULL WHERE key = '3'")
    async with database.unit_of_work() as db_session:
        assert await due.revive_transient(db_session, now=clock()) == 1
    revived, refused, waiting = await rows(database)
    assert (revived["failed_at"], revived["attempts"], revived["run_after"]) == (None, 0, clock())
    assert refused["failed_at"] is not None
    assert (waiting["failed_at"], waiting["attempts"]) == (None, MAX_ATTEMPTS)


async def test_forgotten_work_is_gone_also_for_who_is_making_it(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    claims = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        await due.delete_work(db_session, chat_key=CHAT, line_id=LINE, layer="memos", keys=["1"])
        assert {c.key for c in claims if await due.holds_lease(db_session, c)} == {"2"}


async def test_lines_do_not_share_due_work(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    other: UUID = uuid7()
    async with database.unit_of_work() as db_session:
        assert await due.claim(db_session, chat_key=CHAT, line_id=other, anchor_seq=1, limit=9, now=clock()) == []


# --- lines that are not current ---


async def test_work_that_rests_is_found_by_nobody_until_it_is_woken(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    await rest(database)
    clock.step(86_400)
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        await due.wake(db_session, CHAT, LINE, now=clock())
    assert keys(await claim(database, clock)) == {"1", "2"}


async def test_what_is_being_made_when_it_is_to_rest_is_finished_or_rests_after_it_failed(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1, 2)
    first, second = await claim(database, clock)
    await rest(database)
    await fail(database, clock, first)
    async with database.unit_of_work() as db_session:
        assert await due.holds_lease(db_session, second)
        await due.finish(db_session, second)
    clock.step(86_400)
    assert (await only(database))["error"] == "no"
    assert await claim(database, clock) == []


async def test_what_is_made_due_on_a_line_that_rests_rests_whether_it_was_due_had_failed_or_is_new(
    database: Database, clock: SteppedClock
) -> None:
    await add_at(database, clock, 1, 2)
    await rest(database)
    await change_all(database, "failed_at = CASE key WHEN '2' THEN now() END")
    await add(database, clock, *(Due(str(seq), seq) for seq in (1, 2, 3)), rests=True)
    clock.step(86_400)
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        await due.wake(db_session, CHAT, LINE, now=clock())
    assert keys(await claim(database, clock)) == {"1", "2", "3"}


async def test_what_failed_and_rests_is_revived_once_it_is_woken(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for _ in range(MAX_ATTEMPTS):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, transient=True)
        clock.step(3_600)
    await rest(database)
    async with database.unit_of_work() as db_session:
        assert await due.revive_transient(db_session, now=clock()) == 0
        await due.wake(db_session, CHAT, LINE, now=clock())
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        assert await due.revive_transient(db_session, now=clock()) == 1
    assert keys(await claim(database, clock)) == {"1"}


async def test_only_what_nobody_asked_for_is_forgotten(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, Due("1", 1), Due("2", 2, {"instruction": None}))
    async with database.unit_of_work() as db_session:
        await due.forget_unasked(db_session, chat_key=CHAT, line_id=LINE, layer="memos", keys=["1", "2"])
    assert (await only(database))["key"] == "2"


async def rest(database: Database) -> None:
    async with database.unit_of_work() as db_session:
        await due.rest(db_session, CHAT, LINE)
