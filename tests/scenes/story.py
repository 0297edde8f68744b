"""Scenes as tests see them: a model that remembers each message by its number, and what became of the story."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from tests.scripted_model import Reply, Request, ScriptedModel
from tests.talk import Json, context, get, ok
from tests.words import numbers_in

BY_HAND = {"preset": "scenes", "scenes": {"detect": False}}
"""Scenes whose breaks are only set by hand."""

NO_BREAK = '{"break_at": null, "reason": "Still the same evening."}'


def asked_for(request: Request) -> str:
    """What a request asks for: `break`, `scene`, `recap`, or something else's."""
    begins = {"You divide": "break", "You write down": "scene", "You keep the running": "recap"}
    system = str(request["messages"][0]["content"])
    return next((name for words, name in begins.items() if system.startswith(words)), "other")


def story_model(breaks: Callable[[Sequence[int]], int | None] = lambda _: None) -> Callable[[Request], str | Reply]:
    """Return a model whose texts list the numbers of their messages; `breaks` chooses among the possible breaks."""

    def answer(request: Request) -> str:
        content = str(request["messages"][-1]["content"])
        kind = asked_for(request)
        if kind == "break":
            possible = re.search(r"Possible answers: (.*) or null", content)
            assert possible
            return json.dumps({"break_at": breaks([int(n) for n in possible[1].split(", ")]), "reason": "Next day."})
        if kind == "scene":
            numbers = re.findall(r"lamp number (\d+)", content)
            return (
                f"Title: Lamps {numbers[0]} to {numbers[-1]}\n# Outcomes\n- They spoke of "
                f"{' '.join(f'#{n}' for n in numbers)}.\n# Threads\n# State\n- lamp: {numbers[-1]}"
            )
        numbers = [str(n) for n in numbers_in(content)]
        return f"# Outcomes\n- They spoke of {' '.join(f'#{n}' for n in numbers)}.\n# Threads\n# State"

    return answer


def calls(model: ScriptedModel) -> list[str]:
    """What the model was asked for so far, call by call."""
    return [asked_for(call.body) for call in model.calls]


async def set_break(api: httpx.AsyncClient, seq: int, status: int = 201) -> Json:
    """Set a break of the chat `c`."""
    return ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), status)


async def lift_break(api: httpx.AsyncClient, seq: int, status: int = 204) -> Json:
    """Delete a break of the chat `c`."""
    return ok(await api.delete(f"/v1/chats/c/scenes/breaks/{seq}"), status)


async def ask(api: httpx.AsyncClient, method: str, path: str, status: int, body: Json | None = None) -> Json:
    """A request below the chat `c`."""
    return ok(await api.request(method, f"/v1/chats/c{path}", json=body), status)


async def scenes(api: httpx.AsyncClient, **query: Any) -> list[Json]:
    """The scenes of the chat `c`, in story order."""
    items: list[Json] = (await get(api, "/scenes", limit=500, **query))["items"]
    return items


async def ranges(api: httpx.AsyncClient) -> list[tuple[int, int | None]]:
    """Where the scenes begin and end; the open one has no end."""
    return [(scene["first_seq"], scene["last_seq"]) for scene in await scenes(api)]


async def statuses(api: httpx.AsyncClient) -> list[str]:
    """The statuses of the closed scenes, with a mark on what is stale."""
    return [scene["status"] + "!" * scene["stale"] for scene in await scenes(api) if not scene["open"]]


async def recap(api: httpx.AsyncClient) -> list[int]:
    """Return the messages that the running recap covers."""
    return numbers_in((await get(api, "/recap"))["text"])


async def shown(api: httpx.AsyncClient) -> list[int]:
    """Return the messages that the running recap in the context covers."""
    found = (await context(api))["segments"]
    return [n for segment in found if segment["name"] == "recap" for n in numbers_in(segment["text"])]


async def versions(api: httpx.AsyncClient) -> list[tuple[int, int | None, bool, bool]]:
    """(version, last_seq, stale, current) of each version of the running recap, newest first."""
    items = (await get(api, "/recap/versions"))["items"]
    return [(item["version"], item["last_seq"], item["stale"], item["current"]) for item in items]


async def hidden(api: httpx.AsyncClient, by: str = "scenes") -> list[int]:
    """The seqs of the messages that scenes, or the user, hide."""
    items = (await get(api, "/messages", limit=500))["items"]
    return [message["seq"] for message in items if message["hidden_by"] == by]


async def anchor(api: httpx.AsyncClient) -> int:
    """Return the `anchor_seq` of the chat's row."""
    seq: int = (await get(api, ""))["anchor_seq"]
    return seq
