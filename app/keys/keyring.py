"""Who is calling, told from the tables of keys without asking them each time."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from fastapi import Request

from app.keys import queries
from app.keys.credentials import hash_of, key_id_in
from app.keys.errors import LoopbackOnly
from app.keys.expiring import ExpiringCache
from app.keys.loopback import sign_of_a_stranger
from app.keys.tokens import Claims, read_token, sign_token
from app.kit.auth import DEFAULT_TENANT, Caller, Unauthorized
from app.kit.clock import Clock
from app.kit.db import Database

KEY_TTL_S: Final = 5.0
"""How long a key that was revoked by another process still works here at most."""

TOKEN_TTL_S: Final = 60.0
OPEN_TTL_S: Final = 1.0
"""How long this process stays open at most after another one has made the first key."""

MAX_ENTRIES: Final = 10_000

_ENVIRONMENT = "environment"
_ANY = "any"
_NOBODY = Caller(DEFAULT_TENANT, frozenset({"read", "write", "admin"}))


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that has not been revoked."""

    caller: Caller
    secret_hash: bytes


class DatabaseKeyring:
    """Knows the keys of a database, and signs tokens.

    What it has read it holds for a few seconds, so a request costs no statement. This process's own changes
    it is told (`forget`), so those count at once.

    Args:
        database: Where the keys are.
        clock: Tells when a token has ended.
        jwt_secret: What signs tokens; without it a secret is made and kept in the database.
        trusted_origins: Web pages that may call while no key exists, though they are not from this machine.

    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        jwt_secret: str | None = None,
        trusted_origins: Iterable[str] = (),
    ) -> None:
        self._database = database
        self._clock = clock
        self._jwt_secret = jwt_secret.encode() if jwt_secret else None
        self._trusted_origins = frozenset(trusted_origins)
        # Apart, so that a flood of unknown ids pushes no known one out.
        self._known = ExpiringCache[KnownKey](ttl_s=KEY_TTL_S, max_entries=MAX_ENTRIES)
        self._unknown = ExpiringCache[bool](ttl_s=KEY_TTL_S, max_entries=MAX_ENTRIES)
        self._tokens = ExpiringCache[Claims](ttl_s=TOKEN_TTL_S, max_entries=MAX_ENTRIES)
        self._open = ExpiringCache[bool](ttl_s=OPEN_TTL_S, max_entries=1)
        self._closed = False
        self._generation = 0

    async def identify(self, request: Request) -> Caller:
        """The caller of `request`. Raises Unauthorized, or LoopbackOnly while no key exists."""
        header = request.headers.get("authorization")
        if header is None:
            await self._require_open(request)
            return _NOBODY
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("The Authorization header must be `Bearer <key>`.")
        text = text.strip()
        caller = await self._key_caller(text) or await self._token_caller(text, request)
        if caller is None:
            raise Unauthorized("This key or token is not known, or no longer valid.")
        return caller

    async def sign(self, claims: Claims) -> str:
        """A token that says `claims`."""
        return sign_token(claims, await self._secret())

    def forget(self) -> None:
        """Look at the tables anew: this process has made or revoked a key."""
        self._generation += 1
        self._known.clear()
        self._unknown.clear()
        self._open.clear()

    async def _key_caller(self, text: str) -> Caller | None:
        """The caller of a key. The environment's key has any form, so it is compared first."""
        secret_hash = hash_of(text)
        for name in (_ENVIRONMENT, key_id_in(text)):
            key = await self._find(name) if name else None
            if key and compare_digest(key.secret_hash, secret_hash):
                return key.caller
        return None

    async def _token_caller(self, text: str, request: Request) -> Caller | None:
        """The caller of a token; one that was made without a key ends with the first key."""
        if text.count(".") != 2:  # spares what is no token the reading of the secret
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
        """The key with this id, or the environment's."""
        now = self._clock()
        key = self._known.get(name, now)
        if key or self._unknown.get(name, now):
            return key
        generation = self._generation
        async with self._database.raw() as connection:
            if name == _ENVIRONMENT:
                row = await queries.find_environment_key(connection)
            else:
                row = await queries.find_key(connection, name)
        if row:
            caller = Caller(row["tenant"], frozenset(row["scopes"]), row["key_id"])
            key = KnownKey(caller, row["secret_hash"])
        if generation == self._generation:  # else what was read may be from before a change of our own
            if key:
                self._known.put(name, key, now)
            else:
                self._unknown.put(name, True, now)
        return key

    async def _require_open(self, request: Request) -> None:
        """Let whoever has no key pass while no key exists. Raises Unauthorized or LoopbackOnly."""
        if not await self._is_open():
            raise Unauthorized("Send `Authorization: Bearer <key>`.")
        peer = request.client.host if request.client else None
        sign = sign_of_a_stranger(request.scope["headers"], peer, self._trusted_origins)
        if sign:
            raise LoopbackOnly(
                f"While no key exists only this machine is served, and the request {sign}. "
                "Make a key: memobook keys create --tenant default --scopes read,write,admin"
            )

    async def _is_open(self) -> bool:
        """Whether no key was ever made. Once one was, that stays so."""
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
