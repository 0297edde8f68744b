"""Authentication: the caller of a request and the scopes that a route requires.

Routes depend on `Reader`, `Writer` or `Admin`, or on `Anyone` if they require no particular scope. The keyring in
`app.state.keyring` checks the key or token; `app/keys` implements it. Use `KeyedRoute` for routers whose operations
have a body that FastAPI parses.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from inspect import signature
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, get_args

from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, WrapValidator

from app.kit.errors import AppError
from app.kit.validation_errors import refuse_many_errors

Scope = Literal["read", "write", "admin"]
DEFAULT_TENANT = "default"
_CALLER: Final = "memobook.caller"

bearer = HTTPBearer(auto_error=False, description="A key (`mb_…`) or a short-lived token.")
"""Declares the scheme for the Authorize button at `/docs`. The keyring reads the header itself."""


class Unauthorized(AppError):
    """The key or token is missing or invalid."""

    status = 401
    code = "unauthorized"
    title = "Unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        """The expected authentication scheme."""
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(AppError):
    """The key or token is valid but does not permit the request."""

    status: ClassVar[int] = 403
    code = "forbidden"
    title = "Forbidden"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        tenant: The tenant whose data the caller can access.
        scopes: The granted scopes.
        key_id: The id of the key, or of the key that the token was made with; None if there was no key.
        user_id: The user whose chats the token is limited to; None for no such limit.
        chat_id: The chat that the token is limited to; None for no such limit.
        user_scope: Whether a token that is limited to a chat also sees and writes what is known of the chat's user and
            of the tenant. It is a property of the key that the token was made with.

    """

    tenant: str
    scopes: frozenset[str]
    key_id: str | None = None
    user_id: str | None = None
    chat_id: str | None = None
    user_scope: bool = False

    @property
    def only_chat(self) -> bool:
        """Whether the caller sees and writes only what its one chat knows, and nothing of the user or the tenant."""
        return self.chat_id is not None and not self.user_scope

    def require(self, scope: Scope) -> "Caller":
        """Return the caller itself. Raises Forbidden if it lacks `scope`."""
        if scope not in self.scopes:
            raise Forbidden(f"This request requires the scope {scope!r}.")
        return self


class Keyring(Protocol):
    """Identifies callers by their key or token."""

    async def identify(self, request: Request) -> Caller:
        """Return the caller of `request`. Raises Unauthorized, Forbidden, or TooManyRequests."""
        ...


async def anyone(request: Request) -> Caller:
    """Return the caller, with any scopes; checks the key only once per request. Raises what `identify` raises."""
    caller: Caller | None = request.scope.get(_CALLER)
    if caller is None:
        keyring: Keyring = request.app.state.keyring
        caller = request.scope[_CALLER] = await keyring.identify(request)
    return caller


async def reader(request: Request) -> Caller:
    """Return the caller. Raises Forbidden without the scope `read`."""
    return (await anyone(request)).require("read")


async def writer(request: Request) -> Caller:
    """Return the caller. Raises Forbidden without the scope `write`."""
    return (await anyone(request)).require("write")


async def admin(request: Request) -> Caller:
    """Return the caller. Raises Forbidden without the scope `admin`."""
    return (await anyone(request)).require("admin")


Anyone = Annotated[Caller, Depends(anyone)]
Reader = Annotated[Caller, Depends(reader)]
Writer = Annotated[Caller, Depends(writer)]
Admin = Annotated[Caller, Depends(admin)]

_CHECKS = (anyone, reader, writer, admin)


class KeyedRoute(APIRoute):
    """A route that checks the key before it reads the body, and does not list the errors if a body has too many.

    FastAPI reads and parses the body before it runs dependencies, so a client without a key could make the service
    parse 8 MiB. FastAPI also explains every error, and a body can have almost a million errors; `refuse_many_errors`
    sets the limit.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        _bound_errors(endpoint)
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler; if the route has a body, its checks of the key run before the handler."""
        handler = super().get_route_handler()
        checks = [check for check in _CHECKS if _depends_on(self.dependant, check)]
        if not checks or self.body_field is None:
            return handler

        async def checked(request: Request) -> Response:
            for check in checks:
                await check(request)
            return await handler(request)

        return checked


def _bound_errors(endpoint: Callable[..., Any]) -> None:
    """Change the endpoint's signature, from which FastAPI reads types: `refuse_many_errors` then validates the body."""
    found = signature(endpoint)
    parameters = [
        one.replace(annotation=Annotated[one.annotation, WrapValidator(refuse_many_errors)])
        if _is_body(one.annotation)
        else one
        for one in found.parameters.values()
    ]
    vars(endpoint)["__signature__"] = found.replace(parameters=parameters)


def _is_body(annotation: Any) -> bool:
    """Return whether a parameter with this annotation is a body: a model, or a model or None."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)


def _depends_on(dependant: Dependant, check: object) -> bool:
    return any(one.call is check or _depends_on(one, check) for one in dependant.dependencies)
