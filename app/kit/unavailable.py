"""Which errors of PostgreSQL and its driver mean that the service is unavailable for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import DBAPIError, EmulatedDBAPIException, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.kit.errors import DatabaseRejected, Unavailable, WritesRefused

_AWAY = (
    OSError,
    PoolTimeout,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,  # a shutdown, a crash, a cancelled statement
    asyncpg.InsufficientResourcesError,  # of disk, memory or connections
    asyncpg.PostgresIOError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InternalClientError,  # a connection that was lost in the middle of a response
    asyncpg.IdleInTransactionSessionTimeoutError,
)


@contextmanager
def unavailable_if_away(note: Callable[[Unavailable], None] | None = None) -> Iterator[None]:
    """Raise `Unavailable` if PostgreSQL is unreachable, lacks disk or memory, is read-only, or a lock stays held.

    `note` is called with the error before it is raised.
    """
    try:
        yield
    except _AWAY as error:
        away = _unavailable(error)
        if note:
            note(away)
        raise away from error
    except (DBAPIError, EmulatedDBAPIException) as error:  # the pool does not wrap the second one in the first
        lost = isinstance(error, InterfaceError) or (isinstance(error, DBAPIError) and error.connection_invalidated)
        cause = driver_error(error)
        if not lost and not isinstance(cause, _AWAY):
            raise
        away = _unavailable(cause)
        if note:
            note(away)
        raise away from error


def driver_error(error: DBAPIError | EmulatedDBAPIException) -> BaseException | None:
    """Return the asyncpg error that SQLAlchemy wrapped, or None if the error is SQLAlchemy's own."""
    orig = error.orig
    return orig.orig if isinstance(orig, EmulatedDBAPIException) else orig


def _unavailable(error: BaseException | None) -> Unavailable:
    match error:
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError():
            return Unavailable("Another request holds a lock that this request needs; try again.")
        case asyncpg.InvalidCatalogNameError():
            return DatabaseRejected("The database does not exist.")
        case asyncpg.InvalidAuthorizationSpecificationError():
            return DatabaseRejected("The database rejects the configured credentials.")
        case asyncpg.ReadOnlySQLTransactionError():
            return WritesRefused("The database is read-only.", state="read-only")
        case asyncpg.DiskFullError() | asyncpg.PostgresIOError():
            return WritesRefused("The database cannot write to its disk.", state="disk full")
        case asyncpg.OutOfMemoryError():
            return Unavailable("The database is out of memory.")
        case asyncpg.QueryCanceledError():
            return Unavailable("The database cancelled the statement.")
        case TimeoutError() | PoolTimeout():
            return Unavailable("The database does not answer in time.")
    return Unavailable("The database is not reachable.")
