"""Error responses: for AppErrors, invalid requests and unexpected errors."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.errors import MAX_ERRORS, AppError, problem_document
from app.kit.etags import NO_SNIFF, NO_STORE
from app.kit.log.fields import current_fields
from app.kit.validation_errors import error_location, word_error

log = logging.getLogger(__name__)

_TITLES = {400: "Bad request", 404: "Not found", 405: "Method not allowed", 413: "Too large"}


class ErrorPlace(BaseModel):
    """An invalid part of the request."""

    loc: list[str | int] = Field(description="`body`, `query` or `path`, then the field.")
    msg: str = Field(description="What is wrong with it.")
    id: str | None = Field(None, description="Only if an id is already in use: that id.")


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="Always `about:blank`; `code` identifies the kind of error.")
    title: str = Field(description="The kind of error, for people.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong, for people. It also counts the errors that `errors` leaves out.")
    code: str = Field(description="The kind of error, for programs.")
    instance: str = Field(description="The path of the request.")
    errors: list[ErrorPlace] = Field(default=[], description="The invalid parts of the request, at most 20.")


class BodyLimit:
    """Middleware that stops reading after more than `max_bytes` of a body, and answers with a 413.

    `max_bytes_of` maps paths to limits of their own. If `Content-Length` exceeds the limit, nothing of the body is
    read. FastAPI's own limit would answer with plain text and not with a problem document.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, max_bytes_of: Mapping[str, int]) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_bytes_of = max_bytes_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request; pass on anything else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = 0
        max_bytes = self._max_bytes_of.get(scope["path"], self._max_bytes)

        async def counted() -> Message:
            nonlocal size
            announced = Headers(scope=scope).get("content-length", "")
            if announced.isdecimal() and int(announced) > max_bytes:
                raise _too_large(max_bytes)
            message = await receive()
            size += len(message.get("body", b""))
            if size > max_bytes:
                raise _too_large(max_bytes)
            return message

        await self._app(scope, counted, send)


def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"The body must have at most {max_bytes} bytes.")


def install_handlers(app: FastAPI) -> None:
    """Answer every error as `application/problem+json`."""
    app.add_exception_handler(AppError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _client_disconnected)
    app.add_exception_handler(Exception, _everything_else)


def problem(
    status: int,
    *,
    code: str,
    title: str,
    detail: str,
    instance: str,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    """Return a response with a problem document."""
    if unlisted := len(errors[MAX_ERRORS:]):
        others = "error is" if unlisted == 1 else "errors are"
        detail = f"{detail.rstrip('.')}; {unlisted} more {others} not listed"
    document = problem_document(status=status, code=code, title=title, detail=detail, instance=instance, extra=extra)
    if errors:
        document["errors"] = errors[:MAX_ERRORS]
    body = orjson.dumps(document, default=str)
    # Responses to unexpected errors bypass the middleware NoStore, so its headers are set here.
    headers = {"Cache-Control": NO_STORE, "X-Content-Type-Options": NO_SNIFF, **(headers or {})}
    return Response(body, status, headers=headers, media_type="application/problem+json")


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)
    log.info("%s: %s", _name(request), error.code)
    return problem(
        error.status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        instance=request.url.path,
        errors=error.errors,
        headers=error.headers,
        extra=error.extra,
    )


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Only location and message, because the input can be a value that JSON cannot represent.
    errors = [{"loc": error_location(found), "msg": word_error(found)} for found in error.errors()]
    first = errors[0] if errors else {"loc": ["body"], "msg": "is not valid"}
    detail = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return problem(
        422,
        code="invalid",
        title="Invalid request",
        detail=_without_surrogates(detail),
        instance=request.url.path,
        errors=errors,
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # FastAPI could not parse the body; answer as for any other invalid request
        return problem(
            422,
            code="invalid",
            title="Invalid request",
            detail="body: is not valid JSON",
            instance=request.url.path,
            errors=[{"loc": ["body"], "msg": "is not valid JSON"}],
        )
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := _list_methods(request)):
        headers["Allow"] = ", ".join(methods)
    title = _TITLES.get(error.status_code, "Refused")
    return problem(
        error.status_code,
        code=title.lower().replace(" ", "_"),
        title=title,
        detail=str(error.detail),
        instance=request.url.path,
        headers=headers,
    )


def _list_methods(request: Request) -> list[str]:
    """Return the methods of all routes with the path of `request`; the framework names only those of the first."""
    routers: Sequence[APIRouter] = getattr(request.app.state, "routers", ())
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    matching = [route for route in routes if route.path_regex.match(request.scope["path"])]
    return sorted({method for route in matching for method in route.methods or ()})


async def _client_disconnected(request: Request, _error: Exception) -> Response:
    """Return an empty response, which is not sent because the client has disconnected."""
    log.info("%s: the client disconnected", _name(request))
    return Response(status_code=400)


async def _everything_else(request: Request, error: Exception) -> Response:
    log.error("%s failed", _name(request), exc_info=error)
    request_id = current_fields().get("request")
    # Starlette raises the error again after the response, and then uvicorn closes the connection. A client that does
    # not know this loses the next request that it sends on it.
    headers = {"Connection": "close", **({"X-Request-Id": request_id} if request_id else {})}
    return problem(
        500,
        code="internal",
        title="Internal error",
        detail="An unexpected error occurred. It has been logged.",
        instance=request.url.path,
        headers=headers,
    )


def _name(request: Request) -> str:
    """Return the method and the path of the route, without the ids of chats and users."""
    route = request.scope.get("route")
    return f"{request.method} {route.path if isinstance(route, APIRoute) else 'an unknown path'}"


def _without_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, because UTF-8 cannot encode them."""
    return text.encode(errors="replace").decode()
