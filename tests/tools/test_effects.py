"""The list of tool calls says in words what each call has done."""

import httpx
import pytest

from tests.facts.asking import call
from tests.memories.asking import Learner, memories
from tests.talk import Json, append, edit, get, said

pytestmark = pytest.mark.usefixtures("replied")

SHOWN = "Its reply has the same text."
OPEN = "It is open until its reply is appended."
HIDDEN = "It is hidden, because its reply has another text, is deleted or is hidden."


async def calls(api: httpx.AsyncClient) -> list[Json]:
    items: list[Json] = (await get(api, "/tools/calls"))["items"]
    return items


async def effects(api: httpx.AsyncClient) -> list[str]:
    return [str(one["effect"]) for one in await calls(api)]


async def test_each_tool_says_what_it_wrote(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn("Mira's brother Tomas is a ferryman.", "m1")
    (memory,) = await memories(api)
    await call(api, "set_fact", {"key": "pet", "value": "a gull"})
    await call(api, "forget_fact", {"key": "pet"})
    for operation, more in (("replace", {}), ("append", {}), ("search_replace", {"search_pattern": "a cup"})):
        content = "tea" if more else "Mira likes\na cup."
        await call(api, "memory_block_update", {"block": "user", "operation": operation, "content": content} | more)
    await call(api, "forget", {"memory_id": memory["id"]})
    await call(api, "save_memory", {"content": "She gave me her compass."})
    ids = [one["id"] for one in await calls(api)]
    assert await effects(api) == [
        f"Set the fact “pet” to “a gull” (statement {ids[0]}). {SHOWN}",
        f"Deleted the fact “pet” (statement {ids[1]}). {SHOWN}",
        f"Wrote the block “user”: “Mira likes a cup.” (statement {ids[2]}). {SHOWN}",
        f"Appended “Mira likes a cup.” to the block “user” (statement {ids[3]}). {SHOWN}",
        f"Replaced “a cup” by “tea” in the block “user” (statement {ids[4]}). {SHOWN}",
        f"Forgot the memory {memory['id']} (statement {ids[5]}). {SHOWN}",
        f"Wrote “She gave me her compass.” into the diary (entry {ids[6]}). {SHOWN}",
    ]


async def test_the_effect_says_if_its_reply_is_open_shown_or_hidden(api: httpx.AsyncClient) -> None:
    await append(api, [said(3)])
    await call(api, "set_fact", {"key": "pet", "value": "a gull" * 100})
    (effect,) = await effects(api)
    assert effect.startswith("Set the fact “pet” to “a gulla gull")
    assert effect.endswith(f" {OPEN}")
    assert len(effect) < 400
    await append(api, [said(4)])
    assert (await effects(api))[0].endswith(f" {SHOWN}")
    await edit(api, "m4", content="Hm.")
    assert (await effects(api))[0].endswith(f" {HIDDEN}")
