"""The floor: the same statements behind a bare ASGI route, with nothing else around them.

    python -m bench.floor PORT        (the database is MEMOBOOK_DATABASE_URL, as for the service)

`GET …/context` runs the context's one statement; `POST …/messages` runs BEGIN, the append's three statements and COMMIT
with parameters of the same kinds and sizes. Both return the rows. The SQL, the server's settings and the size of the
pool are imported from the service. The floor does not check keys and bodies, count tokens, hash, form batches or cut,
and has no budgets, formats or breakpoints.

A pooled connection is returned without asyncpg's reset, which would cost one round trip more than the service's pool.
"""

import argparse
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast
from uuid import UUID

import asyncpg
import orjson
import uvicorn
import uvloop

from app.chats.heads import LOCK_CURRENT, WRITE_HEAD
from app.context.queries import find_current
from app.kit.auth import DEFAULT_TENANT
from app.kit.db import Connection
from app.kit.ids import chat_key
from app.kit.settings import Settings, load_settings
from app.messages.queries import APPEND
from app.registry import LAYERS  # noqa: F401 - contexts are made of its layers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


class Floor:
    """The ASGI application."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._numbers = itertools.count(time.time_ns())

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request for a context or with messages to append."""
        _, _, _, chat_id, what = scope["path"].split("/")
        key = chat_key(DEFAULT_TENANT, chat_id)
        body = await _read(receive)
        status, rows = (200, await self._context(key)) if what == "context" else (201, await self._append(key, body))
        answer = orjson.dumps([dict(row) for row in rows], default=str)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _context(self, key: UUID) -> Sequence[Mapping[str, Any]]:
        async with self._pool.acquire() as connection:
            row = await find_current(cast("Connection", connection), DEFAULT_TENANT, key)
        return [row] if row else []

    async def _append(self, key: UUID, body: bytes) -> list[asyncpg.Record]:
        given = orjson.loads(body)["messages"]
        now = datetime.now(UTC)
        async with self._pool.acquire() as connection, connection.transaction():
            head = await connection.fetchrow(LOCK_CURRENT, key)
            if head is None:
                raise LookupError(f"there is no chat {key}")
            rows = await connection.fetch(APPEND, key, head["line_id"], head["head_seq"], *self._columns(given, now))
            await connection.execute(WRITE_HEAD, key, head["line_id"], *_head_columns(head, given, now))
        return rows

    def _columns(self, given: Sequence[dict[str, Any]], now: datetime) -> list[list[Any]]:
        """Return the arrays of the insert: the texts of the request, and other values as wide as the service's."""
        nothing = [None] * len(given)
        digests = [b"0123456789abcdef"] * len(given)
        return [
            [f"{next(self._numbers):036}" for _ in given],
            [message["role"] for message in given],
            [message["name"] for message in given],
            nothing,
            [message["content"] for message in given],
            [100] * len(given),
            [False] * len(given),
            *[nothing] * 4,
            [now] * len(given),
            digests,
            digests,
        ]


def _head_columns(head: asyncpg.Record, given: Sequence[object], now: datetime) -> list[Any]:
    """Return the columns of the update: a head that has grown, its revision, and everything else unchanged."""
    revision = head["revision"] + 1
    return [
        head["head_seq"] + len(given),
        head["anchor_seq"],
        head["history_messages"],
        head["message_count"] + len(given),
        head["turn_count"] + 1,
        head["token_count"] + 100 * len(given),
        head["memo_count"],
        head["memo_number"],
        head["awaits_reply"],
        head["cut_waits"],
        head["last_cut"],
        head["cursors"],
        now,
        *(revision, False, False, orjson.dumps({"messages": revision}).decode()),
    ]


async def _read(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    return body


async def serve(port: int, settings: Settings) -> None:
    """Serve on loopback until a signal comes."""
    pool = asyncpg.create_pool(
        settings.sqlalchemy_url.replace("+asyncpg", ""),
        min_size=settings.database_pool,
        max_size=settings.database_pool,
        reset=_leave_as_it_is,
        server_settings={"application_name": "floor", "jit": "off"},
    )
    async with pool:
        config = uvicorn.Config(
            Floor(pool),
            host="127.0.0.1",
            port=port,
            loop="uvloop",
            http="httptools",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
        )
        await uvicorn.Server(config).serve()


async def _leave_as_it_is(_connection: object) -> None:
    """Reset nothing, because no statement here leaves state on the connection."""


def main() -> None:
    """Run the floor."""
    parser = argparse.ArgumentParser(description="The floor of the service's speed")
    parser.add_argument("port", type=int)
    uvloop.run(serve(parser.parse_args().port, load_settings()))


if __name__ == "__main__":
    main()
