"""SQL of keys and secrets. Functions with a `connection` run on asyncpg, those with a `db_session` use the ORM."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
from sqlalchemy import select, tuple_, update

from app.keys.models import Key
from app.kit.db import Connection, DbSession

_COLUMNS = "key_id, tenant, scopes, secret_hash, user_scope"

_FIND = f"SELECT {_COLUMNS} FROM keys WHERE key_id = $1 AND revoked_at IS NULL"  # noqa: S608 - constants only

_FIND_ENVIRONMENT = f"SELECT {_COLUMNS} FROM keys WHERE from_environment AND revoked_at IS NULL"  # noqa: S608 - constants only

_PUT_ENVIRONMENT = """
    INSERT INTO keys (key_id, tenant, scopes, secret_hash, from_environment, created_at)
    VALUES ($1, $2, $3, $4, true, $5)
    ON CONFLICT (from_environment) WHERE from_environment DO UPDATE SET
        key_id = excluded.key_id, tenant = excluded.tenant, scopes = excluded.scopes,
        secret_hash = excluded.secret_hash, created_at = excluded.created_at, revoked_at = NULL
    WHERE keys.secret_hash <> excluded.secret_hash"""


async def key_exists(connection: Connection) -> bool:
    """Return whether any key was ever created, revoked or not."""
    return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM keys)"))


async def admin_exists(connection: Connection) -> bool:
    """Return whether a key with the scope admin exists that has not been revoked."""
    return bool(
        await connection.fetchval("SELECT EXISTS (SELECT FROM keys WHERE 'admin' = ANY(scopes) AND revoked_at IS NULL)")
    )


async def find_key(connection: Connection, key_id: str) -> asyncpg.Record | None:
    """Return the key, or None if it does not exist or has been revoked."""
    return await connection.fetchrow(_FIND, key_id)


async def find_environment_key(connection: Connection) -> asyncpg.Record | None:
    """Return the environment's key, or None if there is none or it has been revoked."""
    return await connection.fetchrow(_FIND_ENVIRONMENT)


async def put_environment_key(
    connection: Connection, key_id: str, tenant: str, scopes: Sequence[str], *, secret_hash: bytes, now: datetime
) -> None:
    """Replace the environment's key. A key with the same secret is left unchanged, revoked or not."""
    await connection.execute(_PUT_ENVIRONMENT, key_id, tenant, scopes, secret_hash, now)


async def get_secret(connection: Connection, name: str, *, otherwise: bytes) -> bytes:
    """Return the secret `name`. If there is none yet, store `otherwise`, unless another process stores one first."""
    insert = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
    await connection.execute(insert, name, otherwise)
    value: bytes = await connection.fetchval("SELECT value FROM secrets WHERE name = $1", name)
    return value


async def list_keys(db_session: DbSession, *, before: tuple[datetime, str] | None, limit: int) -> list[Key]:
    """Return keys that have not been revoked, newest first, beginning after `before` in that order."""
    query = select(Key).where(Key.revoked_at.is_(None))
    if before:
        query = query.where(tuple_(Key.created_at, Key.key_id) < before)
    query = query.order_by(Key.created_at.desc(), Key.key_id.desc()).limit(limit)
    return list(await db_session.scalars(query))


async def find_listed(db_session: DbSession, key_id: str) -> Key | None:
    """Return the key, or None if it does not exist or has been revoked."""
    return (
        await db_session.execute(select(Key).where(Key.key_id == key_id, Key.revoked_at.is_(None)))
    ).scalar_one_or_none()


async def update_revoked(db_session: DbSession, key_id: str, now: datetime) -> bool:
    """Revoke a key. Returns False if it does not exist or has already been revoked."""
    query = update(Key).where(Key.key_id == key_id, Key.revoked_at.is_(None)).values(revoked_at=now)
    return await db_session.scalar(query.returning(Key.key_id)) is not None
