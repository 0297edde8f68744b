"""The statements that PostgreSQL received, by its own count (pg_stat_statements, including utility statements).

Only the statements of the service's role count: those of a superuser do not, those of the worker do.
"""

from collections import Counter
from dataclasses import dataclass

from app.kit.db import Connection

SETTINGS = {"shared_preload_libraries": "pg_stat_statements"}
"""The settings of the embedded PostgreSQL that the count needs."""

_TRANSACTION = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})

_CALLS = """
    SELECT query, calls FROM pg_stat_statements
    WHERE userid = current_user::regrole AND query NOT LIKE '%pg_stat_statements%'"""


@dataclass(frozen=True, slots=True)
class Statements:
    """Numbers of statements: `own`, and those that only begin and end transactions."""

    own: float
    transaction: float

    def per(self, requests: int) -> "Statements":
        """Return the numbers per request, for a number of requests."""
        return Statements(self.own / requests, self.transaction / requests)


async def install(connection: Connection) -> None:
    """Install the extension that counts; `connection` is a superuser's."""
    await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")


async def read_calls(connection: Connection) -> Counter[str]:
    """Return how often each statement of this role has run since the server started."""
    calls: Counter[str] = Counter()
    for row in await connection.fetch(_CALLS):
        calls[row["query"].strip("; \n").upper()] += row["calls"]
    return calls


def sent_between(before: Counter[str], after: Counter[str]) -> Statements:
    """Return the statements between two readings."""
    sent = after - before
    transaction = sum(calls for text, calls in sent.items() if text in _TRANSACTION)
    return Statements(sent.total() - transaction, transaction)
