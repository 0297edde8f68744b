"""Gives every request an id, which is in the answer and in each log line of the request."""

import re
from typing import Final
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.log.fields import set_fields

_HEADER: Final = "x-request-id"
_VALID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Middleware that takes the id of the header `X-Request-Id`, or makes one, and returns it in the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request; pass on anything else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(_HEADER, "")
        request_id = given if _VALID.fullmatch(given) else uuid4().hex
        set_fields(request=request_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (_HEADER.encode(), request_id.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)
