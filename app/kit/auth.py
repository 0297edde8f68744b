"""Who is calling: a tenant, its scopes, and for a browser's token the user or chat it is limited to.

Rooms above depend on `Reader`, `Writer` or `Admin`; how a key or token is checked is told by the keyring
that the application carries (`app/keys`).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from app.kit.errors import AppError

Scope = Literal["read", "write", "admin"]
DEFAULT_TENANT = "default"

bearer = HTTPBearer(auto_error=False, description="A key (`mb_…`) or a short-lived token.")
"""Only declares the scheme for the explorer's Authorize button; the keyring reads the header itself."""


class Unauthorized(AppError):
    """No key, or none that is known."""

    status = 401
    code = "unauthorized"
    title = "Unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        """Name the scheme that is expected."""
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(AppError):
    """The key is known, but its scopes do not reach so far."""

    status: ClassVar[int] = 403
    code = "forbidden"
    title = "Forbidden"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request.

    Attributes:
        tenant: Whose data it reaches; nothing else exists for it.
        scopes: What it may do.
        key_id: The key it came with, or None while the service has no key.
        user_id: A token's limit to one user's chats.
        chat_id: A token's limit to one chat.

    """

    tenant: str
    scopes: frozenset[str]
    key_id: str | None = None
    user_id: str | None = None
    chat_id: str | None = None

    def require(self, scope: Scope) -> "Caller":
        """Return the caller; raises Forbidden without `scope`."""
        if scope not in self.scopes:
            raise Forbidden(f"This needs a key with the scope {scope!r}.")
        return self


class Keyring(Protocol):
    """Tells who is calling."""

    async def identify(self, request: Request) -> Caller:
        """The caller of `request`. Raises Unauthorized."""
        ...


async def reader(request: Request) -> Caller:
    """The caller, who may read."""
    keyring: Keyring = request.app.state.keyring
    return (await keyring.identify(request)).require("read")


async def writer(request: Request) -> Caller:
    """The caller, who may write."""
    keyring: Keyring = request.app.state.keyring
    return (await keyring.identify(request)).require("write")


async def admin(request: Request) -> Caller:
    """The caller, who may administer."""
    keyring: Keyring = request.app.state.keyring
    return (await keyring.identify(request)).require("admin")


Reader = Annotated[Caller, Depends(reader)]
Writer = Annotated[Caller, Depends(writer)]
Admin = Annotated[Caller, Depends(admin)]
