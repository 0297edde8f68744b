"""Notices that the client of a request disconnects while the request waits.

An ASGI server does not cancel the handler of a request whose client has disconnected: the handler only learns of it by
receiving further ASGI messages. The watch receives these messages instead of the handler, and keeps them until the
handler asks for them.
"""

import asyncio
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_KEPT_BYTES = 64 * 1024
"""Once the watch has received this much of an unread body, it stops receiving, and no longer notices that the client
disconnects."""

_client: ContextVar["Client | None"] = ContextVar("client", default=None)


class Client:
    """The client of a request. Call it to receive the next message, as in ASGI."""

    __slots__ = ("_kept", "_receive")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: deque[Message] = deque()

    async def __call__(self) -> Message:
        """Return the next message."""
        return self._kept.popleft() if self._kept else await self._receive()

    async def watch(self) -> None:
        """Return when the client has disconnected."""
        left = MAX_KEPT_BYTES
        with suppress(HTTPException):  # the body is too large; the request fails with the same error when it reads on
            while left > 0:
                message = await self._receive()
                self._kept.append(message)
                if message["type"] == "http.disconnect":
                    return
                left -= len(message.get("body", b""))
        await asyncio.Event().wait()


class ClientWatch:
    """Middleware that makes the client of a request known to `until_client_is_gone`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request; pass on anything else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = Client(receive)
        token = _client.set(client)
        try:
            await self._app(scope, client, send)
        finally:
            _client.reset(token)


async def until_client_is_gone(awaited: "asyncio.Future[Any]") -> bool:
    """Wait for `awaited` and return True; return False if the client of this request disconnects first."""
    client = _client.get()
    if client is None:
        await asyncio.wait([awaited])
        return True
    watch = asyncio.create_task(client.watch())
    try:
        await asyncio.wait([awaited, watch], return_when=asyncio.FIRST_COMPLETED)
        return awaited.done()
    finally:
        watch.cancel()
        await asyncio.wait([watch])
