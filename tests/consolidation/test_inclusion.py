"""What the inclusion report says about messages that facts and memories were learnt from."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import begin, fact, learn_all, learns, memories, memory, turn
from tests.facts.asking import call, delete_fact
from tests.scripted_model import ScriptedModel
from tests.talk import edit, get, hide, ok

FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
HISTORY = {"keep_messages": 4, "grow_messages": 0, "edges": "every_message"}


@pytest.fixture(autouse=True)
async def learnt(api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock) -> None:
    """Six turns, of which the last two are in the history."""
    model.otherwise = learns(
        {
            "ferryman": lambda n: memory(FERRY, n),
            "Captain": lambda n: fact("nickname", "Captain", n),
            "Skipper": lambda n: fact("nickname", "Skipper", n),
        }
    )
    await begin(api, history=HISTORY)
    for n, text in enumerate(
        ["My brother is a ferryman.", "Call me Captain.", "It rains.", "Call me Skipper.", "Hm.", "The ferryman!"], 1
    ):
        clock.step(60)
        await turn(api, n, text)
        await learn_all(dispatcher, clock)


async def reported(api: httpx.AsyncClient) -> dict[int, tuple[str, str | None]]:
    items = (await get(api, "/inclusion"))["items"]
    return {one["seq"]: (one["status"], one["by"]) for one in items}


async def known(api: httpx.AsyncClient) -> tuple[str, str]:
    """The sources of the memory and of the fact."""
    (one,) = await memories(api)
    (held,) = (await get(api, "/facts"))["items"]
    return f"memory:{one['id']}", f"fact:{held['id']}"


async def test_a_message_names_the_memory_or_fact_it_taught(api: httpx.AsyncClient) -> None:
    ferry, nickname = await known(api)
    found = await reported(api)
    assert {seq: by for seq, (_, by) in found.items() if by} == {1: ferry, 7: nickname}
    assert [status for status, _ in found.values()] == ["none"] * 8 + ["verbatim"] * 4


async def test_removed_memories_and_facts_are_not_named(api: httpx.AsyncClient) -> None:
    ferry, _ = await known(api)
    await edit(api, "m7", content="Hm.")
    found = await reported(api)
    (held,) = (await get(api, "/facts"))["items"]
    assert (found[3][1], found[7][1]) == (f"fact:{held['id']}", None)
    await delete_fact(api, "nickname")
    ok(await api.delete(f"/v1/chats/c/memories/{ferry.removeprefix('memory:')}"), 204)
    assert {by for _, by in (await reported(api)).values()} == {None}


async def test_a_reply_names_what_its_tool_wrote(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await call(api, "set_fact", {"key": "pet", "value": "a gull"})
    assert (await reported(api))[12] == ("verbatim", None)
    for n in (7, 8, 9):
        clock.step(60)
        await turn(api, n, "Hm.")
    facts = {one["key"]: one["id"] for one in (await get(api, "/facts"))["items"]}
    found = await reported(api)
    assert found[12] == ("none", f"fact:{facts['pet']}")


async def test_a_hidden_message_is_hidden(api: httpx.AsyncClient) -> None:
    await hide(api, (1, 1))
    await edit(api, "m7", excluded=True)
    found = await reported(api)
    assert (found[1], found[7]) == (("hidden", None), ("excluded", None))
