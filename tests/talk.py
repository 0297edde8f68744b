"""A conversation to send, and the requests that most tests of the API make."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

import httpx

from app.context.segments import Format
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock

Json = dict[str, Any]

CHAT = "/v1/chats/c"
"""The path of the chat that most tests talk in."""

Act = Callable[[httpx.AsyncClient], Awaitable[object]]
"""Something that a client does."""

FORMATS: tuple[Format, ...] = get_args(Format)

CALL: Json = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
"""A tool call of an assistant's message."""


WAITING_FOR_NOTHING: Json = {"preset": "agent", "consolidation": {"enabled": False}, "recall": {"mode": "off"}}
"""Settings of a chat that makes no memories, so that its cuts wait for nothing."""


def said(n: int, **given: Any) -> Json:
    """The nth message of a conversation in which the user, who begins, and the character take turns."""
    role = "user" if n % 2 else "assistant"
    return {"id": f"m{n}", "role": role, "content": f"{role} says a sentence about lamp number {n}."} | given


def talk(first: int, last: int) -> list[Json]:
    """The messages `first…last` (inclusive) of that conversation."""
    return [said(n) for n in range(first, last + 1)]


def without_ids(messages: Sequence[Json]) -> list[Json]:
    """The messages as a frontend without ids has them."""
    return [{name: value for name, value in message.items() if name != "id"} for message in messages]


async def put(api: httpx.AsyncClient, chat_id: str = "c", *, status: int = 201, **chat: Any) -> Json:
    """Create or change a chat."""
    return ok(await api.put(f"/v1/chats/{chat_id}", json=chat), status)


async def append(
    api: httpx.AsyncClient, messages: Sequence[Json], chat_id: str = "c", *, status: int = 201, **body: Any
) -> Json:
    """Append messages."""
    return ok(await api.post(f"/v1/chats/{chat_id}/messages", json={"messages": messages, **body}), status)


async def reimport(api: httpx.AsyncClient, messages: Sequence[Json], status: int = 200) -> Json:
    """Make the chat `c` be these messages."""
    return ok(await api.put(f"{CHAT}/messages", json={"messages": messages}), status)


async def talk_with_memos(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, last: int) -> None:
    """The messages `1…last` of the conversation, with every memo made as soon as it is due."""
    for first in range(1, last + 1, 8):
        await append(api, talk(first, min(first + 7, last)))
        clock.step(2)
        await dispatcher.drain()


async def get(api: httpx.AsyncClient, path: str, status: int = 200, **query: Any) -> Json:
    """Return the JSON of a path below the chat `c`."""
    return ok(await api.get(f"/v1/chats/c{path}", params=query), status)


async def context(api: httpx.AsyncClient, status: int = 200, **options: Any) -> Json:
    """The context of the chat `c`."""
    return await get(api, "/context", status, **options)


async def read_cut(api: httpx.AsyncClient) -> tuple[int, str | None]:
    """Where the history of the chat `c` begins, and why."""
    history = (await context(api))["history"]
    return history["anchor_seq"], (history["last_cut"] or {}).get("reason")


async def edit(api: httpx.AsyncClient, message_id: str, status: int = 200, **given: Any) -> Json:
    """Change a message of the chat `c`."""
    return ok(await api.patch(f"/v1/chats/c/messages/{message_id}", json=given), status)


async def soft_delete(api: httpx.AsyncClient, *message_ids: str) -> None:
    """Delete messages of the chat `c`."""
    for message_id in message_ids:
        ok(await api.delete(f"/v1/chats/c/messages/{message_id}"), 204)


async def hide(api: httpx.AsyncClient, *ranges: tuple[int, int], hidden: bool = True) -> int:
    """Hide ranges of the chat `c` or show them; for how many messages that is new."""
    wanted = [{"first_seq": first, "last_seq": last, "hidden": hidden} for first, last in ranges]
    changed: int = ok(await api.post("/v1/chats/c/messages/visibility", json={"ranges": wanted}), 200)["changed"]
    return changed


async def cut_off(api: httpx.AsyncClient, from_seq: int) -> None:
    """Cut off the end of the chat `c`."""
    ok(await api.delete("/v1/chats/c/messages", params={"from_seq": from_seq}), 204)


async def add_swipe(api: httpx.AsyncClient, message_id: str, content: str) -> Json:
    """Add an alternative text to a message of the chat `c`, and select it."""
    return ok(await api.post(f"/v1/chats/c/messages/{message_id}/swipes", json={"content": content}), 201)


async def select_swipe(api: httpx.AsyncClient, message_id: str, index: int, status: int = 200) -> Json:
    """Select an alternative text of a message of the chat `c`."""
    return ok(await api.put(f"/v1/chats/c/messages/{message_id}/swipes/selected", json={"index": index}), status)


async def token_of(api: httpx.AsyncClient, **limits: str) -> str:
    """A token that may read and write, limited to a user or a chat."""
    body: Json = {"scopes": ["read", "write"], "ttl_s": 600, **limits}
    return str(ok(await api.post("/v1/tokens", json=body), 201)["token"])


async def walk(api: httpx.AsyncClient, path: str, **query: Any) -> list[list[Any]]:
    """All pages of a list, each as its items."""
    pages: list[list[Any]] = []
    for _ in range(100):
        page = ok(await api.get(path, params=query), 200)
        pages.append(page["items"])
        if page["next_cursor"] is None:
            return pages
        query["cursor"] = page["next_cursor"]
    raise AssertionError(f"{path} does not end")


def ok(answer: httpx.Response, status: int) -> Json:
    """The answer's JSON, which has the status that is expected."""
    assert answer.status_code == status, answer.text
    found: Json = answer.json() if answer.content else {}
    return found
