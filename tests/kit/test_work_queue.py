"""Due work: when an item ripens, who may claim it, what happens to it, and whose it is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial

import asyncpg
import pytest

from app.kit import ripe_work, work_queue
from app.kit.attempts import save_progress
from app.kit.clock import SteppedClock
from app.kit.db import Database, DbSession
from app.kit.ids import chat_key, uuid7
from app.kit.owners import Owner
from app.kit.ripe_work import list_revivable
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S, Claimed, NewWork, WorkScheduled
from app.pipeline import open_database
from app.registry import LAYERS
from tests.conftest import NOON, SETTLE_S, sqlalchemy_url
from tests.slowness import SLOWNESS

LINE = Owner.of_line("t", chat_key("t", "c"), uuid7())
USER = Owner.of_user("t", "c")
TENANT = Owner.of_tenant("t")
OF_ALL_KINDS = [
    pytest.param(LINE, id="line"),
    pytest.param(USER, id="user"),
    pytest.param(TENANT, id="tenant"),
]
PATIENCE_S = 10 * SLOWNESS


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing is due, for which no worker is woken."""

    async def ignore(_db_session: DbSession, _event: WorkScheduled) -> None:
        """Wake no worker."""

    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=4, followers={WorkScheduled: ignore})
    yield opened
    await opened.close()


async def add(
    database: Database,
    clock: SteppedClock,
    *items: NewWork,
    owner: Owner = LINE,
    settle_s: float = 0.0,
    parked: bool = False,
) -> None:
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(db_session, owner, "memos", items, now=clock(), settle_s=settle_s, parked=parked)


async def add_at(database: Database, clock: SteppedClock, *seqs: int, owner: Owner = LINE) -> None:
    """Make something due at each of `seqs`."""
    await add(database, clock, *(NewWork(key=str(seq), at_seq=seq) for seq in seqs), owner=owner)


async def claim(
    database: Database, clock: SteppedClock, owner: Owner = LINE, *, anchor_seq: int = 1, limit: int = 100
) -> list[Claimed]:
    async with database.unit_of_work() as db_session:
        return await work_queue.claim(db_session, owner, anchor_seq=anchor_seq, limit=limit, now=clock())


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
        await work_queue.record_failure(
            db_session, claimed, error=error, transient=transient, now=clock(), retry_after_s=retry_after_s
        )


async def rows(database: Database) -> list[asyncpg.Record]:
    async with database.raw() as connection:
        return await connection.fetch("SELECT *, leased_until - clock_timestamp() AS left FROM work ORDER BY at_seq")


async def only(database: Database) -> asyncpg.Record:
    (row,) = await rows(database)
    return row


async def change_all(database: Database, values: str) -> None:
    """Change every item without the service."""
    async with database.raw() as connection:
        await connection.execute(f"UPDATE work SET {values}")


async def expire(database: Database) -> None:
    """Let every lease end, as 15 seconds do."""
    await change_all(database, "leased_until = clock_timestamp() - interval '1 second'")


def keys(claims: Sequence[Claimed]) -> set[str]:
    return {claimed.key for claimed in claims}


# --- when an item ripens ---


async def test_work_ripens_after_the_settle_time(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1", 1), settle_s=2)
    clock.step(1.999)
    assert await claim(database, clock) == []
    clock.step(0.001)
    assert keys(await claim(database, clock)) == {"1"}


async def test_rescheduled_work_waits_again_at_most_thirty_seconds(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1", 1), settle_s=2)
    ripens = []
    for _ in range(30):
        clock.step(1.5)
        await add(database, clock, NewWork("1", 1), settle_s=2)
        ripens.append(((await only(database))["run_after"] - NOON).total_seconds())
    assert ripens == [min(1.5 * n + 2, 30) for n in range(1, 31)]
    assert (await only(database))["first_due_at"] == NOON


async def test_rescheduling_failed_work_starts_it_from_zero(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for delay_s in (*RETRY_DELAYS_S, 0):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, transient=True)
        clock.step(delay_s)
    assert (await only(database))["failed_at"] is not None
    clock.step(1_000)
    await add(database, clock, NewWork("1", 1, {"instruction": "again"}), settle_s=2)
    row = await only(database)
    assert (row["run_after"], row["first_due_at"]) == (clock() + timedelta(seconds=2), clock())
    assert (row["attempts"], row["error"], row["transient"], row["failed_at"]) == (0, None, False, None)
    clock.step(2)
    (claimed,) = await claim(database, clock)
    assert claimed.payload == {"instruction": "again"}


async def test_rescheduled_work_keeps_its_payload_until_a_new_one(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1", 1, {"instruction": "once"}))
    await add(database, clock, NewWork("1", 1))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{"instruction": "once"}]
    await add(database, clock, NewWork("1", 1, {"instruction": "anew"}))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{"instruction": "anew"}]
    await change_all(database, "failed_at = now(), lease = NULL, leased_until = NULL")
    await add(database, clock, NewWork("1", 1))
    assert [claimed.payload for claimed in await claim(database, clock)] == [{}]


async def test_the_next_attempt_has_what_the_last_one_made(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1", 1))
    (first,) = await claim(database, clock)
    assert first.progress == {}
    async with database.unit_of_work() as db_session:
        await save_progress(db_session, first, {"parts": [1, 2]})
    await change_all(database, "lease = NULL, leased_until = NULL")
    (second,) = await claim(database, clock)
    assert second.progress == {"parts": [1, 2]}
    async with database.unit_of_work() as db_session:
        await save_progress(db_session, first, {"parts": [9]})  # its lease is lost
    await change_all(database, "lease = NULL, leased_until = NULL")
    assert [claimed.progress for claimed in await claim(database, clock)] == [{"parts": [1, 2]}]
    await add(database, clock, NewWork("1", 1))
    assert [claimed.progress for claimed in await claim(database, clock)] == [{}]


# --- who may claim it ---


async def test_items_just_before_the_anchor_are_claimed_first(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 9, 17, 25, 33)
    order = []
    for _ in range(5):
        (claimed,) = await claim(database, clock, anchor_seq=24, limit=1)
        order.append(claimed.key)
    assert order == ["17", "9", "1", "25", "33"]


async def test_a_leased_item_is_claimed_by_no_other_worker(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (first,) = await claim(database, clock)
    clock.step(86_400)  # the service's clock is not the lease's
    assert await claim(database, clock) == []
    await expire(database)
    (second,) = await claim(database, clock)
    assert (first.attempts, second.attempts) == (1, 2)
    assert first.lease != second.lease


async def test_a_lease_lasts_fifteen_seconds_and_can_be_renewed(database: Database, clock: SteppedClock) -> None:
    clock.step(-86_400)
    await add_at(database, clock, 1)
    claims = await claim(database, clock)
    assert timedelta(seconds=10) < (await only(database))["left"] <= timedelta(seconds=15)
    await expire(database)
    async with database.unit_of_work() as db_session:
        await work_queue.renew(db_session, claims)
    assert timedelta(seconds=10) < (await only(database))["left"] <= timedelta(seconds=15)
    assert await claim(database, clock) == []


async def test_a_lease_that_was_lost_is_not_renewed(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    lost = await claim(database, clock)
    await expire(database)
    await claim(database, clock)
    await expire(database)
    async with database.unit_of_work() as db_session:
        await work_queue.renew(db_session, lost)
    assert (await only(database))["left"] < timedelta()


async def test_renewing_waits_for_no_locked_item(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    claims = sorted(await claim(database, clock), key=lambda claimed: claimed.key)
    await expire(database)
    async with asyncio.timeout(PATIENCE_S), database.unit_of_work() as writing:
        assert await work_queue.holds_lease(writing, claims[0])
        async with database.unit_of_work() as db_session:
            await work_queue.renew(db_session, claims)
    assert [row["left"] > timedelta() for row in await rows(database)] == [False, True]


async def test_workers_that_claim_at_once_share_the_items(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, *range(40))
    shares = await asyncio.gather(*(claim(database, clock, limit=15) for _ in range(4)))
    assert sum(len(share) for share in shares) == 40
    assert set.union(*(keys(share) for share in shares)) == {str(seq) for seq in range(40)}


async def test_a_claim_passes_over_a_locked_item(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 9)
    async with asyncio.timeout(PATIENCE_S), database.unit_of_work() as locking:
        await locking.raw.execute("SELECT 1 FROM work WHERE key = '1' FOR UPDATE")
        assert keys(await claim(database, clock)) == {"9"}


async def test_rescheduling_takes_the_lease_away(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    await add_at(database, clock, 1)
    async with database.unit_of_work() as db_session:
        assert not await work_queue.holds_lease(db_session, claimed)
        await work_queue.complete(db_session, claimed)
        await work_queue.release(db_session, claimed)
    await fail(database, clock, claimed)
    row = await only(database)
    assert (row["attempts"], row["error"], row["run_after"]) == (0, None, clock())


# --- what happens to it ---


async def test_a_completed_item_is_no_longer_due(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        assert await work_queue.holds_lease(db_session, claimed)
        await work_queue.complete(db_session, claimed)
    assert await rows(database) == []


async def test_a_claim_given_back_costs_no_attempt(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    (claimed,) = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        await work_queue.release(db_session, claimed)
    (again,) = await claim(database, clock)
    assert again.attempts == 1


async def test_failures_are_retried_after_growing_delays(database: Database, clock: SteppedClock) -> None:
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


async def test_a_longer_wait_that_the_model_asks_for_is_kept(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for asked_s, waits_s in ((0.5, 1), (30, 30)):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, retry_after_s=asked_s)
        assert (await only(database))["run_after"] == clock() + timedelta(seconds=waits_s)
        clock.step(waits_s)


async def test_an_item_that_kills_workers_runs_out_of_attempts(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for attempt in range(1, MAX_ATTEMPTS + 2):
        (claimed,) = await claim(database, clock)
        assert claimed.attempts == attempt
        await expire(database)
    await fail(database, clock, claimed, error="no worker survived making it")
    assert (await only(database))["failed_at"] == clock()


async def test_only_transient_failures_are_revived(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2, 3)
    for _ in range(MAX_ATTEMPTS):
        for claimed in await claim(database, clock):
            if claimed.key != "3" or claimed.attempts == 1:
                await fail(database, clock, claimed, transient=claimed.key != "2")
        clock.step(3_600)
        async with database.raw() as connection:
            await connection.execute("UPDATE work SET leased_until = NULL, lease = NULL WHERE key = '3'")
    async with database.unit_of_work() as db_session:
        assert await list_revivable(db_session.raw) == [LINE]
        assert await ripe_work.revive_transient(db_session, LINE, now=clock()) == ["memos"]
    revived, refused, waiting = await rows(database)
    assert (revived["failed_at"], revived["attempts"], revived["run_after"]) == (None, 0, clock())
    assert refused["failed_at"] is not None
    assert (waiting["failed_at"], waiting["attempts"]) == (None, MAX_ATTEMPTS)


async def test_unscheduling_takes_the_lease_away(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    claims = await claim(database, clock)
    async with database.unit_of_work() as db_session:
        await work_queue.unschedule(db_session, LINE, "memos", ["1"])
        assert {c.key for c in claims if await work_queue.holds_lease(db_session, c)} == {"2"}


async def test_lines_do_not_share_due_work(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    assert await claim(database, clock, Owner.of_line("t", LINE.key, uuid7())) == []


# --- lines that are not current ---


async def test_parked_work_is_not_claimed_until_it_is_unparked(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    await park_line(database)
    clock.step(86_400)
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        await work_queue.unpark(db_session, LINE, now=clock())
    assert keys(await claim(database, clock)) == {"1", "2"}


async def test_claimed_work_that_is_parked_is_completed_or_fails(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    first, second = await claim(database, clock)
    await park_line(database)
    await fail(database, clock, first)
    async with database.unit_of_work() as db_session:
        assert await work_queue.holds_lease(db_session, second)
        await work_queue.complete(db_session, second)
    clock.step(86_400)
    assert (await only(database))["error"] == "no"
    assert await claim(database, clock) == []


async def test_work_of_a_parked_line_is_scheduled_as_parked(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1, 2)
    await park_line(database)
    await change_all(database, "failed_at = CASE key WHEN '2' THEN now() END")
    await add(database, clock, *(NewWork(str(seq), seq) for seq in (1, 2, 3)), parked=True)
    clock.step(86_400)
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        await work_queue.unpark(db_session, LINE, now=clock())
    assert keys(await claim(database, clock)) == {"1", "2", "3"}


async def test_failed_work_is_revived_only_after_it_is_unparked(database: Database, clock: SteppedClock) -> None:
    await add_at(database, clock, 1)
    for _ in range(MAX_ATTEMPTS):
        (claimed,) = await claim(database, clock)
        await fail(database, clock, claimed, transient=True)
        clock.step(3_600)
    await park_line(database)
    async with database.unit_of_work() as db_session:
        assert await list_revivable(db_session.raw) == []
        assert await ripe_work.revive_transient(db_session, LINE, now=clock()) == []
        await work_queue.unpark(db_session, LINE, now=clock())
    assert await claim(database, clock) == []
    async with database.unit_of_work() as db_session:
        assert await ripe_work.revive_transient(db_session, LINE, now=clock()) == ["memos"]
    assert keys(await claim(database, clock)) == {"1"}


async def test_only_automatic_work_is_cancelled(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1", 1), NewWork("2", 2, {"instruction": None}))
    async with database.unit_of_work() as db_session:
        await work_queue.cancel_automatic(db_session, LINE, "memos", ["1", "2"])
    assert (await only(database))["key"] == "2"


async def park_line(database: Database) -> None:
    async with database.unit_of_work() as db_session:
        await work_queue.park(db_session, LINE)


# --- whose it is ---


@pytest.mark.parametrize("owner", OF_ALL_KINDS)
async def test_work_of_any_owner_is_retried_and_completed(
    database: Database, clock: SteppedClock, owner: Owner
) -> None:
    await add(database, clock, NewWork("1", payload={"of": "may"}), owner=owner, settle_s=2)
    assert await claim(database, clock, owner) == []
    clock.step(2)
    (claimed,) = await claim(database, clock, owner)
    assert (claimed.owner, claimed.payload) == (owner, {"of": "may"})
    await fail(database, clock, claimed, error="not yet")
    assert await claim(database, clock, owner) == []
    clock.step(1)
    (claimed,) = await claim(database, clock, owner)
    assert claimed.attempts == 2
    async with database.unit_of_work() as db_session:
        assert await work_queue.holds_lease(db_session, claimed)
        await work_queue.complete(db_session, claimed)
    assert await rows(database) == []


@pytest.mark.parametrize("owner", OF_ALL_KINDS)
async def test_work_of_any_owner_fails_for_good_and_is_revived(
    database: Database, clock: SteppedClock, owner: Owner
) -> None:
    await add(database, clock, NewWork("1"), owner=owner)
    for _ in range(MAX_ATTEMPTS):
        (claimed,) = await claim(database, clock, owner)
        await fail(database, clock, claimed, transient=True)
        clock.step(3_600)
    assert await claim(database, clock, owner) == []
    async with database.unit_of_work() as db_session:
        assert await list_revivable(db_session.raw) == [owner]
        assert await ripe_work.revive_transient(db_session, owner, now=clock()) == ["memos"]
    assert len(await claim(database, clock, owner)) == 1


@pytest.mark.parametrize("owner", OF_ALL_KINDS)
async def test_leases_of_any_owner_are_renewed_and_given_back(
    database: Database, clock: SteppedClock, owner: Owner
) -> None:
    await add(database, clock, NewWork("1"), owner=owner)
    claims = await claim(database, clock, owner)
    await expire(database)
    async with database.unit_of_work() as db_session:
        await work_queue.renew(db_session, claims)
    assert (await only(database))["left"] > timedelta()
    async with database.unit_of_work() as db_session:
        await work_queue.release(db_session, claims[0])
    assert (await only(database))["attempts"] == 0


@pytest.mark.parametrize("owner", OF_ALL_KINDS)
async def test_work_of_any_owner_is_found_cancelled_and_parked(
    database: Database, clock: SteppedClock, owner: Owner
) -> None:
    await add(database, clock, NewWork("1"), NewWork("2", payload={"of": "may"}), NewWork("3"), owner=owner)
    async with database.unit_of_work() as db_session:
        await work_queue.cancel_automatic(db_session, owner, "memos", ["1", "2"])
        await work_queue.unschedule(db_session, owner, "memos", ["3"])
    async with database.unit_of_work() as db_session:
        assert await work_queue.find_work(db_session, owner, "memos", "1") is None
        found = await work_queue.find_work(db_session, owner, "memos", "2")
        assert found is not None
        assert (found.owner_key, found.line_id, found.user_id) == (owner.key, owner.line_id, owner.user_id)
        await work_queue.park(db_session, owner)
    assert await claim(database, clock, owner) == []
    async with database.unit_of_work() as db_session:
        await work_queue.unpark(db_session, owner, now=clock())
    assert keys(await claim(database, clock, owner)) == {"2"}


async def test_a_chat_and_a_user_of_one_name_share_no_work(database: Database, clock: SteppedClock) -> None:
    assert LINE.key == USER.key
    await add(database, clock, NewWork("of the line"))
    await add(database, clock, NewWork("of the user"), owner=USER)
    async with database.unit_of_work() as db_session:
        await work_queue.unschedule(db_session, USER, "memos", ["of the line"])
        await work_queue.cancel_automatic(db_session, LINE, "memos", ["of the user"])
    assert keys(await claim(database, clock, LINE)) == {"of the line"}
    assert keys(await claim(database, clock, USER)) == {"of the user"}


async def test_work_without_a_position_is_claimed_by_age(database: Database, clock: SteppedClock) -> None:
    for key in ("c", "a", "b"):
        await add(database, clock, NewWork(key), owner=USER)
        clock.step(1)
    claimed = [(await claim(database, clock, USER, limit=1))[0].key for _ in range(3)]
    assert claimed == ["c", "a", "b"]


async def test_scheduling_in_any_order_cannot_deadlock(database: Database, clock: SteppedClock) -> None:
    """The upserts of one statement lock rows one by one, and no chat is locked around those of a user."""
    items = [NewWork(f"{number:03}") for number in range(200)]
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(
            *(add(database, clock, *turned, owner=USER) for turned in (items, items[::-1]) for _ in range(20))
        )
    assert len(await rows(database)) == 200


@pytest.mark.parametrize("owner", OF_ALL_KINDS)
async def test_scheduling_wakes_the_workers_after_the_commit(
    fresh_database_url: str, clock: SteppedClock, owner: Owner
) -> None:
    woken: list[str] = []
    url = sqlalchemy_url(fresh_database_url)
    notify = partial(woken.append, "woken")
    listening = open_database(url, LAYERS, clock=clock, settle_s=SETTLE_S, notify=notify, pool_size=1)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(listening.close)
        async with listening.unit_of_work() as db_session:
            await work_queue.schedule(db_session, owner, "memos", [NewWork("1")], now=clock(), settle_s=0)
            assert woken == []
        assert woken == ["woken"]


async def test_only_the_work_of_a_user_names_a_user(database: Database, clock: SteppedClock) -> None:
    await add(database, clock, NewWork("1"))
    with pytest.raises(asyncpg.CheckViolationError):
        await change_all(database, "user_id = 'mira'")
