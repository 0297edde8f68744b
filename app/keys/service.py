"""The verbs of keys and tokens: create, list, revoke, register the environment's, issue a token."""

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
from app.kit.db import DbSession
from app.kit.errors import Invalid
from app.kit.settings import PREFIX, SettingsError

__all__ = [
    "CreatedKey",
    "DatabaseKeyring",
    "create_key",
    "ensure_admin_key",
    "get_key",
    "has_keys",
    "issue_token",
    "list_keys",
    "require_admin_first",
    "revoke_key",
]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A key with its text, which is not kept."""

    key_id: str
    tenant: str
    scopes: list[Scope]
    text: str


async def create_key(db_session: DbSession, tenant: str, scopes: Iterable[str], now: datetime) -> CreatedKey:
    """Make a key. Raises Invalid for a tenant or a scope that cannot be."""
    wanted = set(scopes)
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise Invalid("tenant: must be 1 to 100 of A-Z a-z 0-9 . _ : @ -")
    if not wanted or not wanted.issubset(SCOPES):
        raise Invalid(f"scopes: must be some of {', '.join(SCOPES)}")
    key_id = new_key_id()
    created = CreatedKey(key_id, tenant, [scope for scope in SCOPES if scope in wanted], new_key_text(key_id))
    db_session.add(
        Key(
            key_id=key_id,
            tenant=tenant,
            scopes=created.scopes,
            secret_hash=hash_of(created.text),
            created_at=now,
        )
    )
    await db_session.flush()
    return created


async def list_keys(db_session: DbSession, *, before: tuple[datetime, str] | None = None, limit: int) -> list[Key]:
    """Keys of all tenants that have not been revoked, newest first, those after `before` in that order."""
    return await queries.list_keys(db_session, before=before, limit=limit)


async def get_key(db_session: DbSession, key_id: str) -> Key:
    """One key that has not been revoked. Raises KeyNotFound."""
    key = await queries.find_listed(db_session, key_id)
    if key is None:
        raise KeyNotFound(f"There is no key {key_id!r}.")
    return key


async def revoke_key(db_session: DbSession, key_id: str, now: datetime) -> None:
    """End a key and the tokens that were made with it. Raises KeyNotFound."""
    if not await queries.update_revoked(db_session, key_id, now):
        raise KeyNotFound(f"There is no key {key_id!r}.")


async def has_keys(db_session: DbSession) -> bool:
    """Whether a key was ever made. Without one the service may only listen on loopback."""
    return await queries.key_exists(db_session.raw)


async def ensure_admin_key(db_session: DbSession, admin_key: str, now: datetime) -> None:
    """Make `admin_key` the environment's key, in place of the former one, whose tokens end with it.

    One that is so already stays as it is; if it has been revoked it stays revoked, and the log says so.
    Raises SettingsError if it is too weak, or cannot be sent in a header.
    """
    if not re.fullmatch(r"[!-~]{32,}", admin_key):
        raise SettingsError(f"{PREFIX}ADMIN_KEY: must be at least 32 characters of ASCII without spaces")
    await queries.put_environment_key(
        db_session.raw, new_key_id(), DEFAULT_TENANT, SCOPES, secret_hash=hash_of(admin_key), now=now
    )
    if await queries.find_environment_key(db_session.raw) is None:
        log.warning("%sADMIN_KEY holds a key that was revoked; set another one", PREFIX)


def require_admin_first(caller: Caller, scopes: Iterable[str]) -> None:
    """Refuse a first key that could not make another. Raises FirstKeyNotAdmin."""
    if caller.key_id is None and "admin" not in scopes:
        raise FirstKeyNotAdmin(
            "From the first key on every request needs one, so without the scope 'admin' you would lock yourself out."
        )


async def issue_token(keyring: DatabaseKeyring, caller: Caller, wanted: TokenIn, now: datetime) -> tuple[str, datetime]:
    """A token for a user or chat of the caller's tenant, and when it ends. Raises Forbidden."""
    if caller.user_id is not None or caller.chat_id is not None:
        raise Forbidden("A token cannot make tokens.")
    if not wanted.scopes <= caller.scopes:
        raise Forbidden(f"This key has no more than {', '.join(sorted(caller.scopes))}.")
    expires_at = now.replace(microsecond=0) + timedelta(seconds=wanted.ttl_s)
    claims = Claims(
        exp=int(expires_at.timestamp()),
        tenant=caller.tenant,
        scopes=sorted(wanted.scopes),
        key_id=caller.key_id,
        user_id=wanted.user_id,
        chat_id=wanted.chat_id,
    )
    return await keyring.sign(claims), expires_at
