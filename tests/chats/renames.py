"""What the tests of renamed characters do with the chat `c`, and what they see of it."""

from typing import Any

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.diary.diaries import KAI, MIRA
from tests.layers.samples import list_settings
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, get, ok, put, said

LAYERS = list_settings() | {
    "memos": {"every_messages": 4},
    "history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 9},
    "diary": {"enabled": True, "auto_write_turns": 2, "lines": 4},
}


async def rename(api: httpx.AsyncClient, former: str, name: str, status: int = 200) -> Json:
    """Rename a character of the chat `c`."""
    return ok(await api.post(f"/v1/chats/c/characters/{former}/rename", json={"name": name}), status)


def group(first: int, last: int, *, name: str = "Kai") -> list[Json]:
    """The messages of a chat in which every reply is one of the character's, in words that the answers repeat."""
    return [
        said(n, content=f"w{n}w") if n % 2 else said(n, name=name, content=f"w{n}w") for n in range(first, last + 1)
    ]


async def names(api: httpx.AsyncClient) -> list[str | None]:
    """The names of the messages."""
    return [item["name"] for item in (await get(api, "/messages", limit=500))["items"]]


async def made(api: httpx.AsyncClient) -> list[Any]:
    """Every memory that was made from messages, with its state."""
    paths = ("memos", "summary/versions", "scenes", "recap/versions", "diary")
    return [
        {name: one[name] for name in one.keys() - {"character"}}
        for path in paths
        for one in (await get(api, f"/{path}", limit=500))["items"]
    ]


async def talk_with_all_layers(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, **chat: Any
) -> None:
    """A chat of 24 messages with every layer on, in which all work is done."""
    model.otherwise = echo
    await put(api, characters=[KAI, MIRA], settings=LAYERS, **chat)
    for first in range(1, 24, 4):
        await append(api, group(first, first + 3))
        await settle_rounds(dispatcher, clock)
