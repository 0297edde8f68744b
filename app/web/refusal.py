"""The answer of a connection that refuses a request before it reaches the application."""

import http
from collections.abc import Iterable

import orjson

from app.kit.errors import AppError, problem_document
from app.kit.etags import NO_SNIFF, NO_STORE


def write_refusal(error: AppError, path: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a complete HTTP response with `Connection: close`.

    Args:
        error: The reason.
        path: The path of the request, or an empty string if it is not known.
        headers: Headers of every answer.

    """
    body = orjson.dumps(
        problem_document(status=error.status, code=error.code, title=error.title, detail=error.detail, instance=path)
    )
    own = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        "cache-control": NO_STORE,
        "x-content-type-options": NO_SNIFF,
        "connection": "close",
        **{name.lower(): value for name, value in error.headers.items()},
    }
    lines = [f"HTTP/1.1 {error.status} {http.HTTPStatus(error.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in headers]
    lines += [f"{name}: {value}".encode() for name, value in own.items()]
    return b"\r\n".join([*lines, b"", body])
