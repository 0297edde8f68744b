"""Identifies callers by the keys in the database, with a short-lived cache."""

import asyncio
import secrets
from collections.abc import Iterable
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Final

from fastapi import Request

from app.keys import queries
from app.keys.credentials import hash_of, key_id_in
from app.keys.errors import LoopbackOnly
from app.keys.expiring import ExpiringCache
from app.keys.loopback import sign_of_a_stranger
from app.keys.rate_limiter import RateLimiter
from app.keys.tokens import Claims, read_token, sign_token
from app.kit.auth import DEFAULT_TENANT, Caller, Unauthorized
from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.deps import set_share

KEY_TTL_S: Final = 5.0
"""The maximum time that this process accepts a key after another process has revoked it."""

TOKEN_TTL_S: Final = 60.0
OPEN_TTL_S: Final = 1.0
"""The maximum time that this process accepts requests without a key after another process has created the first key."""

MAX_ENTRIES: Final = 10_000

SEEN_TTL_S: Final = 3_600.0
"""For this many seconds after a key was found, further lookups of it do not wait for lookups of unknown keys."""

STRANGERS: Final = "?"
"""In the queue for database connections (`kit/gate`), lookups of unknown keys count as requests of one tenant with this
name."""

_ENVIRONMENT = "environment"
_ANY = "any"
_COUNTED = "memobook.counted"
_KEYLESS_CALLER = Caller(DEFAULT_TENANT, frozenset({"read", "write", "admin"}))


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that has not been revoked."""

    caller: Caller
    secret_hash: bytes


class DatabaseKeyring:
    """Verifies keys and tokens against the database, and signs tokens.

    Rows are cached for a few seconds, so most requests need no statement. `forget` clears the cache, so that a change
    of keys by this process takes effect immediately.

    Args:
        database: The database with the keys.
        clock: Used to check whether tokens and cached rows have expired.
        jwt_secret: The secret that signs tokens; None to use one that is generated and stored in the database.
        trusted_origins: Origins of web pages whose requests are served while no key exists, besides local ones.
        rate_limiter: Limits the requests of each key and token; None for no limits.

    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        jwt_secret: str | None = None,
        trusted_origins: Iterable[str] = (),
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._jwt_secret = jwt_secret.encode() if jwt_secret else None
        self._trusted_origins = frozenset(trusted_origins)
        self._rate_limiter = rate_limiter
        # Separate caches, so that many unknown ids cannot evict known keys.
        self._known = ExpiringCache[KnownKey](ttl_s=KEY_TTL_S, max_entries=MAX_ENTRIES)
        self._unknown = ExpiringCache[bool](ttl_s=KEY_TTL_S, max_entries=MAX_ENTRIES)
        self._lookups: dict[tuple[str, int], asyncio.Task[KnownKey | None]] = {}
        self._seen = ExpiringCache[bool](ttl_s=SEEN_TTL_S, max_entries=MAX_ENTRIES)
        self._tokens = ExpiringCache[Claims](ttl_s=TOKEN_TTL_S, max_entries=MAX_ENTRIES)
        self._open = ExpiringCache[bool](ttl_s=OPEN_TTL_S, max_entries=1)
        self._closed = False
        self._generation = 0

    async def identify(self, request: Request) -> Caller:
        """Return the caller of `request`, and count the request for the rate limit.

        Raises Unauthorized, RateLimited, or LoopbackOnly while no key exists.
        """
        header = request.headers.get("authorization")
        if header is None:
            await self._require_open(request)
            set_share(request, DEFAULT_TENANT)
            return _KEYLESS_CALLER
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("The Authorization header must be `Bearer <key>`.")
        text = text.strip()
        caller = await self._key_caller(text) or await self._token_caller(text, request)
        if caller is None:
            raise Unauthorized("The key or token is unknown or no longer valid.")
        if self._rate_limiter is not None and _COUNTED not in request.scope:
            request.scope[_COUNTED] = True  # counts once, even if the request is identified again
            await self._rate_limiter.check(caller)
        set_share(request, caller.tenant)
        return caller

    async def sign(self, claims: Claims) -> str:
        """Return a signed token with `claims`."""
        return sign_token(claims, await self._secret())

    def forget(self) -> None:
        """Clear the cache; call it after this process has created or revoked a key."""
        self._generation += 1
        self._known.clear()
        self._unknown.clear()
        self._open.clear()

    async def _key_caller(self, text: str) -> Caller | None:
        """Return the caller of a key, or None.

        The key in MEMOBOOK_ADMIN_KEY may have any form, so it is compared first.
        """
        secret_hash = hash_of(text)
        for name in (_ENVIRONMENT, key_id_in(text)):
            key = await self._find(name) if name else None
            if key and compare_digest(key.secret_hash, secret_hash):
                return key.caller
        return None

    async def _token_caller(self, text: str, request: Request) -> Caller | None:
        """Return the caller of a token, or None. A token made without a key is invalid once a key is created.

        Raises Unauthorized if the token has expired, and what `_require_open` raises.
        """
        if text.count(".") != 2:  # not a token; avoids reading the secret
            return None
        now = self._clock()
        claims = self._tokens.get(text, now)
        if claims is None:
            claims = read_token(text, await self._secret())
            if claims is None:
                return None
            self._tokens.put(text, claims, now)
        if claims.exp <= now.timestamp():
            raise Unauthorized("This token has expired.")
        if claims.key_id is None:
            await self._require_open(request)
            return claims.caller()
        return claims.caller() if await self._find(claims.key_id) else None

    async def _find(self, name: str) -> KnownKey | None:
        """Return the key with the id `name`, or the environment's key for `_ENVIRONMENT`; None if it is not valid.

        Requests that come during a lookup share its result.
        """
        now = self._clock()
        key = self._known.get(name, now)
        if key or self._unknown.get(name, now):
            return key
        of = name, self._generation  # a lookup that began before this process revoked a key may still find the key
        lookup = self._lookups.get(of)
        if lookup is None:
            # The context is empty, so it has no client to watch (`kit/gate/client_watch.py`): the lookup goes on if the
            # client of this request disconnects, because other requests may wait for the lookup.
            lookup = self._lookups[of] = asyncio.create_task(self._look_up(name, now), context=Context())
            lookup.add_done_callback(lambda _: self._lookups.pop(of, None))
        return await asyncio.shield(lookup)

    async def _look_up(self, name: str, now: datetime) -> KnownKey | None:
        key: KnownKey | None = None
        generation = self._generation
        # Keys that were valid within the last hour do not wait for lookups of guessed keys.
        share = None if name == _ENVIRONMENT or self._seen.get(name, now) else STRANGERS
        async with self._database.raw(share) as connection:
            if name == _ENVIRONMENT:
                row = await queries.find_environment_key(connection)
            else:
                row = await queries.find_key(connection, name)
        if row:
            caller = Caller(row["tenant"], frozenset(row["scopes"]), row["key_id"], user_scope=row["user_scope"])
            key = KnownKey(caller, row["secret_hash"])
        if generation == self._generation:  # otherwise the row may predate a change by this process
            if key:
                self._known.put(name, key, now)
                self._seen.put(name, True, now)
            else:
                self._unknown.put(name, True, now)
        return key

    async def _require_open(self, request: Request) -> None:
        """Raise Unauthorized if any key was ever created, or LoopbackOnly if `sign_of_a_stranger` returns a reason."""
        if not await self._is_open():
            raise Unauthorized("Send `Authorization: Bearer <key>`.")
        peer = request.client.host if request.client else None
        version = request.scope.get("http_version", "1.1")
        reason = sign_of_a_stranger(request.scope["headers"], peer, self._trusted_origins, version)
        if reason:
            raise LoopbackOnly(
                f"While no key exists, only requests from this machine are served, and the request {reason}. "
                "Create a key: memobook keys create --tenant default --scopes read,write,admin"
            )

    async def _is_open(self) -> bool:
        """Return whether no key was ever created. Once a key has existed, the service stays closed."""
        now = self._clock()
        if self._closed or self._open.get(_ANY, now):
            return not self._closed
        generation = self._generation
        async with self._database.raw() as connection:
            exists = await queries.key_exists(connection)
        if exists:
            self._closed = True
        elif generation == self._generation:
            self._open.put(_ANY, True, now)
        return not self._closed

    async def _secret(self) -> bytes:
        if self._jwt_secret is None:
            async with self._database.raw() as connection:
                self._jwt_secret = await queries.get_secret(connection, "jwt", otherwise=secrets.token_bytes(32))
        return self._jwt_secret
