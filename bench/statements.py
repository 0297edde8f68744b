"""Which statements PostgreSQL was sent, by its own count (pg_stat_statements, utility statements included).

The service's role is asked about itself, so what a superuser does is not in it; what the worker does would be.
"""

from collections import Counter
from dataclasses import dataclass

from app.kit.db import Connection

SETTINGS = {"shared_preload_libraries": "pg_stat_statements"}
"""What the embedded PostgreSQL needs for it."""

_TRANSACTION = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})

_CALLS = """
    SELECT query, calls FROM pg_stat_statements
    WHERE userid = current_user::regrole AND query NOT LIKE '%pg_stat_statements%'"""


@dataclass(frozen=True, slots=True)
class Statements:
    """How many were sent: `own`, and those that only begin and end transactions."""

    own: float
    transaction: float

    def per(self, requests: int) -> "Statements":
        """Of each of so many requests."""
        return Statements(self.own / requests, self.transaction / requests)


async def install(connection: Connection) -> None:
    """Make the counts readable; `connection` is a superuser's."""
    await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")


async def read_calls(connection: Connection) -> Counter[str]:
    """How often each statement of this role has run since the server began."""
    calls: Counter[str] = Counter()
    for row in await connection.fetch(_CALLS):
        calls[row["query"].strip("; \n").upper()] += row["calls"]
    return calls


def sent_between(before: Counter[str], after: Counter[str]) -> Statements:
    """What was sent between two readings."""
    sent = after - before
    transaction = sum(calls for text, calls in sent.items() if text in _TRANSACTION)
    return Statements(sent.total() - transaction, transaction)
