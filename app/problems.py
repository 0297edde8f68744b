"""What is answered when something goes wrong: our errors, requests of the wrong shape, and the rest."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.blame import place_of
from app.kit.errors import MAX_ERRORS, AppError
from app.kit.etags import NO_STORE

log = logging.getLogger(__name__)

_TITLES = {400: "Bad request", 404: "Not found", 405: "Method not allowed", 413: "Too large"}


class ErrorPlace(BaseModel):
    """A place of the request that is to blame."""

    loc: list[str | int] = Field(description="Where: `body`, `query` or `path`, then the field.")
    msg: str = Field(description="What is wrong there.")
    id: str | None = Field(None, description="Only where an id is taken: that id.")


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="`about:blank`; the code says which problem it is.")
    title: str = Field(description="The kind of problem, for a person.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="One sentence about this occurrence.")
    code: str = Field(description="The kind of problem, for a program.")
    instance: str = Field(description="The path that was asked.")
    errors: list[ErrorPlace] = Field(default=[], description="The places to blame; the first 100 if there are more.")


class BodyLimit:
    """Middleware: whoever reads a body of more than `max_bytes` gets a 413, early where its length is announced.

    FastAPI's own limit replaces the problem document with a line of plain text.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            announced = Headers(scope=scope).get("content-length", "")
            if announced.isdecimal() and int(announced) > self._max_bytes:
                raise self._too_large()
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise self._too_large()
            return message

        await self._app(scope, counted, send)

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"A body may have at most {self._max_bytes} bytes.")


def install_handlers(app: FastAPI) -> None:
    """Answer every error as `application/problem+json`."""
    app.add_exception_handler(AppError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _hung_up)
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
    """A problem document as a response."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "instance": instance,
        **(extra or {}),
    }
    if errors:
        document["errors"] = errors[:MAX_ERRORS]
    body = orjson.dumps(document, default=str)
    # Outside of all middleware an unexpected error is answered, so this says by itself that it may not be stored.
    headers = {"Cache-Control": NO_STORE, **(headers or {})}
    return Response(body, status, headers=headers, media_type="application/problem+json")


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)
    log.info("%s %s: %s", request.method, request.url.path, error.code)
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
    # Only place and message: the input may be anything, also what JSON cannot carry back.
    errors = [
        {"loc": place_of(found), "msg": found["msg"].removeprefix("Value error, ")}
        for found in error.errors()[:MAX_ERRORS]
    ]
    first = errors[0] if errors else {"loc": ["body"], "msg": "is not valid"}
    detail = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return problem(
        422,
        code="invalid",
        title="Invalid request",
        detail=_sound(detail),
        instance=request.url.path,
        errors=errors,
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # the body could not be parsed: the same as any other wrong shape
        return problem(
            422,
            code="invalid",
            title="Invalid request",
            detail="body: is not JSON",
            instance=request.url.path,
            errors=[{"loc": ["body"], "msg": "is not JSON"}],
        )
    title = _TITLES.get(error.status_code, "Refused")
    return problem(
        error.status_code,
        code=title.lower().replace(" ", "_"),
        title=title,
        detail=str(error.detail),
        instance=request.url.path,
        headers=error.headers,
    )


async def _hung_up(request: Request, _error: Exception) -> Response:
    """Nobody is left to read the answer."""
    log.info("%s %s: the client hung up", request.method, request.url.path)
    return Response(status_code=400)


async def _everything_else(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(
        500,
        code="internal",
        title="Internal error",
        detail="Something unexpected happened; it has been logged.",
        instance=request.url.path,
    )


def _sound(text: str) -> str:
    """Without lone surrogates, which UTF-8 cannot carry."""
    return text.encode(errors="replace").decode()
