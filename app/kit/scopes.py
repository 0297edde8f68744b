"""A revision for each user and each tenant, raised by every change to data that all of their chats share."""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Connection, DbSession, Table
from app.kit.ids import tenant_key
from app.kit.owners import NO_LINE, Owner

NOW_MS = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
"""The initial revision: Unix milliseconds by the database's clock, so that a row that was deleted and created again
never reuses a number. It does not change within a statement, so all columns of a row that use it are equal."""

_USERS, _TENANTS = 1, 2
"""The first part of a key of `DbSession.last_writes`, which orders the writes; lines of chats have 0."""

_RAISE = """
    INSERT INTO scopes (owner_key, line_id) VALUES ($1, $2)
    ON CONFLICT (owner_key, line_id) DO UPDATE SET revision = scopes.revision + 1"""

_LOCK = """
    INSERT INTO scopes (owner_key, line_id) VALUES ($1, $2)
    ON CONFLICT (owner_key, line_id) DO UPDATE SET revision = scopes.revision"""

_READ = """
    SELECT coalesce(max(revision) FILTER (WHERE owner_key = $1), 0) AS of_user,
        coalesce(max(revision) FILTER (WHERE owner_key = $2), 0) AS of_tenant
    FROM scopes WHERE owner_key IN ($1, $2) AND line_id = $3"""


class Scope(Table):
    """The revision of a user or a tenant. The row is created by the first change or lock, and erased with its owner.

    `known` caches the facts that hold for the owner, as contexts read them (`app/knowledge/cache.py`).

    The primary key has a `line_id` as in other tables with an `owner_key`. Here the `line_id` is always `NO_LINE`.
    """

    __tablename__ = "scopes"
    __table_args__ = (
        CheckConstraint(f"line_id = '{NO_LINE}'", name="line"),
        {"postgresql_with": {"fillfactor": 70}, "info": {"has_lines": False}},
    )

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text(NOW_MS))
    known: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class ScopeRevisions(NamedTuple):
    """The revisions of a chat's user and tenant; 0 for one that has no row yet."""

    of_user: int = 0
    of_tenant: int = 0


@dataclass(frozen=True, slots=True)
class _Raise:
    key: UUID

    async def write(self, db_session: DbSession) -> None:
        await db_session.raw.execute(_RAISE, self.key, NO_LINE)


def raise_scope(db_session: DbSession, owner: Owner) -> None:
    """Raise the revision of a user or a tenant just before the commit, once per transaction.

    Call it in every transaction that changes data shared by all chats of the owner. Raises ValueError for a line: to
    raise the revision of a line, lock the line (`app/chats/revision.py`).
    """
    if owner.is_line:
        raise ValueError("a line has its own revision; lock it instead")
    raise_scope_of(db_session, owner.key, is_tenant=owner.user_id is None)


def raise_scope_of(db_session: DbSession, key: UUID, *, is_tenant: bool) -> int:
    """Do what `raise_scope` does, given the key of a user or a tenant; return its rank in `last_writes`."""
    rank = _TENANTS if is_tenant else _USERS
    db_session.last_writes[rank, key, NO_LINE] = _Raise(key)
    return rank


async def lock_scope_of(db_session: DbSession, key: UUID) -> None:
    """Lock the row of a user or a tenant, given its key, until the transaction ends.

    Used by a transaction that reads data in order to change it. Lock a chat before a user, and a user before a tenant.
    """
    await db_session.raw.execute(_LOCK, key, NO_LINE)


async def read_scopes(connection: Connection, tenant: str, user_key: UUID | None) -> ScopeRevisions:
    """Return the revisions of a tenant and of one of its users; without a user, `of_user` is 0."""
    (row,) = await connection.fetch(_READ, user_key, tenant_key(tenant), NO_LINE)
    return ScopeRevisions(*row)
