"""What the tests do with the diaries of the chat `c`, and what they see of them."""

from typing import Any

import httpx

from tests.talk import Json, get, ok, put

KAI = {"name": "Kai", "persona": "A gruff lighthouse keeper who collects lost letters."}
MIRA = {"name": "Mira", "persona": "A cartographer who talks too much."}

MEMORY = "Mira asked for my name before she asked for the way."


def letters(n: int) -> str:
    """What the nth entry of a long diary says."""
    return f"Mira gave me letter number {n}, and I promised Mira to keep letter number {n} dry."


async def keep_diary(api: httpx.AsyncClient, *characters: Json, status: int = 201, **diary: Any) -> None:
    """Have the chat keep diaries."""
    cast = list(characters) or [KAI]
    settings = {"memos": {"enabled": False}, "diary": {"enabled": True, **diary}}
    await put(api, characters=cast, settings=settings, status=status)


async def write(api: httpx.AsyncClient, content: str = MEMORY, status: int = 201, **entry: Any) -> Json:
    """Write into a diary as a person."""
    return ok(await api.post("/v1/chats/c/diary", json={"content": content, **entry}), status)


async def save(api: httpx.AsyncClient, content: str = MEMORY, status: int = 200, **query: Any) -> Json:
    """Write into a diary as the character, by its tool."""
    return ok(await api.post("/v1/chats/c/tools/save_memory", json={"content": content}, params=query), status)


async def change(api: httpx.AsyncClient, entry_id: str, content: str, status: int = 200) -> Json:
    """Replace the words of an entry."""
    return ok(await api.patch(f"/v1/chats/c/diary/{entry_id}", json={"content": content}), status)


async def discard(api: httpx.AsyncClient, entry_id: str, status: int = 204) -> None:
    """Delete an entry."""
    ok(await api.delete(f"/v1/chats/c/diary/{entry_id}"), status)


async def entries(api: httpx.AsyncClient, **query: Any) -> list[Json]:
    """The entries in story order."""
    items: list[Json] = (await get(api, "/diary", limit=500, **query))["items"]
    return items


async def contents(api: httpx.AsyncClient, **query: Any) -> list[str]:
    """What the entries say, in story order."""
    return [entry["content"] for entry in await entries(api, **query)]


async def prompt(api: httpx.AsyncClient, chat_id: str = "c", **options: Any) -> str:
    """Return the diary in the prompt, with its newest entries under the same heading, or ""."""
    held, newest = await prompts(api, chat_id, **options)
    return held + newest.removeprefix("## Diary, newest entries") if held else newest.replace(", newest entries", "", 1)


async def prompts(api: httpx.AsyncClient, chat_id: str = "c", **options: Any) -> tuple[str, str]:
    """Return the segments `diary` and `diary_recent` of the prompt, each "" if there is none."""
    shown = ok(await api.get(f"/v1/chats/{chat_id}/context", params=options), 200)
    texts = {one["name"]: str(one["text"]) for one in shown["segments"]}
    return texts.get("diary", ""), texts.get("diary_recent", "")


async def cut_often(api: httpx.AsyncClient) -> None:
    """Have each new message cut the history, so that the diary is made again."""
    history = {"keep_messages": 1, "grow_messages": 0, "edges": "every_message"}
    await put(api, settings={"history": history}, status=200)
