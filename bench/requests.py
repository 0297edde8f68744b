"""The requests that the load sends, as complete HTTP messages."""

import random
from collections.abc import Sequence
from typing import Literal, get_args

import orjson

from bench.chats import CHATS, MESSAGE_TOKENS, chat_id, pair_of, pattern_of

What = Literal["context", "append"]
WHATS: tuple[What, ...] = get_args(What)

CONTEXT_TOKENS = 4_000


def write_requests(what: What, size: int, key: str, *, floor: bool = False) -> list[str]:
    """Return a request for every chat of a size; appends of the service and of the floor go to separate chats."""
    if what == "context":
        return [write_context(size, number, key) for number in range(2 * CHATS)]
    numbers = range(CHATS, 2 * CHATS) if floor else range(CHATS)
    return [write_append(size, number, key) for number in numbers]


def write_context(size: int, number: int, key: str) -> str:
    """Return a request for a context."""
    return http("GET", f"{chat_id(size, number)}/context?format=openai&max_tokens={CONTEXT_TOKENS}", key)


def write_append(size: int, number: int, key: str) -> str:
    """Return a request that appends a user's message and the reply to it."""
    messages = pair_of(random.Random(f"{size} {number}"), MESSAGE_TOKENS[pattern_of(size)])
    return http("POST", f"{chat_id(size, number)}/messages", key, orjson.dumps({"messages": messages}).decode())


def http(method: str, path: str, key: str, body: str = "") -> str:
    """Return a complete request for a path below `/v1/chats/`."""
    lines: Sequence[str] = (
        f"{method} /v1/chats/{path} HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: Bearer {key}",
        *(("content-type: application/json", f"content-length: {len(body.encode())}") if body else ()),
    )
    return "\r\n".join((*lines, "", body))
