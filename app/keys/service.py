"""Operations on keys and tokens."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, get_args

from app.keys import queries
from app.keys.credentials import hash_of, new_key_id, new_key_text
from app.keys.errors import FirstKeyNotAdmin, KeyNotFound
from app.keys.keyring import DatabaseKeyring
from app.keys.models import TENANT_PATTERN, Key
from app.keys.schemas import TokenIn
from app.keys.tokens import Claims
from app.kit.auth import DEFAULT_TENANT, Caller, Forbidden, Scope
from app.kit.db import Connection, DbSession
from app.kit.errors import Invalid
from app.kit.settings import PREFIX, SettingsError

__all__ = [
    "CreatedKey",
    "DatabaseKeyring",
    "create_key",
    "ensure_admin_key",
    "get_key",
    "has_admin",
    "has_keys",
    "is_sendable",
    "issue_token",
    "list_keys",
    "require_admin_first",
    "revoke_key",
]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key with its text, which is not stored."""

    key_id: str
    tenant: str
    scopes: list[Scope]
    text: str
    user_scope: bool = False


async def create_key(
    db_session: DbSession, tenant: str, scopes: Iterable[str], now: datetime, *, user_scope: bool = False
) -> CreatedKey:
    """Create a key. Raises Invalid if the tenant or a scope is not valid.

    With `user_scope`, tokens of the key that are limited to a chat also see and write what is known of the chat's user
    and of the tenant.
    """
    wanted = set(scopes)
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise Invalid("tenant: must be 1 to 100 characters of A-Z a-z 0-9 . _ : @ -")
    if not wanted or not wanted.issubset(SCOPES):
        raise Invalid(f"scopes: must be one or more of {', '.join(SCOPES)}")
    key_id = new_key_id()
    created = CreatedKey(
        key_id, tenant, [scope for scope in SCOPES if scope in wanted], new_key_text(key_id), user_scope
    )
    db_session.add(
        Key(
            key_id=key_id,
            tenant=tenant,
            scopes=created.scopes,
            secret_hash=hash_of(created.text),
            user_scope=user_scope,
            created_at=now,
        )
    )
    await db_session.flush()
    return created


async def list_keys(db_session: DbSession, *, before: tuple[datetime, str] | None = None, limit: int) -> list[Key]:
    """Return keys of all tenants that have not been revoked, newest first, beginning after `before` in that order."""
    return await queries.list_keys(db_session, before=before, limit=limit)


async def get_key(db_session: DbSession, key_id: str) -> Key:
    """Return the key. Raises KeyNotFound if it does not exist or has been revoked."""
    key = await queries.find_listed(db_session, key_id)
    if key is None:
        raise KeyNotFound(f"There is no key {key_id!r}.")
    return key


async def revoke_key(db_session: DbSession, key_id: str, now: datetime) -> None:
    """Revoke a key and the tokens that were created with it. Raises KeyNotFound."""
    if not await queries.update_revoked(db_session, key_id, now):
        raise KeyNotFound(f"There is no key {key_id!r}.")


async def has_keys(db_session: DbSession) -> bool:
    """Return whether any key was ever created. Without one, the service may only listen on loopback."""
    return await queries.key_exists(db_session.raw)


async def has_admin(connection: Connection) -> bool | None:
    """Return whether there is a key with the scope admin that is not revoked; None if no key was ever created."""
    if not await queries.key_exists(connection):
        return None
    return await queries.admin_exists(connection)


def is_sendable(admin_key: str) -> bool:
    """Return whether an admin key is long enough and can be sent in a header."""
    return re.fullmatch(r"[!-~]{32,}", admin_key) is not None


async def ensure_admin_key(db_session: DbSession, admin_key: str, now: datetime) -> None:
    """Make `admin_key` the environment's key. It replaces the previous one, whose tokens become invalid.

    If it already is the environment's key, nothing changes; if it has been revoked, it stays revoked and a warning is
    logged. Raises SettingsError if it is too short or cannot be sent in a header.
    """
    if not is_sendable(admin_key):
        raise SettingsError(f"{PREFIX}ADMIN_KEY: must be at least 32 printable ASCII characters without spaces")
    await queries.put_environment_key(
        db_session.raw, new_key_id(), DEFAULT_TENANT, SCOPES, secret_hash=hash_of(admin_key), now=now
    )
    if await queries.find_environment_key(db_session.raw) is None:
        log.warning("%sADMIN_KEY contains a key that has been revoked; set another one", PREFIX)


def require_admin_first(caller: Caller, scopes: Iterable[str]) -> None:
    """Raise FirstKeyNotAdmin if the first key would lack the scope `admin`."""
    if caller.key_id is None and "admin" not in scopes:
        raise FirstKeyNotAdmin(
            "The first key must have the scope 'admin': once it exists, every request needs a key, and only an admin "
            "key can create others."
        )


async def issue_token(keyring: DatabaseKeyring, caller: Caller, wanted: TokenIn, now: datetime) -> tuple[str, datetime]:
    """Return a token for a user or chat of the caller's tenant, and when it expires. Raises Forbidden."""
    if caller.user_id is not None or caller.chat_id is not None:
        raise Forbidden("A token cannot create tokens; use a key.")
    if not wanted.scopes <= caller.scopes:
        raise Forbidden(f"The key only has the scopes {', '.join(sorted(caller.scopes))}.")
    expires_at = now.replace(microsecond=0) + timedelta(seconds=wanted.ttl_s)
    claims = Claims(
        exp=int(expires_at.timestamp()),
        tenant=caller.tenant,
        scopes=sorted(wanted.scopes),
        key_id=caller.key_id,
        user_id=wanted.user_id,
        chat_id=wanted.chat_id,
        user_scope=caller.user_scope,
    )
    return await keyring.sign(claims), expires_at
