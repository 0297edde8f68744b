"""Routes that bypass FastAPI's request parsing, for performance.

FastAPI's handling of dependencies, parameters and bodies takes longer than the rest of a request that appends messages
or reads a context. A fast route is declared like any other, for OpenAPI and for readers of the code, but its requests
go to a function that parses the same inputs itself and raises the same errors.
"""

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, TypeGuard, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from app.kit.validation_errors import MAX_EXPLAINED_ERRORS, TOO_MANY_ERRORS, word_pattern

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Model = TypeVar("Model", bound=BaseModel)

_JSON = re.compile(r"application/(json|[\w.-]+\+json)\s*(;.*)?", re.IGNORECASE)


class FastRoute(APIRoute):
    """A route whose requests are handled by `handler` instead of by its endpoint."""

    handler: ClassVar[Handler]

    def get_route_handler(self) -> Handler:
        """Return `handler`, which also serves the request if it reaches FastAPI's routing."""
        return type(self).handler


def handled_by(handler: Handler) -> type[FastRoute]:
    """Return a route class whose requests are handled by `handler`."""
    return type("FastRoute", (FastRoute,), {"handler": staticmethod(handler)})


class FastPathMiddleware:
    """Middleware that serves fast routes before Starlette's routing.

    Routing would take a sixth of the time that a request for a context takes. Errors go to the application's exception
    handlers, as with other routes.
    """

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._fast = [
            (route, route.methods or set(), route.path_regex, route.get_route_handler())
            for route in routes
            if _is_fast(route)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for a fast route; pass on all others."""
        for route, methods, path, handler in self._fast if scope["type"] == "http" else ():
            if scope["method"] in methods and (found := path.match(scope["path"])):
                scope["path_params"], scope["route"] = found.groupdict(), route
                request = Request(scope, receive)
                response = await _answer(request, handler)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_fast(route: BaseRoute) -> TypeGuard[FastRoute]:
    return isinstance(route, FastRoute)


async def _answer(request: Request, handler: Handler) -> Response:
    try:
        return await handler(request)
    except Exception as error:
        handlers = request.app.exception_handlers
        kinds = (kind for kind in type(error).__mro__ if kind in handlers and kind is not Exception)
        kind = next(kinds, None)
        if kind is None:
            raise
        response: Response = await handlers[kind](request, error)
        return response


async def read_body(request: Request, model: type[Model]) -> Model:
    """Return the body, validated as `model`. Raises RequestValidationError with the location of each error."""
    if not _JSON.fullmatch(request.headers.get("content-type", "")):
        raise _error_at(("body",), "must be JSON, with the header Content-Type: application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise locate_below(("body",), error) from None


def read_query(request: Request, model: type[Model]) -> Model:
    """Return the query, validated as `model`. Raises RequestValidationError with the location of each error."""
    try:
        query: bytes = request.scope["query_string"]
        return model.model_validate(dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)))
    except ValidationError as error:
        raise locate_below(("query",), error) from None


def read_path(request: Request, name: str, pattern: str) -> str:
    """Return the path parameter `name`. Raises RequestValidationError if it does not match `pattern`."""
    value = str(request.path_params[name])
    if not re.fullmatch(pattern, value):
        raise _error_at(("path", name), word_pattern(pattern))
    return value


def locate_below(location: tuple[str, ...], error: ValidationError) -> RequestValidationError:
    """Return `error` as a RequestValidationError with its locations below `location`, such as `("body",)`."""
    if error.error_count() > MAX_EXPLAINED_ERRORS:
        return _error_at(location, TOO_MANY_ERRORS)
    return RequestValidationError([{**found, "loc": (*location, *found["loc"])} for found in error.errors()])


def _error_at(loc: tuple[str, ...], message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "value_error", "loc": loc, "msg": message, "input": None}])
