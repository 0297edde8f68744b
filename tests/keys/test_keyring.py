"""The keyring identifies callers, from the tables and from its cache."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from app.keys.errors import LoopbackOnly
from app.keys.keyring import KEY_TTL_S, OPEN_TTL_S, DatabaseKeyring
from app.keys.service import revoke_key
from app.kit.auth import Forbidden, Unauthorized
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.errors import Unavailable
from tests.conftest import NOON
from tests.keys.service import EVERYTHING, made_key, request_with, sqlalchemy_url


class CountingDatabase(Database):
    """Counts how often the keyring asks, and can have something happen once it has its answer."""

    asked = 0
    after_read: Callable[[], Awaitable[None]] | None = None

    @asynccontextmanager
    async def raw(self, tenant: str | None = None) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
        self.asked += 1
        async with super().raw(tenant) as connection:
            yield connection
        happening, self.after_read = self.after_read, None
        if happening:
            await happening()


@pytest.fixture
async def counting(database_url: str) -> AsyncIterator[CountingDatabase]:
    """A database that may hold keys of other tests."""
    database = CountingDatabase(sqlalchemy_url(database_url), pool_size=4)
    yield database
    await database.close()


@pytest.fixture
async def empty(fresh_database_url: str) -> AsyncIterator[CountingDatabase]:
    """A database without any key."""
    database = CountingDatabase(sqlalchemy_url(fresh_database_url), pool_size=4)
    yield database
    await database.close()


@pytest.fixture
def keyring(counting: CountingDatabase, clock: SteppedClock) -> DatabaseKeyring:
    return DatabaseKeyring(counting, clock=clock)


@pytest.fixture
def open_keyring(empty: CountingDatabase, clock: SteppedClock) -> DatabaseKeyring:
    return DatabaseKeyring(empty, clock=clock)


async def revoke(database: Database, key_id: str) -> None:
    """Change keys as another process does, without a notification of the keyring."""
    async with database.unit_of_work() as db_session:
        await revoke_key(db_session, key_id, NOON)


async def test_a_key_identifies_its_tenant_and_scopes(counting: CountingDatabase, keyring: DatabaseKeyring) -> None:
    key = await made_key(counting, "read", tenant="a")
    caller = await keyring.identify(request_with(authorization=f"Bearer {key.text}"))
    assert (caller.tenant, caller.scopes, caller.key_id) == ("a", frozenset({"read"}), key.key_id)
    with pytest.raises(Forbidden):
        caller.require("write")


@pytest.mark.parametrize("header", ["bearer {}", "BEARER {}", "Bearer  {} "])
async def test_the_scheme_may_be_written_in_any_case(
    counting: CountingDatabase, keyring: DatabaseKeyring, header: str
) -> None:
    key = await made_key(counting)
    assert await keyring.identify(request_with(authorization=header.format(key.text)))


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "{}", "Basic {}", "Bearer x{}", "Bearer {}0", "Bearer ü"])
async def test_only_the_exact_key_is_accepted(
    counting: CountingDatabase, keyring: DatabaseKeyring, header: str
) -> None:
    key = await made_key(counting)
    with pytest.raises(Unauthorized):
        await keyring.identify(request_with(authorization=header.format(key.text)))


async def test_the_id_of_a_key_with_another_secret_is_not_enough(
    counting: CountingDatabase, keyring: DatabaseKeyring
) -> None:
    key = await made_key(counting)
    with pytest.raises(Unauthorized):
        await keyring.identify(request_with(authorization=f"Bearer mb_{key.key_id}_{'0' * 64}"))


async def test_the_stored_hash_of_a_key_is_not_accepted(counting: CountingDatabase, keyring: DatabaseKeyring) -> None:
    key = await made_key(counting)
    async with counting.raw() as connection:
        kept = await connection.fetchrow("SELECT * FROM keys WHERE key_id = $1", key.key_id)
    assert kept is not None
    assert key.text not in str(dict(kept))
    assert key.text.rpartition("_")[2] not in str(dict(kept))
    with pytest.raises(Unauthorized):
        await keyring.identify(request_with(authorization=f"Bearer {kept['secret_hash'].hex()}"))


async def test_a_known_key_costs_no_statement(
    counting: CountingDatabase, keyring: DatabaseKeyring, clock: SteppedClock
) -> None:
    key = await made_key(counting)
    request = request_with(authorization=f"Bearer {key.text}")
    await keyring.identify(request)
    counting.asked = 0
    for _ in range(10):
        await keyring.identify(request)
    assert counting.asked == 0
    clock.step(KEY_TTL_S)
    await keyring.identify(request)
    assert counting.asked == 2  # the environment's key, and this one


async def test_an_unknown_key_costs_its_statements_once(empty: CountingDatabase, open_keyring: DatabaseKeyring) -> None:
    await made_key(empty)
    request = request_with(authorization=f"Bearer mb_3f9c2a7be014_{'0' * 64}")
    for _ in range(3):
        with pytest.raises(Unauthorized):
            await open_keyring.identify(request)
    assert empty.asked == 2  # the environment's key, and this one


async def test_a_key_revoked_elsewhere_works_for_five_seconds_at_most(
    counting: CountingDatabase, keyring: DatabaseKeyring, clock: SteppedClock
) -> None:
    key = await made_key(counting)
    request = request_with(authorization=f"Bearer {key.text}")
    await keyring.identify(request)
    await revoke(counting, key.key_id)
    clock.step(KEY_TTL_S - 0.1)
    await keyring.identify(request)
    clock.step(0.1)
    with pytest.raises(Unauthorized):
        await keyring.identify(request)


async def test_a_key_that_this_process_revokes_is_dead_at_once(
    counting: CountingDatabase, keyring: DatabaseKeyring
) -> None:
    key = await made_key(counting)
    request = request_with(authorization=f"Bearer {key.text}")
    await keyring.identify(request)
    await revoke(counting, key.key_id)
    keyring.forget()
    with pytest.raises(Unauthorized):
        await keyring.identify(request)


async def test_without_keys_each_local_request_is_the_default_tenant(open_keyring: DatabaseKeyring) -> None:
    caller = await open_keyring.identify(request_with())
    assert (caller.tenant, caller.scopes, caller.key_id) == ("default", frozenset(EVERYTHING), None)


async def test_without_a_key_a_request_costs_no_statement_either(
    empty: CountingDatabase, open_keyring: DatabaseKeyring, clock: SteppedClock
) -> None:
    for _ in range(10):
        await open_keyring.identify(request_with())
    assert empty.asked == 1
    clock.step(OPEN_TTL_S)
    await open_keyring.identify(request_with())
    assert empty.asked == 2


async def test_another_processs_first_key_is_noticed_within_a_second(
    empty: CountingDatabase, open_keyring: DatabaseKeyring, clock: SteppedClock
) -> None:
    await open_keyring.identify(request_with())
    await made_key(empty)
    clock.step(OPEN_TTL_S)
    with pytest.raises(Unauthorized):
        await open_keyring.identify(request_with())


async def test_the_existence_of_a_key_is_queried_only_once(
    empty: CountingDatabase, open_keyring: DatabaseKeyring, clock: SteppedClock
) -> None:
    await made_key(empty)
    for _ in range(3):
        with pytest.raises(Unauthorized):
            await open_keyring.identify(request_with())
        clock.step(60)
    assert empty.asked == 1


async def test_a_key_is_required_after_the_last_one_is_revoked(empty: CountingDatabase, clock: SteppedClock) -> None:
    key = await made_key(empty)
    await revoke(empty, key.key_id)
    started_later = DatabaseKeyring(empty, clock=clock)
    with pytest.raises(Unauthorized):
        await started_later.identify(request_with())


async def test_an_unknown_key_is_rejected_even_without_any_key(open_keyring: DatabaseKeyring) -> None:
    with pytest.raises(Unauthorized):
        await open_keyring.identify(request_with(authorization=f"Bearer mb_3f9c2a7be014_{'0' * 64}"))


async def test_a_key_that_is_read_while_it_is_revoked_is_not_kept(
    counting: CountingDatabase, keyring: DatabaseKeyring
) -> None:
    key, other = await made_key(counting), await made_key(counting)
    await keyring.identify(request_with(authorization=f"Bearer {other.text}"))
    request = request_with(authorization=f"Bearer {key.text}")

    async def revoke_it() -> None:
        await revoke(counting, key.key_id)
        keyring.forget()

    counting.after_read = revoke_it
    await keyring.identify(request)
    with pytest.raises(Unauthorized):
        await keyring.identify(request)


async def test_the_absence_of_keys_is_not_cached_during_a_first_key(
    empty: CountingDatabase, open_keyring: DatabaseKeyring
) -> None:
    async def make_one() -> None:
        await made_key(empty)
        open_keyring.forget()

    empty.after_read = make_one
    await open_keyring.identify(request_with())
    with pytest.raises(Unauthorized):
        await open_keyring.identify(request_with())


async def test_without_a_database_every_request_is_unavailable(clock: SteppedClock) -> None:
    away = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none", pool_size=2)
    keyring = DatabaseKeyring(away, clock=clock)
    for headers in ({}, {"authorization": f"Bearer mb_3f9c2a7be014_{'0' * 64}"}):
        with pytest.raises(Unavailable):
            await keyring.identify(request_with(**headers))
    await away.close()


async def test_without_a_key_http_1_0_is_refused(open_keyring: DatabaseKeyring) -> None:
    assert await open_keyring.identify(request_with())
    with pytest.raises(LoopbackOnly, match=r"HTTP/1\.0"):
        await open_keyring.identify(request_with("1.0"))
