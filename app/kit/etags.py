"""Entity tags: an answer that has not changed since a client read it is a 304 without a body.

A tag is a hash of what decides on the answer, such as a revision and the options of the request, never of the answer
itself: to know that nothing has changed, nothing needs to be rendered. So it is a weak tag.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.wire import JsonAnswer

RELEASE = "0.1.0"
"""The version of the service. It is a part of each tag, as another version may answer otherwise."""

REVALIDATE = "private, no-cache"
"""Cache-Control of an answer with a tag: a client may keep it, and asks each time whether it still holds."""

NO_STORE = "no-store"

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')

_ETAG_HEADER = {
    "ETag": {
        "description": "Changes with the answer. Missing where the answer also depends on something else than the "
        "chat and the request, such as the time.",
        "schema": {"type": "string", "examples": ['W/"5c2f1d0b9a7e4f6d8c3b2a1908f7e6d5"']},
    }
}

TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": _ETAG_HEADER},
    304: {"description": "Not changed since the answer with this `ETag`; without a body.", "headers": _ETAG_HEADER},
}
"""The `responses` of a route whose answers have tags."""


def make_tag(*parts: Any) -> str:
    """Return the tag of everything that decides on an answer: JSON values, UUIDs and times. The release is a part."""
    hashed = sha256(orjson.dumps([RELEASE, *parts], default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z))
    return f'W/"{hashed.hexdigest()[:32]}"'


def names(if_none_match: str | None, tag: str) -> bool:
    """Whether a header `If-None-Match` lists the tag, by weak comparison."""
    return if_none_match is not None and _opaque(tag) in map(_opaque, _TAG.findall(if_none_match))


def is_known(if_none_match: str | None, tag: str) -> bool:
    """Whether the client has the answer: the header lists its tag, or is `*`.

    `*` stands for any answer that there is. So ask this only once it is certain that the answer is no error.
    """
    return names(if_none_match, tag) or (if_none_match is not None and if_none_match.strip() == "*")


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/")


def not_modified(tag: str) -> Response:
    """Return the 304."""
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": REVALIDATE})


def tagged(content: Mapping[str, Any], tag: str | None) -> Response:
    """Return the answer with its tag; with None it has none, and nothing may keep it."""
    headers = None if tag is None else {"ETag": tag, "Cache-Control": REVALIDATE}
    return JsonAnswer(content, headers=headers)


def read_known(request: Request) -> str | None:
    """Return the header `If-None-Match`; several are one list."""
    return ", ".join(request.headers.getlist("if-none-match")) or None


async def _known(
    request: Request,
    if_none_match: Annotated[  # noqa: ARG001 - declared for OpenAPI: a list may come as several headers
        str | None,
        Header(description="Tags of answers that the client has: a 304 without a body if one of them still holds."),
    ] = None,
) -> str | None:
    return read_known(request)


KnownTags = Annotated[str | None, Depends(_known)]


class NoStore:
    """Middleware: an answer that does not say how it may be cached must not be stored."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                if not any(name == b"cache-control" for name, _ in headers):
                    message["headers"] = [*headers, (b"cache-control", NO_STORE.encode())]
            await send(message)

        await self._app(scope, receive, send_with_header)
