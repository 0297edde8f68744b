"""What the model was used for: how calls add up, in which month, and whose tokens are used up."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import asyncpg
import pytest

from app.kit import usage
from app.kit.db import Connection, Database
from app.kit.ids import uuid7
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.owners import Owner
from app.kit.usage import ModelCall
from tests.conftest import NOON, sqlalchemy_url

APRIL, MAY = date(2026, 4, 1), date(2026, 5, 1)
IN_MAY = datetime(2026, 5, 1, tzinfo=UTC)
CALL = ModelCall("t", "memos", NOON, failed=False, prompt_tokens=120, completion_tokens=30, wait_ms=250)
FAILURE = ModelCall("t", "memos", NOON, failed=True, prompt_tokens=0, completion_tokens=0, wait_ms=5_000)


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing was counted."""
    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=8)
    yield opened
    await opened.close()


async def count(connection: Connection, *calls: ModelCall) -> None:
    for call in calls:
        await usage.count_call(connection, call)


async def add_work(connection: Connection, owner: Owner) -> None:
    statement = """INSERT INTO work (owner_key, line_id, user_id, layer, key, work_id, tenant, at_seq, run_after,
        first_due_at) VALUES ($1, $2, $3, 'memos', '1', $4, $5, 1, $6, $6)"""
    await connection.execute(statement, owner.key, owner.line_id, owner.user_id, uuid7(), owner.tenant, NOON)


@pytest.mark.parametrize(
    ("at", "month"),
    [
        (NOON, APRIL),
        (datetime(2026, 4, 30, 23, 59, 59, 999_999, UTC), APRIL),
        (IN_MAY, MAY),
        (datetime(2026, 5, 1, 1, tzinfo=timezone(timedelta(hours=2))), APRIL),
        (datetime(2026, 4, 30, 23, tzinfo=timezone(timedelta(hours=-2))), MAY),
        (datetime(2024, 2, 29, tzinfo=UTC), date(2024, 2, 1)),
    ],
)
def test_a_month_is_the_calendars_in_utc(at: datetime, month: date) -> None:
    assert usage.month_of(at) == month


async def test_calls_of_one_tenant_month_and_layer_add_up(connection: Connection) -> None:
    await count(connection, CALL, FAILURE, CALL)
    (row,) = await usage.list_usage(connection, tenant="t", month=APRIL)
    assert dict(row) == {
        "layer": "memos",
        "calls": 3,
        "failures": 1,
        "prompt_tokens": 240,
        "completion_tokens": 60,
        "wait_ms": 5_500,
    }


async def test_layers_months_and_tenants_are_kept_apart(connection: Connection) -> None:
    others = [replace(CALL, layer="diary"), replace(CALL, tenant="u"), replace(CALL, asked_at=IN_MAY)]
    await count(connection, CALL, *others)
    in_april = await usage.list_usage(connection, tenant="t", month=APRIL)
    assert [(row["layer"], row["calls"]) for row in in_april] == [("diary", 1), ("memos", 1)]
    assert len(await usage.list_usage(connection, tenant="t", month=MAY)) == 1
    assert len(await usage.list_usage(connection, tenant="u", month=APRIL)) == 1
    assert await usage.list_usage(connection, tenant="u", month=MAY) == []


async def test_usage_is_summed_over_months_and_listed_by_month(connection: Connection) -> None:
    await count(connection, CALL, FAILURE, replace(CALL, asked_at=IN_MAY), replace(CALL, tenant="u", asked_at=IN_MAY))
    rows = await usage.list_usage_ever(connection, month=APRIL)
    assert [dict(row) for row in rows] == [
        {
            "tenant": "t",
            "layer": "memos",
            "calls": 3,
            "failures": 1,
            "prompt_tokens": 240,
            "completion_tokens": 60,
            "wait_ms": 5_500,
            "month_tokens": 150,
        },
        {
            "tenant": "u",
            "layer": "memos",
            "calls": 1,
            "failures": 0,
            "prompt_tokens": 120,
            "completion_tokens": 30,
            "wait_ms": 250,
            "month_tokens": 0,
        },
    ]


async def test_workers_that_count_at_the_same_moment_all_count(database: Database, fresh_database_url: str) -> None:
    other = Database(sqlalchemy_url(fresh_database_url), pool_size=8)

    async def count_once(counting: Database) -> None:
        async with counting.raw() as connection:
            await count(connection, CALL)

    await asyncio.gather(*(count_once(counting) for counting in (database, other) * 100))
    await other.close()
    async with database.raw() as connection:
        (row,) = await usage.list_usage(connection, tenant="t", month=APRIL)
    assert (row["calls"], row["prompt_tokens"], row["completion_tokens"]) == (200, 200 * 120, 200 * 30)
    assert row["wait_ms"] == 200 * 250


@pytest.mark.parametrize(
    "impossible",
    ["month = '2026-04-02'", "failures = calls + 1", "failures = -1", "completion_tokens = -1", "wait_ms = -1"],
)
async def test_impossible_counts_are_rejected_by_the_database(connection: Connection, impossible: str) -> None:
    await count(connection, CALL)
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(f"UPDATE model_usage SET {impossible}")


async def test_a_tenants_limit_counts_all_layers_of_this_month(connection: Connection) -> None:
    await count(connection, CALL, replace(CALL, layer="diary"))

    async def at_limit(limit_tokens: int, now: datetime = NOON) -> bool:
        return await usage.is_at_limit(connection, TokenLimits(limit_tokens), tenant="t", now=now)

    assert [await at_limit(limit_tokens) for limit_tokens in (299, 300, 301)] == [True, True, False]
    assert not await at_limit(1, IN_MAY)
    assert not await usage.is_at_limit(connection, UNLIMITED, tenant="t", now=NOON)


async def test_tenants_at_their_limit_with_due_work_are_held(connection: Connection) -> None:
    for tenant in ("frugal", "generous", "idle", "new", "spent"):
        if tenant != "idle":
            await add_work(connection, Owner.of_line(tenant, uuid7(), uuid7()))
        if tenant != "new":
            await count(connection, replace(CALL, tenant=tenant))
    limits = TokenLimits(150, {"frugal": 151, "generous": None})
    assert await usage.list_held_tenants(connection, limits, now=NOON) == ["spent"]
    assert await usage.list_held_tenants(connection, limits, now=IN_MAY) == []
    assert await usage.list_held_tenants(connection, UNLIMITED, now=NOON) == []


async def test_a_tenant_is_held_for_work_of_any_owner(connection: Connection) -> None:
    owners = (
        Owner.of_line("a line's", uuid7(), uuid7()),
        Owner.of_tenant("its own"),
        Owner.of_user("a user's", "mira"),
    )
    for owner in owners:
        await add_work(connection, owner)
        await count(connection, replace(CALL, tenant=owner.tenant))
    held = await usage.list_held_tenants(connection, TokenLimits(1), now=NOON)
    assert held == ["a line's", "a user's", "its own"]
