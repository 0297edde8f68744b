"""Have the chat `c` learn, with a model that answers as the tests say."""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.scripted_model import Request
from tests.talk import Json, append, get, put, said

CHARACTERS = [{"name": "Kai"}]
FILL = """
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, origin, is_set, learnt_at)
    SELECT owner_key, line_id, gen_random_uuid(), kind, 'key_' || n, 'x', 'person', true, learnt_at
    FROM statements, generate_series(1, $1) AS n WHERE owner_key = $2"""
"""Copies a statement of the owner $2 to $1 further keys."""


async def begin(api: httpx.AsyncClient, *, turns: int = 1, status: int = 201, **settings: Any) -> None:
    """Create the chat of the user mira, or change its settings; it learns after so many turns."""
    consolidation = {"enabled": True, "every_turns": turns}
    await put(
        api,
        user_id="mira",
        user_name="Mira",
        characters=CHARACTERS,
        settings={"memos": {"enabled": False}, "consolidation": consolidation} | settings,
        status=status,
    )


def memory(content: str, *numbers: int, importance: float = 0.7, **more: Any) -> str:
    """A line of an answer: a memory."""
    return json.dumps({"memory": content, "category": "personal", "importance": importance, "from": numbers} | more)


def fact(key: str, value: str, *numbers: int, **more: Any) -> str:
    """A line of an answer: a fact."""
    return json.dumps({"fact": key, "value": value, "category": "personal", "importance": 0.9, "from": numbers} | more)


def quoted(request: Request, tag: str = "messages") -> list[Json]:
    """What a request quotes between two tags, one object a line."""
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", str(request["messages"][-1]["content"]), re.M | re.S)
    return [json.loads(line) for line in found[1].splitlines() if line] if found else []


def learns(words: dict[str, Callable[[int], str]]) -> Callable[[Request], str]:
    """Answer with a line for each message that contains one of `words`; the function gets its number."""

    def answer(request: Request) -> str:
        lines = [
            line(number)
            for number, one in enumerate(quoted(request), start=1)
            for word, line in words.items()
            if word in str(one["message"])
        ]
        return "\n".join(lines) or "NONE"

    return answer


async def turn(api: httpx.AsyncClient, number: int, user: str, reply: str = "Hm.") -> None:
    """Append the turn `number`, from 1: the messages 2n - 1 and 2n."""
    await append(api, [said(2 * number - 1) | {"content": user}, said(2 * number) | {"content": reply}])


async def learn_all(dispatcher: Dispatcher, clock: SteppedClock) -> int:
    """Let what is due be learnt; return the number of attempts."""
    return await settle(dispatcher, clock)


async def memories(api: httpx.AsyncClient, **query: Any) -> list[Json]:
    """The memories that the chat knows, oldest first."""
    found = (await get(api, "/memories", limit=100, **query))["items"]
    return sorted(found, key=lambda one: str(one["created_at"]))


async def sentences(api: httpx.AsyncClient, **query: Any) -> set[str]:
    """What the memories say."""
    return {str(one["content"]) for one in await memories(api, **query)}


async def facts(api: httpx.AsyncClient) -> dict[str, str]:
    """The facts that hold."""
    return {one["key"]: one["value"] for one in (await get(api, "/facts"))["items"]}
