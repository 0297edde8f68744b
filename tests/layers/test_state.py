"""The state of a chat is canonical: equal states have the same bytes."""

from typing import Any

import httpx
import orjson

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.registry import LAYERS
from tests.blocks.asking import edit_block, update
from tests.chats.rich import list_tables, make_rich_chat
from tests.facts.asking import KAI, begin, checkpoint, note, restore, set_fact
from tests.memories.asking import write
from tests.talk import CHAT, append, get, ok, put, talk
from tests.vault.vaults import export, ref_of
from tests.vault.vaults import restore as restore_vault

WITHOUT_IDS = ("facts", "blocks", "memories", "sessions")
"""The layers whose states contain no ids of rows, so that two chats in which the same was done have equal states."""

SCOPES = ("/v1/chats/{chat}", "/v1/users/{user}", "/v1/users/{user}/characters/Kai")

MADE: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/facts/lamp", {"value": "green"}),
    ("PUT", "/facts/Lamp", {"value": "red"}),
    ("PUT", "/facts/λάμπα", {"value": "blue"}),
    ("PUT", "/blocks/user", {"text": "Mira."}),
    ("PUT", "/blocks/context", {"text": "It is night."}),
    ("POST", "/memories", {"content": "She has a cat."}),
    ("POST", "/memories", {"content": "She has a cat.", "category": "goal", "tags": ["b", "a"]}),
    ("POST", "/memories", {"content": "She has a dog."}),
]
IMPORTANT: tuple[str, str, dict[str, Any]] = ("POST", "/memories", {"content": "She has a cat.", "importance": 1})
"""What is written first: the block `facts` has the memories up to the newest important one, in the order of arrival."""


async def read_bytes(api: httpx.AsyncClient, chat_id: str) -> bytes:
    """The state of the layers, without the id of the line."""
    answer = await api.get(f"/v1/chats/{chat_id}/state")
    layers = ok(answer, 200)["layers"]
    assert b'{"line":"%s","layers":%s}' % (answer.json()["line"].encode(), orjson.dumps(layers)) == answer.content
    return orjson.dumps({name: layers[name] for name in WITHOUT_IDS})


async def read_all(api: httpx.AsyncClient, chat_id: str, **query: str) -> dict[str, bytes]:
    """The state of each layer, as the answer has it."""
    layers = ok(await api.get(f"/v1/chats/{chat_id}/state", params=query), 200)["layers"]
    return {name: orjson.dumps(state) for name, state in layers.items()}


async def test_the_state_is_independent_of_the_order_of_writes(api: httpx.AsyncClient) -> None:
    states = set()
    writes = [(scope, made) for scope in SCOPES for made in MADE]
    for n, ordered in enumerate((writes, writes[::-1], [*writes[1::2], *writes[::2]])):
        names = {"chat": f"c{n}", "user": f"user-{n}"}
        await put(api, names["chat"], user_id=names["user"], characters=[KAI])
        for scope, (method, path, body) in [*((scope, IMPORTANT) for scope in dict(ordered)), *ordered]:
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


async def test_the_state_of_every_layer_has_one_form(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    """Not even another order of the rows in the tables changes it, nor a restored checkpoint, nor an import."""
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    before = await read_all(api, "c")
    assert list(before) == [layer.name for layer in LAYERS if layer.settings]
    assert [name for name, state in before.items() if not has_rows(orjson.loads(state))] == []
    await move_rows(database, tenant)
    assert await read_all(api, "c") == before
    line = (await get(api, ""))["line"]
    await restore_vault(database, await export(database, ref_of(tenant)), ref_of(tenant, "d"))
    await checkpoint(api, "then")
    await restore(api, "then")
    for chat_id, query in (("c", {}), ("c", {"line": line}), ("d", {})):
        found = await read_all(api, chat_id, **query)
        assert [name for name in before if found[name] != before[name]] == [], (chat_id, query)


def has_rows(state: Any) -> bool:
    """Whether a state has a row, or each table or scope of it has one."""
    parts = list(state.values()) if isinstance(state, dict) else [state]
    return bool(parts) and all(parts)


async def move_rows(database: Database, tenant: str) -> None:
    """Write some rows of the chat `c` again, so that they follow the others in the tables.

    With statistics, PostgreSQL reads such small tables from begin to end, and not in the order of an index.
    """
    async with database.raw() as connection:
        for table, key in (await list_tables(database)).items():
            await connection.execute(
                f'UPDATE "{table}" t SET line_id = line_id WHERE {key} = $1 AND md5(t::text) < md5($1::text)',
                chat_key(tenant, "c"),
            )
            await connection.execute(f'ANALYZE "{table}"')
