"""What the tests do with chats of one user that share a character's diary."""

from typing import Any

import httpx

from tests.diary.diaries import KAI, prompts
from tests.talk import Json, append, ok, put, talk

KEEPING_ONE: Json = {"keep_messages": 1, "grow_messages": 1_000, "edges": "every_message"}
"""A history that only `cut` cuts."""


async def begin(
    api: httpx.AsyncClient, chat_id: str = "c", *, user_id: str | None = "mira", name: str = "Kai", **diary: Any
) -> None:
    """Create a chat that shares its diaries, with one turn."""
    settings = {"memos": {"enabled": False}, "diary": {"scope": "character", **diary}, "history": KEEPING_ONE}
    await put(api, chat_id, user_id=user_id, characters=[KAI | {"name": name}], settings=settings)
    await append(api, talk(1, 2), chat_id)


async def save_in(api: httpx.AsyncClient, chat_id: str, content: str, **query: Any) -> None:
    """Write an entry as the character."""
    ok(await api.post(f"/v1/chats/{chat_id}/tools/save_memory", json={"content": content}, params=query), 200)


async def write_in(api: httpx.AsyncClient, chat_id: str, content: str, **entry: Any) -> Json:
    """Write an entry as a person."""
    return ok(await api.post(f"/v1/chats/{chat_id}/diary", json={"content": content, **entry}), 201)


async def entries_of(api: httpx.AsyncClient, chat_id: str) -> list[Json]:
    """The entries of a chat itself."""
    found: list[Json] = ok(await api.get(f"/v1/chats/{chat_id}/diary", params={"limit": 500}), 200)["items"]
    return found


async def shared(api: httpx.AsyncClient, chat_id: str = "d", **query: Any) -> list[Json]:
    """The entries of other chats that the contexts of a chat can contain."""
    found: list[Json] = ok(await api.get(f"/v1/chats/{chat_id}/diary/shared", params=query), 200)["items"]
    return found


async def shown_in(api: httpx.AsyncClient, chat_id: str = "d", **options: Any) -> list[str]:
    """The texts of all entries in the prompt of a chat, those of other chats with `*` before them."""
    texts = []
    for text in await prompts(api, chat_id, **options):
        for block in text.split("\n\n## ")[1:]:
            heading, _, content = block.partition("\n")
            texts.append(f"*{content}" if heading.endswith("memo entry, in another conversation") else content)
    return texts


async def cut(api: httpx.AsyncClient, chat_id: str = "d") -> None:
    """Append a turn to a chat, and cut its history by a new session."""
    n = int(ok(await api.get(f"/v1/chats/{chat_id}"), 200)["counters"]["messages"])
    await append(api, talk(n + 1, n + 2), chat_id)
    before = await _anchor(api, chat_id)
    ok(await api.post(f"/v1/chats/{chat_id}/sessions/break"), 201)
    assert await _anchor(api, chat_id) > before


async def _anchor(api: httpx.AsyncClient, chat_id: str) -> int:
    return int(ok(await api.get(f"/v1/chats/{chat_id}"), 200)["anchor_seq"])
