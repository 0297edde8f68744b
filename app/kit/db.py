"""The database: one engine, one committer.

The engine runs in AUTOCOMMIT, so a read costs one round trip; a transaction is begun and ended by
`Database.unit_of_work()` and nowhere else. Inside it an ORM session and the asyncpg connection below it
share one transaction: what is hot runs on the connection, the rest on whichever reads better.

    async with database.unit_of_work() as db_session: ...   # BEGIN … COMMIT
    async with database.raw() as connection: ...            # single reads, asyncpg's own speed

`defer(db_session, MessagesAppended(…))` triggers upwards by the event's type: its follower, from the table that the
application hands in, runs before the commit, in the same transaction.
`after_commit(db_session, callback)` is for what must not happen if the transaction fails.
`db_session.last_writes` holds what is written last, because it depends on all that the transaction changes: revisions.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from operator import itemgetter
from typing import Any, Protocol, cast
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy import AdaptedConnection, MetaData, event
from sqlalchemy import Table as CoreTable
from sqlalchemy.engine import Connection as SyncConnection
from sqlalchemy.exc import DBAPIError, DisconnectionError, EmulatedDBAPIException, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import PoolProxiedConnection

from app.kit.errors import Unavailable
from app.kit.shelf import Connection, Shelf

__all__ = [
    "Connection",
    "Database",
    "DbSession",
    "Follower",
    "Table",
    "after_commit",
    "defer",
    "driver_error",
    "list_tables",
    "unavailable_if_away",
    "use_tables",
]

Follower = Callable[["DbSession", Any], Awaitable[None]]

_MAX_DEFERRED = 1_000
"""More than this in one transaction is a circle of followers, not work."""

_ROLLBACK_S = 5.0
"""Longer than the server needs to end the statement that was cancelled."""

_SESSION_SETTINGS = {
    "application_name": "memobook",
    "jit": "off",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "15s",
}
"""Given with the connection, so no statement sets them; a pooler in between has to let them pass or ignore them.

Whoever waits for a chat's row holds a connection meanwhile, and all chats share the pool: without an end to the
waiting, one chat that is locked would take the others with it. The second ends whoever keeps a lock and does nothing.
"""

_AWAY = (
    OSError,
    PoolTimeout,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InternalClientError,  # a connection that died in the middle of an answer
    asyncpg.IdleInTransactionSessionTimeoutError,
)


class Table(DeclarativeBase):
    """The base of all tables; constraints are named by convention so that migrations can find them.

    A table whose primary key begins (chat_key, line_id) or (owner_key, line_id) is copied with its line. Its `info`
    says how: `begins` is an expression for the seq that a row begins at, and a column's `copied_as` one for the value
    in the copy, where that is another one. A table of users and tenants alone says `has_lines: False`.
    """

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


_tables_of_layers: list[CoreTable] = []


def use_tables(tables: Iterable[CoreTable]) -> None:
    """Name the tables of the layers in use; they may have a metadata of their own. `app/registry.py` calls it."""
    _tables_of_layers[:] = tables


def list_tables() -> list[CoreTable]:
    """Every table of the service and of the layers in use, by name."""
    tables = {table.name: table for table in (*Table.metadata.tables.values(), *_tables_of_layers)}
    return [tables[name] for name in sorted(tables)]


class _BoundLate(Session):
    """A session that finds its connection when it is first used: most appends never use it."""

    bind_late: Callable[[], SyncConnection]
    _bound: SyncConnection | None = None

    def get_bind(self, *_arguments: Any, **_options: Any) -> SyncConnection:
        """The connection of the unit of work."""
        if self._bound is None:
            self._bound = self.bind_late()
        return self._bound


class LastWrite(Protocol):
    """What a unit of work writes to one row just before it commits."""

    async def write(self, db_session: "DbSession", /) -> None:
        """Write the row, unless an earlier statement has."""
        ...


class DbSession(AsyncSession):
    """An ORM session inside a unit of work, with the asyncpg connection it runs on.

    `settle_s` is how long due work that is scheduled in it waits for further edits. `last_writes` is written in the
    order of its keys, so that all transactions lock these rows in the same order: chats, users, tenants.
    """

    sync_session_class = _BoundLate

    def __init__(
        self,
        raw: Connection,
        bind_late: Callable[[], SyncConnection],
        followers: Mapping[type, Follower],
        settle_s: float,
    ) -> None:
        super().__init__(expire_on_commit=False)
        cast("_BoundLate", self.sync_session).bind_late = bind_late
        self.raw = raw
        self.settle_s = settle_s
        self.deferred: list[object] = []
        self.committed: list[Callable[[], None]] = []
        self.last_writes: dict[tuple[int, UUID, UUID], LastWrite] = {}
        self._followers = followers

    async def run_deferred(self) -> None:
        """Run what is deferred now, for an answer that has to tell of it; the commit would run it anyway."""
        for _ in range(_MAX_DEFERRED):
            if not self.deferred:
                return
            event = self.deferred.pop(0)
            await self._followers[type(event)](self, event)
        raise RuntimeError(f"followers trigger each other without end: {type(event).__name__}")

    async def restart(self) -> None:
        """Begin the transaction anew, which gives its locks back. Raises RuntimeError if it has done more than lock."""
        if self.deferred or self.is_used():
            raise RuntimeError("the transaction has changed something")
        await self.raw.execute("ROLLBACK")
        self.last_writes.clear()
        await self.raw.execute("BEGIN")

    async def write_last(self) -> None:
        """Write what is written just before the commit."""
        for _, last in sorted(self.last_writes.items(), key=itemgetter(0)):
            await last.write(self)

    def is_used(self) -> bool:
        """Whether the ORM was asked for anything."""
        return self.in_transaction() or bool(self.new)


def defer(db_session: DbSession, event: object) -> None:
    """Run the follower of the event's type before the commit, in the same transaction."""
    db_session.deferred.append(event)


def after_commit(db_session: DbSession, callback: Callable[[], None]) -> None:
    """Call `callback` once the transaction stands; it must not block or raise."""
    db_session.committed.append(callback)


@contextmanager
def unavailable_if_away() -> Iterator[None]:
    """Raise `Unavailable` for an error that says that PostgreSQL is away, lets nobody in, or keeps a lock."""
    try:
        yield
    except _AWAY as error:
        raise _unavailable(error) from error
    except (DBAPIError, EmulatedDBAPIException) as error:  # the latter from the pool, which does not wrap it
        lost = isinstance(error, InterfaceError) or (isinstance(error, DBAPIError) and error.connection_invalidated)
        cause = driver_error(error)
        if not lost and not isinstance(cause, _AWAY):
            raise
        raise _unavailable(cause) from error


def driver_error(error: DBAPIError | EmulatedDBAPIException) -> BaseException | None:
    """What asyncpg raised; None for an error of SQLAlchemy's own."""
    orig = error.orig
    return orig.orig if isinstance(orig, EmulatedDBAPIException) else orig


def _unavailable(error: BaseException | None) -> Unavailable:
    match error:
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError():
            return Unavailable("Another request is keeping what this one needs; try again.")
        case asyncpg.InvalidCatalogNameError():
            return Unavailable("The database does not exist.")
        case asyncpg.InvalidAuthorizationSpecificationError():
            return Unavailable("The database lets nobody in with these credentials.")
    return Unavailable("The database is not reachable.")


class Database:
    """A pool of connections to one PostgreSQL.

    Args:
        url: `postgresql+asyncpg://…`.
        pool_size: The most connections this process opens.
        followers: What runs when an event is deferred, by the event's type.
        settle_s: How long due work waits for further edits, for whoever schedules it in a unit of work.

    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 20,
        followers: Mapping[type, Follower] | None = None,
        settle_s: float = 0.0,
    ) -> None:
        self._engine: AsyncEngine = create_async_engine(
            url,
            isolation_level="AUTOCOMMIT",
            pool_size=pool_size,
            hide_parameters=True,  # what people say is not for the log
            max_overflow=0,
            pool_timeout=10,
            pool_use_lifo=True,
            # PostgreSQL writes 1e20 out; orjson reads that as the number it was, json as one it cannot answer with.
            json_deserializer=orjson.loads,
            connect_args={"timeout": 5, "server_settings": _SESSION_SETTINGS},
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        self._shelf = Shelf(self._engine)
        self._followers = dict(followers or {})
        self._settle_s = settle_s

    @asynccontextmanager
    async def unit_of_work(self) -> AsyncGenerator[DbSession]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises `Unavailable` when PostgreSQL is away, or somebody else keeps a lock that the block needs.
        """
        committed: DbSession | None = None
        with unavailable_if_away():
            async with self._taken() as pooled:
                raw = cast("Connection", pooled.driver_connection)
                db_session = DbSession(
                    raw, lambda: SyncConnection(self._engine.sync_engine, pooled), self._followers, self._settle_s
                )
                try:
                    await raw.execute("BEGIN")
                    yield db_session
                    await db_session.run_deferred()
                    if db_session.is_used():
                        await db_session.flush()
                    await db_session.write_last()
                    await _commit(raw)
                    committed = db_session
                except BaseException:
                    await _rollback(raw)
                    raise
                finally:
                    if db_session.is_used():
                        await db_session.close()
        for callback in committed.committed if committed else ():
            callback()

    @asynccontextmanager
    async def raw(self) -> AsyncGenerator[Connection]:
        """An asyncpg connection in AUTOCOMMIT, for single statements. Raises `Unavailable`."""
        with unavailable_if_away():
            async with self._taken() as pooled:
                yield cast("Connection", pooled.driver_connection)

    @asynccontextmanager
    async def _taken(self) -> AsyncGenerator[PoolProxiedConnection]:
        pooled = await self._shelf.take()
        try:
            yield pooled
        finally:
            self._shelf.put_back(pooled)

    async def close(self) -> None:
        """Close all connections."""
        await self._shelf.close()


async def _commit(raw: Connection) -> None:
    """Commit. PostgreSQL rolls back instead, and calls it no error, after one that somebody has swallowed."""
    if await raw.execute("COMMIT") != "COMMIT":
        raise RuntimeError("a statement of the transaction had failed")


async def _rollback(raw: Connection) -> None:
    """Roll back, however often this is cancelled meanwhile; close the connection where that is not possible.

    Closed at once, it would keep its locks until the statement ends that it runs.
    """
    rolling_back = asyncio.create_task(raw.execute("ROLLBACK", timeout=_ROLLBACK_S))
    cancelled = False
    while not rolling_back.done():
        try:
            await asyncio.wait([rolling_back])
        except asyncio.CancelledError:
            cancelled = True
    if rolling_back.cancelled() or rolling_back.exception():
        raw.terminate()
    if cancelled:
        raise asyncio.CancelledError


def _refuse_closed(adapted: AdaptedConnection, *_rest: object) -> None:
    """Have the pool replace a connection that died in it; raw statements hide from it that one is dead."""
    if cast("Connection", adapted.driver_connection).is_closed():
        raise DisconnectionError("the connection was closed")
