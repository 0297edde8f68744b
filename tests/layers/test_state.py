"""The state of a chat is canonical: equal states have the same bytes."""

from typing import Any

import httpx
import orjson

from tests.blocks.asking import edit_block, update
from tests.facts.asking import KAI, begin, checkpoint, note, restore, set_fact
from tests.memories.asking import write
from tests.talk import CHAT, append, ok, put, talk

LAYERS = ("facts", "blocks", "memories", "sessions")

SCOPES = ("/v1/chats/{chat}", "/v1/users/{user}", "/v1/users/{user}/characters/Kai")

MADE: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/facts/lamp", {"value": "green"}),
    ("PUT", "/facts/Lamp", {"value": "red"}),
    ("PUT", "/facts/λάμπα", {"value": "blue"}),
    ("PUT", "/blocks/user", {"text": "Mira."}),
    ("PUT", "/blocks/context", {"text": "It is night."}),
    ("POST", "/memories", {"content": "She has a cat."}),
    ("POST", "/memories", {"content": "She has a cat.", "importance": 1}),
    ("POST", "/memories", {"content": "She has a cat.", "category": "goal", "tags": ["b", "a"]}),
    ("POST", "/memories", {"content": "She has a dog."}),
]


async def read_bytes(api: httpx.AsyncClient, chat_id: str) -> bytes:
    """The state of the layers, without the id of the line."""
    answer = await api.get(f"/v1/chats/{chat_id}/state")
    layers = ok(answer, 200)["layers"]
    assert b'{"line":"%s","layers":%s}' % (answer.json()["line"].encode(), orjson.dumps(layers)) == answer.content
    return orjson.dumps({name: layers[name] for name in LAYERS})


async def test_the_state_is_independent_of_the_order_of_writes(api: httpx.AsyncClient) -> None:
    states = set()
    writes = [(scope, made) for scope in SCOPES for made in MADE]
    for n, ordered in enumerate((writes, writes[::-1], [*writes[1::2], *writes[::2]])):
        names = {"chat": f"c{n}", "user": f"user-{n}"}
        await put(api, names["chat"], user_id=names["user"], characters=[KAI])
        for scope, (method, path, body) in ordered:
            assert (await api.request(method, scope.format(**names) + path, json=body)).status_code == 201
        states.add(await read_bytes(api, names["chat"]))
    assert len(states) == 1


async def test_a_restored_line_has_the_same_state(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    ok(await api.post(f"{CHAT}/sessions/break"), 201)
    await append(api, talk(3, 4))
    await set_fact(api, "lamp", "green")
    await note(api, "brother", "Tomas")
    await update(api, "append", "She has a brother.")
    await edit_block(api, "append", "She is a sailor.")
    await write(api, "She has a cat.")
    before = await read_bytes(api, "c")
    assert all(orjson.loads(before).values())
    await checkpoint(api, "then")
    await append(api, talk(5, 6))
    await note(api, "lamp", "red")
    ok(await api.post(f"{CHAT}/sessions/break"), 201)
    assert await read_bytes(api, "c") != before
    await restore(api, "then")
    assert await read_bytes(api, "c") == before
