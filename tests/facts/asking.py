"""Set and read facts over HTTP: those of the chat `c` unless another path is given."""

from typing import Any

import httpx

from tests.talk import CHAT, Json, ok, put, walk

USER = "/v1/users/mira"
KAI: Json = {"name": "Kai"}

WRITE_MEANWHILE = """
    UPDATE scopes SET revision = revision + 1 WHERE owner_key = '{owner}';
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, is_set, learnt_at)
    SELECT owner_key, line_id, gen_random_uuid(), kind, key, '{content}', importance, origin, true,
        learnt_at + interval '1 hour'
    FROM statements WHERE owner_key = '{owner}'"""
"""Gives the only thing that is known of a user another text, which is newer by the clock of another process."""


async def begin(api: httpx.AsyncClient, chat_id: str = "c", **settings: Any) -> None:
    """Create a chat of the user mira with the character Kai."""
    await put(api, chat_id, user_id="mira", characters=[KAI], settings=settings)


async def learn_wide(api: httpx.AsyncClient, chat_id: str = "c", scope: str = "user") -> None:
    """Create a chat whose tools set facts of a wider scope."""
    await begin(api, chat_id, memories={"learn_scope": scope})


async def set_fact(api: httpx.AsyncClient, key: str, value: str, *, under: str = CHAT, status: int = 201) -> Json:
    return ok(await api.put(f"{under}/facts/{key}", json={"value": value}), status)


async def delete_fact(api: httpx.AsyncClient, key: str, *, under: str = CHAT, status: int = 204) -> None:
    answer = await api.delete(f"{under}/facts/{key}")
    assert answer.status_code == status, answer.text


async def call(
    api: httpx.AsyncClient, tool: str, arguments: Json, *, chat_id: str = "c", status: int = 200, **query: Any
) -> str:
    """Call a tool as the model does; what the model reads."""
    answer = ok(await api.post(f"/v1/chats/{chat_id}/tools/{tool}", json=arguments, params=query), status)
    return str(answer.get("result", answer.get("detail")))


async def note(api: httpx.AsyncClient, key: str, value: str, *, chat_id: str = "c", **query: Any) -> str:
    """Set a fact with the tool."""
    return await call(api, "set_fact", {"key": key, "value": value}, chat_id=chat_id, **query)


async def held(api: httpx.AsyncClient, *, under: str = CHAT, **query: Any) -> dict[str, str]:
    """The facts that hold, by key."""
    return {fact["key"]: fact["value"] for page in await walk(api, f"{under}/facts", **query) for fact in page}


async def history(api: httpx.AsyncClient, key: str, *, under: str = CHAT, **query: Any) -> list[Json]:
    return [value for page in await walk(api, f"{under}/facts/{key}/history", **query) for value in page]


async def shown(api: httpx.AsyncClient, *, chat_id: str = "c", **options: Any) -> list[str]:
    """The lines of facts in a context."""
    answer = ok(await api.get(f"/v1/chats/{chat_id}/context", params=options), 200)
    texts = [segment["text"] for segment in answer["segments"] if segment["name"] == "facts"]
    return [line.removeprefix("- ") for text in texts for line in text.splitlines() if line.startswith("- ")]


async def restore(api: httpx.AsyncClient, name: str, chat_id: str = "c") -> None:
    ok(await api.post(f"/v1/chats/{chat_id}/checkpoints/{name}/restore"), 201)


async def checkpoint(api: httpx.AsyncClient, name: str, chat_id: str = "c") -> None:
    ok(await api.post(f"/v1/chats/{chat_id}/checkpoints", json={"name": name}), 201)


async def switch_to(api: httpx.AsyncClient, line: str, chat_id: str = "c") -> None:
    answer = await api.post(f"/v1/chats/{chat_id}/lines/{line}/switch")
    assert answer.is_success, answer.text


async def fork(api: httpx.AsyncClient, chat_id: str, **given: Any) -> None:
    ok(await api.post(f"{CHAT}/fork", json={"chat_id": chat_id, **given}), 201)
