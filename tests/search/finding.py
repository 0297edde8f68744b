"""Search the chat `c` as a model does."""

from typing import Any

import httpx

from tests.facts.asking import begin, call
from tests.talk import Json, append

LANTERN = "The lantern of the north pier is made of green glass."
TOMAS = "Mira's brother Tomas is a ferryman."


def message(n: int, content: str, **given: Any) -> Json:
    role = "user" if n % 2 else "assistant"
    return {"id": f"m{n}", "role": role, "content": content} | given


async def begin_long(api: httpx.AsyncClient, content: str = LANTERN, **settings: Any) -> None:
    """A chat with recall whose first message has this text and has left the history, which has 2 messages."""
    history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
    await begin(api, **{"memos": {"enabled": False}, "history": history, "recall": {"mode": "auto"}, **settings})
    await append(api, [message(1, content), *(message(n, f"We sail on, day {n}.") for n in range(2, 7))])


async def find(api: httpx.AsyncClient, query: str, **more: Any) -> str:
    """What the tool answers."""
    return await call(api, "memory_search", {"query": query, **more})
