"""Read and edit core blocks over HTTP: those of the chat `c` unless another path is given."""

from typing import Any

import httpx

from tests.facts.asking import call
from tests.talk import CHAT, Json, ok, walk


async def put_block(
    api: httpx.AsyncClient, text: str, *, label: str = "user", under: str = CHAT, status: int = 201
) -> Json:
    return ok(await api.put(f"{under}/blocks/{label}", json={"text": text}), status)


async def edit_block(
    api: httpx.AsyncClient,
    operation: str,
    content: str,
    pattern: str | None = None,
    *,
    label: str = "user",
    under: str = CHAT,
    status: int = 200,
    **query: Any,
) -> Json:
    body = {"operation": operation, "content": content} | ({"search_pattern": pattern} if pattern else {})
    return ok(await api.post(f"{under}/blocks/{label}/edit", json=body, params=query), status)


async def delete_block(api: httpx.AsyncClient, label: str = "user", *, under: str = CHAT, status: int = 204) -> None:
    answer = await api.delete(f"{under}/blocks/{label}")
    assert answer.status_code == status, answer.text


async def update(
    api: httpx.AsyncClient,
    operation: str,
    content: str,
    pattern: str | None = None,
    *,
    label: str = "user",
    chat_id: str = "c",
    status: int = 200,
    **query: Any,
) -> str:
    """Call the tool as the model does; what the model reads."""
    arguments = {"block": label, "operation": operation, "content": content}
    arguments |= {"search_pattern": pattern} if pattern else {}
    return await call(api, "memory_block_update", arguments, chat_id=chat_id, status=status, **query)


async def texts(api: httpx.AsyncClient, *, under: str = CHAT, **query: Any) -> dict[str, str]:
    """The text of each block, by label."""
    return {block["label"]: block["text"] for page in await walk(api, f"{under}/blocks", **query) for block in page}


async def history(api: httpx.AsyncClient, label: str = "user", *, under: str = CHAT, **query: Any) -> list[Json]:
    return [one for page in await walk(api, f"{under}/blocks/{label}/history", **query) for one in page]


async def shown(api: httpx.AsyncClient, *, chat_id: str = "c", **options: Any) -> dict[str, str]:
    """The blocks in a context, by label."""
    answer = ok(await api.get(f"/v1/chats/{chat_id}/context", params=options), 200)
    found = {}
    for text in [segment["text"] for segment in answer["segments"] if segment["name"] == "blocks"]:
        for part in text.split("### ")[1:]:
            label, _, words = part.partition("\n\n")
            found[label] = words.strip("\n")
    return found
