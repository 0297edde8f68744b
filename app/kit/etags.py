"""Entity tags: a response that has not changed since the client read it is a 304 without a body.

A tag is a hash of the inputs of a response, such as a revision and the request's options, not of the response itself.
Unchanged responses are therefore recognised without rendering them, and the tags are weak.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import RELEASE
from app.kit.wire import OrjsonResponse

REVALIDATE = "private, no-cache"
"""Cache-Control of a response with a tag: the client may store it and must revalidate it before each use."""

NO_STORE = "no-store"
NO_SNIFF = "nosniff"
_DEFAULTS = ((b"cache-control", NO_STORE.encode()), (b"x-content-type-options", NO_SNIFF.encode()))

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')

_ETAG_HEADER = {
    "ETag": {
        "description": "Changes whenever the response changes. Absent if the response depends on more than the chat, "
        "its user, its tenant and the request: for example on the time.",
        "schema": {"type": "string", "examples": ['W/"5c2f1d0b9a7e4f6d8c3b2a1908f7e6d5"']},
    }
}

TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": _ETAG_HEADER},
    304: {"description": "Not changed since the response with this `ETag`. Has no body.", "headers": _ETAG_HEADER},
}
"""The `responses` of a route whose responses have tags."""


def make_tag(*parts: Any) -> str:
    """Return the tag for all inputs of a response (JSON values, UUIDs and times).

    It includes the release, because another release may return a different response.
    """
    hashed = sha256(orjson.dumps([RELEASE, *parts], default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z))
    return f'W/"{hashed.hexdigest()[:32]}"'


def lists_tag(if_none_match: str | None, tag: str) -> bool:
    """Return whether the `If-None-Match` header lists the tag, by weak comparison."""
    return if_none_match is not None and _opaque(tag) in map(_opaque, _TAG.findall(if_none_match))


def is_known(if_none_match: str | None, tag: str) -> bool:
    """Return whether the client has the current response: the header lists its tag, or is `*`.

    `*` matches every response, so call this only once it is certain that the response is not an error.
    """
    return lists_tag(if_none_match, tag) or (if_none_match is not None and if_none_match.strip() == "*")


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/")


def not_modified(tag: str) -> Response:
    """Return the 304 response."""
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": REVALIDATE})


def tagged(content: Mapping[str, Any], tag: str | None) -> Response:
    """Return the response with its tag. If the tag is None, the response has none and must not be stored."""
    headers = None if tag is None else {"ETag": tag, "Cache-Control": REVALIDATE}
    return OrjsonResponse(content, headers=headers)


def read_known(request: Request) -> str | None:
    """Return the `If-None-Match` header, or None; repeated headers are joined to one list."""
    return ", ".join(request.headers.getlist("if-none-match")) or None


async def _known(
    request: Request,
    if_none_match: Annotated[  # noqa: ARG001 - declared for OpenAPI; the request may repeat the header
        str | None,
        Header(description="The `ETag`s of stored responses. If one of them is current, the answer is a 304."),
    ] = None,
) -> str | None:
    return read_known(request)


KnownTags = Annotated[str | None, Depends(_known)]


class NoStore:
    """Middleware that adds `Cache-Control: no-store` and `X-Content-Type-Options: nosniff` where they are not set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in _DEFAULTS if one[0] not in present)]
            await send(message)

        await self._app(scope, receive, send_with_header)
