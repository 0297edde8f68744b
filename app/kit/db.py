"""The database: one engine, and one place that commits.

The engine runs in AUTOCOMMIT, so a read costs one round trip. Transactions begin and end only in this module, in
`Database.unit_of_work()`, `Database.snapshot()` and `DbSession.restart()`. An ORM session and the asyncpg connection
that it runs on share a transaction. Statements that have to be fast use the connection.

    async with database.unit_of_work(tenant, chat_key) as db_session: ...   # BEGIN … COMMIT
    async with database.raw(tenant) as connection: ...      # single statements, asyncpg's own speed
    async with database.snapshot(tenant) as db_session: ...  # reads of one and the same state

All three wait in memory for a connection, and connections are shared fairly between tenants. A unit of work first waits
for its turn in the chat that it changes (`kit/gate/connection_gate.py`). A task that holds a connection must not ask
for another one.

`defer(db_session, MessagesAppended(…))` stores an event. Before the commit, and in the same transaction, the *follower*
of its type is called: a function that `Database` was given for that type of event. `after_commit(db_session, callback)`
runs a callback only if the transaction commits. `db_session.last_writes` holds writes that depend on everything else in
the transaction, such as revisions; they run just before the commit.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any, Protocol, cast
from uuid import UUID

import orjson
from sqlalchemy import AdaptedConnection, MetaData, event
from sqlalchemy import Table as CoreTable
from sqlalchemy.engine import Connection as SyncConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import PoolProxiedConnection

from app.kit.errors import Unavailable, WritesRefused
from app.kit.gate.admission import DEFAULT_LIMITS, Room, Ticket, WaitLimits
from app.kit.gate.connection_gate import ConnectionGate
from app.kit.idle_connections import Connection, IdleConnections
from app.kit.unavailable import unavailable_if_away

__all__ = [
    "Connection",
    "Database",
    "DbSession",
    "Follower",
    "Table",
    "after_commit",
    "defer",
    "list_tables",
    "open_connections",
    "use_tables",
]

Follower = Callable[["DbSession", Any], Awaitable[None]]

_MAX_DEFERRED = 1_000
"""More deferred events than this in one transaction means that followers trigger each other endlessly."""

CONNECT_S = 5.0
"""How long it may take to open a connection, in seconds."""

_ROLLBACK_S = 5.0
"""How long a rollback may take, in seconds: longer than the server needs to end a cancelled statement."""

_MAX_STATEMENT_BYTES = 65_536
"""Longer statements are prepared and planned each time. The default, 15 KiB, is too small for reading a context."""

_SESSION_SETTINGS = {
    "application_name": "memobook",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "15s",
}
"""Sent as startup parameters, so no statement sets them. A connection pooler must forward or ignore them.

`plan_cache_mode` makes PostgreSQL plan each prepared statement once for a connection, whatever the values of its
parameters, because planning a search takes 2 ms. The statements are written such that one plan fits all values.

A request that waits for a locked chat holds a connection; `kit/gate/admission.py` limits how many do.
`idle_in_transaction_session_timeout` ends idle transactions, because they can hold a lock.
"""


class Table(DeclarativeBase):
    """The base of all tables. Constraints are named by convention so that migrations can refer to them.

    If a primary key begins with (chat_key, line_id) or (owner_key, line_id), the rows of a line are copied with the
    line, which is one course of a chat. `info["begins"]` is an SQL expression for a row's first seq: a copy that ends
    before it lacks the row. `info["copied_as"]` of a column is its value in the copy, in SQL, if that differs.

    Rows of whole chats, users and tenants belong to no line. If a table has only such rows, although its primary key
    has a `line_id`, it sets `info["has_lines"]` to False; a table of users and tenants can set `info["begins"]` to `0`
    instead. A table of whole chats can set `info["kept_if"]`, an SQL condition that is true while a line of the chat
    needs the row. When a line is deleted, the chat's rows for which the condition is false are deleted.
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
    """Register the tables of the layers in use, which may have their own MetaData. Called by `app/registry.py`."""
    _tables_of_layers[:] = tables


def list_tables() -> list[CoreTable]:
    """Return all tables of the service and of the layers in use, sorted by name."""
    tables = {table.name: table for table in (*Table.metadata.tables.values(), *_tables_of_layers)}
    return [tables[name] for name in sorted(tables)]


class _BoundLate(Session):
    """A session that obtains its connection on first use; most appends never use the ORM."""

    bind_late: Callable[[], SyncConnection]
    _bound: SyncConnection | None = None

    def get_bind(self, *_arguments: Any, **_options: Any) -> SyncConnection:
        """Return the connection of the unit of work."""
        if self._bound is None:
            self._bound = self.bind_late()
        return self._bound


class LastWrite(Protocol):
    """A write to one row that a unit of work makes just before it commits."""

    async def write(self, db_session: "DbSession", /) -> None:
        """Write the row, unless an earlier statement already did or nothing has changed."""
        ...


class DbSession(AsyncSession):
    """An ORM session inside a unit of work, with the asyncpg connection it runs on.

    `settle_s` is how long work that is scheduled in the session waits for further edits. `with_vectors` is whether an
    embedding model is configured; only then is work scheduled that turns texts into vectors. `last_writes` are written
    in the order of their keys, so that all transactions lock these rows in the same order: chats, users, tenants.
    """

    sync_session_class = _BoundLate

    def __init__(
        self,
        raw: Connection,
        bind_late: Callable[[], SyncConnection],
        followers: Mapping[type, Follower],
        settle_s: float,
        with_vectors: bool = False,
    ) -> None:
        super().__init__(expire_on_commit=False)
        cast("_BoundLate", self.sync_session).bind_late = bind_late
        self.raw = raw
        self.settle_s = settle_s
        self.with_vectors = with_vectors
        self.deferred: list[object] = []
        self.committed: list[Callable[[], None]] = []
        self.last_writes: dict[tuple[int, UUID, UUID], LastWrite] = {}
        self._followers = followers

    async def run_deferred(self) -> None:
        """Call the followers of the deferred events now, instead of just before the commit.

        Use it if the response depends on what the followers do.
        """
        for _ in range(_MAX_DEFERRED):
            if not self.deferred:
                return
            event = self.deferred.pop(0)
            await self._followers[type(event)](self, event)
        raise RuntimeError(f"followers trigger each other without end: {type(event).__name__}")

    async def restart(self) -> None:
        """Restart the transaction, which releases its locks. Use it before any write.

        Raises RuntimeError if an event was deferred or the ORM was used.
        """
        if self.deferred or self.is_used():
            raise RuntimeError("cannot restart a transaction that may have changed something")
        await self.raw.execute("ROLLBACK")
        self.last_writes.clear()
        await self.raw.execute("BEGIN")

    async def write_last(self) -> None:
        """Write `last_writes`; the unit of work calls it just before the commit."""
        for _, last in sorted(self.last_writes.items(), key=itemgetter(0)):
            await last.write(self)

    def is_used(self) -> bool:
        """Return whether the ORM session has been used."""
        return self.in_transaction() or bool(self.new)


def defer(db_session: DbSession, event: object) -> None:
    """Have the follower of the event's type called before the commit, in the same transaction."""
    db_session.deferred.append(event)


def after_commit(db_session: DbSession, callback: Callable[[], None]) -> None:
    """Call `callback` after the transaction has committed. It must not block or raise."""
    db_session.committed.append(callback)


class Database:
    """A pool of connections to one PostgreSQL database.

    Args:
        url: `postgresql+asyncpg://…`.
        pool_size: The maximum number of connections this process opens.
        limits: The maximum numbers of requests that wait for a connection.
        statement_s: The maximum duration of a statement, in seconds. Without it, a task would wait for a server that
            hangs without closing its connections.
        followers: The functions that handle deferred events, by the event's type.
        settle_s: How long work that is scheduled in a unit of work waits for further edits.
        with_vectors: Whether an embedding model is configured, so that work that turns texts into vectors is scheduled.
        connections: Connections to the same database, shared with other `Database` objects of the process; `close`
            leaves them open. If they are given, `url` and `statement_s` have no effect, and `pool_size` limits how many
            of these connections this object uses at the same time. By default, the object opens its own connections.

    Attributes:
        gate: The gate at which requests wait for a connection.
        last_refusal: The last error that was raised because PostgreSQL refused to write; None if there was none.

    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 20,
        limits: WaitLimits = DEFAULT_LIMITS,
        statement_s: float = 30.0,
        followers: Mapping[type, Follower] | None = None,
        settle_s: float = 0.0,
        with_vectors: bool = False,
        connections: IdleConnections | None = None,
    ) -> None:
        self._owns_connections = connections is None
        self._idle = connections or open_connections(url, pool_size=pool_size, statement_s=statement_s)
        self.gate = ConnectionGate(Room(pool_size, limits))
        self._followers = dict(followers or {})
        self._settle_s = settle_s
        self._with_vectors = with_vectors
        self.last_refusal: WritesRefused | None = None

    @asynccontextmanager
    async def unit_of_work(self, tenant: str | None = None, chat: UUID | None = None) -> AsyncGenerator[DbSession]:
        """Run the block in one transaction: commit when it ends, roll back when it raises.

        Raises `Unavailable` if PostgreSQL is unreachable or another transaction holds a lock that the block needs, and
        what `ConnectionGate.enter` raises.

        Args:
            tenant: The tenant whose share of the connections it uses; None for the service itself.
            chat: The key of the chat that the block changes; None if it changes no chat.

        """
        committed: DbSession | None = None
        with unavailable_if_away(self._note_refusal):
            async with self._taken(Ticket(tenant, chat)) as pooled:
                raw = cast("Connection", pooled.driver_connection)
                db_session = DbSession(
                    raw,
                    lambda: SyncConnection(self._idle.engine.sync_engine, pooled),
                    self._followers,
                    self._settle_s,
                    self._with_vectors,
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
    async def raw(self, tenant: str | None = None) -> AsyncGenerator[Connection]:
        """Yield an asyncpg connection in AUTOCOMMIT, for single statements.

        Raises `Unavailable`, and what `ConnectionGate.enter` raises. `tenant` is as in `unit_of_work`.
        """
        with unavailable_if_away(self._note_refusal):
            async with self._taken(Ticket(tenant, None)) as pooled:
                yield cast("Connection", pooled.driver_connection)

    @asynccontextmanager
    async def snapshot(self, tenant: str | None = None) -> AsyncGenerator[DbSession]:
        """Run the block on one snapshot of the database, in which nothing can be written.

        So several statements read the same state. Raises what `raw` raises; `tenant` is as in `unit_of_work`.
        """
        with unavailable_if_away(self._note_refusal):
            async with self._taken(Ticket(tenant, None)) as pooled:
                raw = cast("Connection", pooled.driver_connection)
                db_session = DbSession(raw, lambda: SyncConnection(self._idle.engine.sync_engine, pooled), {}, 0.0)
                try:
                    await raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    yield db_session
                finally:
                    await _rollback(raw)
                    if db_session.is_used():
                        await db_session.close()

    @asynccontextmanager
    async def _taken(self, ticket: Ticket) -> AsyncGenerator[PoolProxiedConnection]:
        await self.gate.enter(ticket)
        try:
            pooled = await self._idle.take()
            try:
                yield pooled
            finally:
                self._idle.put_back(pooled)
        finally:
            self.gate.leave(ticket)

    def _note_refusal(self, error: Unavailable) -> None:
        if isinstance(error, WritesRefused):
            self.last_refusal = error

    async def close(self) -> None:
        """Close all connections, unless they are shared."""
        if self._owns_connections:
            await self._idle.close()


def open_connections(url: str, *, pool_size: int = 20, statement_s: float = 30.0) -> IdleConnections:
    """Return the connections to a database; they are opened later. The arguments are those of `Database`."""
    engine = create_async_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        hide_parameters=True,  # messages of users must not appear in the log
        max_overflow=0,
        pool_timeout=10,
        pool_use_lifo=True,
        # PostgreSQL writes the JSON number 1e20 as an integer. `json` would read an int that orjson cannot encode.
        json_deserializer=orjson.loads,
        connect_args={
            "timeout": CONNECT_S,
            "command_timeout": statement_s,
            "max_cacheable_statement_size": _MAX_STATEMENT_BYTES,
            "server_settings": _SESSION_SETTINGS,
        },
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return IdleConnections(engine)


async def _commit(raw: Connection) -> None:
    """Commit. Raises RuntimeError if a statement had failed: PostgreSQL then rolls back without an error."""
    if await raw.execute("COMMIT") != "COMMIT":
        raise RuntimeError("the transaction was rolled back because one of its statements had failed")


async def _rollback(raw: Connection) -> None:
    """Roll back, even if this task is cancelled meanwhile; terminate the connection if the rollback fails.

    If the connection were terminated without a rollback, its locks would stay until the running statement ends.
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
    """Make the pool replace a closed connection; it does not notice connections lost during raw statements."""
    if cast("Connection", adapted.driver_connection).is_closed():
        raise DisconnectionError("the connection was closed")
