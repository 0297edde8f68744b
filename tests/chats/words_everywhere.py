"""A chat with a given word in every column that a client, a person or a model can write, and where the word is."""

import re
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from app.kit.db import Connection
from app.kit.work_queue import RETRY_DELAYS_S
from tests.layers.sample import Stage
from tests.scenes.story import set_break
from tests.scripted_model import Reply, Request, refuses
from tests.talk import Json, append, get, ok, put, said

_DECLINED = "I'm sorry, but I can't help with that request."

_COLUMNS = """
    SELECT c.relname::text AS table, a.attname::text AS column, a.atttypid = 'bytea'::regtype AS is_binary
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
        AND a.atttypid = ANY('{text, varchar, text[], varchar[], jsonb, jsonb[], json, tsvector, bytea}'::regtype[])"""


class Writer:
    """A model that writes the word in all of its answers, and for a while fails after some of them.

    Attributes:
        left: How many more requests of each kind are answered; None answers all.

    """

    def __init__(self, word: str) -> None:
        self.left: dict[str, int] | None = None
        self._word = word
        self._answers = {
            "You write down what": f"Title: {word} ashore\n# Outcomes\n- {word} came ashore.\n# Threads\n# State",
            "You keep the running": f"# Outcomes\n- {word} came ashore and spoke of lamps.\n# Threads\n# State",
            "You keep the story": f"The user and {word} spoke of the lamps, one after another.",
            "You keep the memory": f"【Highlight 1】: (keepsake) The user gave {word} a lamp.",
            "You keep the long-term": f'{{"memory": "The user gave {word} a lamp.", "tags": ["{word}"], "from": [1]}}',
            "You are a character": f"I was given a lamp tonight, and {word} is what they call me now.",
        }

    def __call__(self, request: Request) -> str | Reply:
        """Answer a request by the beginning of its system prompt."""
        system, asked = (str(request["messages"][at]["content"]) for at in (0, -1))
        if possible := re.search(r"Possible answers: (\d+)", asked):
            return f'{{"break_at": {possible[1]}, "reason": "{self._word} leaves the island."}}'
        kind = next(words for words in self._answers if system.startswith(words))
        if self.left is None:
            return self._answers[kind]
        self.left[kind] = self.left.get(kind, 0) - 1
        if self.left[kind] >= 0:
            return self._answers[kind]
        return _DECLINED if self.left[kind] == -1 else refuses(500)


def message(n: int, word: str) -> Json:
    """The nth message, with the word in all of its fields."""
    told = said(n, id=f"m{n}-{word}", content=f"I give {word} lamp number {n}.", metadata={word: word})
    return told if n % 2 else told | {"name": f"Kai {word}"}


async def write_everywhere(stage: Stage, word: str) -> None:
    """Make the chat `c` of the user `mira-<word>`, with abandoned lines, checkpoints, and the fork `fork`."""
    api = stage.api
    model = Writer(word)
    await _make_chat(api, word)
    for first in range(1, 41, 4):
        await append(api, [message(n, word) for n in range(first, first + 4)])
        await stage.settle(model)
    await _write_as_a_person(api, word)
    await stage.settle(model)
    await stage.settle(model)
    await _make_lines(api, word)
    await stage.settle(model)
    await put(api, status=200, settings={"scenes": {"detect": False}})
    # A scene of two parts, of which one is made, and memos and entries of which none is made any more.
    model.left = {"You write down what": 1}
    await append(api, [message(n, word) for n in range(44, 144)])
    await set_break(api, 140)
    memo = (await get(api, "/memos"))["items"][2]
    body = {"instruction": f"Name {word}.", "replace_edited": True}
    ok(await api.post(f"/v1/chats/c/memos/{memo['id']}/regenerate", json=body), 202)
    for delay_s in (2, *RETRY_DELAYS_S):
        stage.clock.step(delay_s)
        await stage.settle(model)
    fact = {"key": f"boat of {word}", "value": f"It is called {word}."}
    query = {"message_id": f"m142-{word}"}
    ok(await api.post("/v1/chats/c/tools/set_fact", json=fact, params=query), 200)
    ok(await api.post("/v1/chats/c/tools/get_facts", json={}, params={"character": f"Kai {word}"}), 200)
    ok(await api.post(f"/v1/chats/c/tools/ask_{word}", json={}), 404)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": f"after {word}"}), 201)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "fork"}), 201)


async def _make_chat(api: httpx.AsyncClient, word: str) -> None:
    lines = [{word: word, "chat": {}}, message(1, word) | {word: word}]
    file = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
    ok(await api.post("/v1/import", params={"format": "jsonl", "chat_id": "c"}, content=file), 201)
    await put(
        api,
        status=200,
        user_id=f"mira-{word}",
        user_name=f"Mira {word}",
        user_persona=f"Mira, a cartographer of {word}.",
        characters=[{"name": f"Kai {word}"}, {"name": f"Noor {word}", "disabled": True}],
        system_prompt=f"You are {word}.",
        metadata={word: word},
        settings={
            "preset": "companion",
            "instruction": f"Think of {word}.",
            "history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 200},  # a forced cut ends a scene
            "summary": {"enabled": True},
            "scenes": {"enabled": True, "min_messages": 4, "auto_hide": 1},
            "diary": {"auto_write_turns": 2, "lines": 2},
            "memories": {"learn_scope": "character"},
        },
    )


async def _write_as_a_person(api: httpx.AsyncClient, word: str) -> None:
    """Edit, add swipes, write memories, and call tools for a reply that is there and for one to come."""
    for n in (3, 40):
        path = f"/v1/chats/c/messages/m{n}-{word}"
        ok(await api.post(f"{path}/swipes", json={"content": f"{word} has another lamp."}), 201)
        ok(await api.patch(path, json={"content": f"{word} has a better lamp.", "pinned": True}), 200)
    ok(await api.post("/v1/chats/c/memos", json={"text": f"{word} was here before."}), 201)
    block = {"block": "user", "content": f"{word} has a lamp."}
    for tool, learnt in (
        ("set_fact", {"key": word, "value": f"{word} has a lamp."}),
        ("memory_block_update", block | {"operation": "append"}),
        ("memory_block_update", block | {"operation": "search_replace", "search_pattern": word}),
    ):
        ok(await api.post(f"/v1/chats/c/tools/{tool}", json=learnt), 200)
    for content, query in (("a lamp", {}), ("a light to come", {"message_id": f"later-{word}"})):
        arguments = {"content": f"I got {content} from {word} tonight."}
        ok(await api.post("/v1/chats/c/tools/save_memory", json=arguments, params=query), 200)
    ok(await api.put(f"/v1/chats/c/facts/lamp of {word}", json={"value": f"{word} has it."}), 201)
    ok(await api.post("/v1/chats/c/memories", json={"content": f"{word} came back.", "tags": [word]}), 201)
    ok(await api.put("/v1/chats/c/summary", json={"text": f"{word} came by boat."}), 200)
    call = {"id": f"call-{word}", "type": "function", "function": {"name": word, "arguments": f'{{"who": "{word}"}}'}}
    await append(api, [message(41, word), message(42, word) | {"tool_calls": [call]}])
    await append(api, [message(43, word) | {"role": "tool", "tool_call_id": f"call-{word}"}])


async def _make_lines(api: httpx.AsyncClient, word: str) -> None:
    """Leave a line by a restore, and another one by a re-import."""
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": f"before {word}"}), 201)
    await append(api, [message(44, word)])
    ok(await api.post(f"/v1/chats/c/checkpoints/before {word}/restore"), 201)
    listed = [message(n, word) for n in range(1, 44)]
    listed[42] |= {"role": "tool", "tool_call_id": f"call-{word}"}
    listed.insert(5, message(1_000, word))
    ok(await api.put("/v1/chats/c/messages", json={"messages": listed}), 200)
    lines = (await get(api, "/lines"))["items"]
    assert len(lines) == 3


async def list_columns(connection: Connection) -> dict[tuple[str, str], bool]:
    """All columns that can hold text, as (table, column), and whether they hold bytes."""
    return {(row["table"], row["column"]): row["is_binary"] for row in await connection.fetch(_COLUMNS)}


async def count_word(connection: Connection, word: str) -> Mapping[tuple[str, str], int]:
    """How many rows contain the word in a column, for each column where there are any."""
    found = {}
    for (table, column), is_binary in (await list_columns(connection)).items():
        text = f"encode(\"{column}\", 'escape')" if is_binary else f'"{column}"::text'
        query = f'SELECT count(*) FROM "{table}" WHERE {text} ILIKE $1'
        if count := await connection.fetchval(query, f"%{word}%"):
            found[table, column] = count
    return found


async def read_redis(redis: Any) -> dict[bytes, Any]:
    """The content of each key."""
    commands: dict[bytes, tuple[Any, ...]] = {
        b"string": ("GET",),
        b"hash": ("HGETALL",),
        b"zset": ("ZRANGE", 0, -1),
        b"list": ("LRANGE", 0, -1),
        b"set": ("SMEMBERS",),
    }
    found = {}
    async for key in redis.scan_iter():
        name, *rest = commands[await redis.type(key)]
        found[key] = await redis.execute_command(name, key, *rest)
    return found
