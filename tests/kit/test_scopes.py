"""The revisions of users and tenants."""

from uuid import uuid4

import pytest

from app.kit.db import Database
from app.kit.ids import uuid7
from app.kit.owners import Owner
from app.kit.scopes import raise_scope
from tests.revisions import read_now_ms, read_scope


async def test_a_scope_starts_with_the_time_and_rises_per_transaction(database: Database, tenant: str) -> None:
    mira, everybody = Owner.of_user(tenant, "mira"), Owner.of_tenant(tenant)
    before = await read_now_ms(database)
    async with database.unit_of_work() as db_session:
        raise_scope(db_session, mira)
    first = await read_scope(database, mira)
    assert first is not None
    assert before <= first <= await read_now_ms(database)
    assert await read_scope(database, everybody) is None
    async with database.unit_of_work() as db_session:
        for _ in range(3):
            raise_scope(db_session, everybody)
            raise_scope(db_session, mira)
    assert await read_scope(database, mira) == first + 1
    assert await read_scope(database, everybody) is not None


async def test_a_transaction_that_is_rolled_back_leaves_it(database: Database, tenant: str) -> None:
    owner = Owner.of_tenant(tenant)

    async def fail() -> None:
        async with database.unit_of_work() as db_session:
            raise_scope(db_session, owner)
            await db_session.write_last()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await read_scope(database, owner) is None


async def test_chats_are_locked_before_users_and_users_before_tenants(database: Database, tenant: str) -> None:
    async with database.unit_of_work() as db_session:
        raise_scope(db_session, Owner.of_tenant(tenant))
        raise_scope(db_session, Owner.of_user(tenant, "mira"))
        (of_tenant, of_user) = db_session.last_writes
        assert (0, uuid4(), uuid7()) < of_user < of_tenant


async def test_a_line_has_no_scope(database: Database, tenant: str) -> None:
    async with database.unit_of_work() as db_session:
        with pytest.raises(ValueError, match="lock it"):
            raise_scope(db_session, Owner.of_line(tenant, uuid4(), uuid7()))
