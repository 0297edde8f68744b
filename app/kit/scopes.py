"""A revision for each user and each tenant: it rises when something changes that is known to all of their chats."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Connection, DbSession, Table
from app.kit.ids import tenant_key
from app.kit.owners import NO_LINE, Owner

NOW_MS = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
"""Where a revision starts: Unix milliseconds by the database's clock, so that a row that was deleted and created again
never has a former number. The same for all columns of a row, as it does not change within a statement."""

_USERS, _TENANTS = 1, 2
"""The position in `DbSession.last_writes`. The lines of chats have 0."""

_RAISE = """
    INSERT INTO scopes (owner_key, line_id) VALUES ($1, $2)
    ON CONFLICT (owner_key, line_id) DO UPDATE SET revision = scopes.revision + 1"""

_READ = """
    SELECT coalesce(max(revision) FILTER (WHERE owner_key = $1), 0) AS of_user,
        coalesce(max(revision) FILTER (WHERE owner_key = $2), 0) AS of_tenant
    FROM scopes WHERE owner_key IN ($1, $2) AND line_id = $3"""


class Scope(Table):
    """The revision of a user or a tenant. The row is created by the first change and erased with its owner.

    The key has the form of all tables of owners, but no row is of a line: `line_id` is `NO_LINE`.
    """

    __tablename__ = "scopes"
    __table_args__ = (
        CheckConstraint(f"line_id = '{NO_LINE}'", name="line"),
        {"postgresql_with": {"fillfactor": 70}, "info": {"has_lines": False}},
    )

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text(NOW_MS))


class ScopeRevisions(NamedTuple):
    """The revisions of the scopes that a chat is in; 0 for one of which nothing has changed yet."""

    of_user: int = 0
    of_tenant: int = 0


@dataclass(frozen=True, slots=True)
class _Raise:
    owner: Owner

    async def write(self, db_session: DbSession) -> None:
        await db_session.raw.execute(_RAISE, self.owner.key, self.owner.line_id)


def raise_scope(db_session: DbSession, owner: Owner) -> None:
    """Raise the revision of a user or a tenant just before the commit, once, however often this is called.

    Call it in each transaction that changes what is known to all chats of the owner. A line's revision rises through
    its lock (`app/chats/revision.py`), so an owner that is a line is a ValueError.
    """
    if owner.is_line:
        raise ValueError("a line has a revision of its own; lock it")
    rank = _TENANTS if owner.user_id is None else _USERS
    db_session.last_writes[rank, owner.key, owner.line_id] = _Raise(owner)


async def read_scopes(connection: Connection, tenant: str, user_key: UUID | None) -> ScopeRevisions:
    """Return the revisions of a tenant and, unless it is None, of one of its users."""
    (row,) = await connection.fetch(_READ, user_key, tenant_key(tenant), NO_LINE)
    return ScopeRevisions(*row)
