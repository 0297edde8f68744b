"""What the tests of all layers need to know of facts."""

from uuid import UUID

import httpx

from app.kit.db import Connection
from tests.facts.asking import USER, delete_fact, note, set_fact
from tests.layers.sample import LayerSample, RichRows


async def set_two(api: httpx.AsyncClient) -> None:
    await set_fact(api, "user_brother", "Tomas, a ferryman")
    await set_fact(api, "lamp_oil", "Two cans are left.")


async def set_and_note(api: httpx.AsyncClient) -> None:
    """Facts of a person and of tools, one for a reply to come, one that is deleted."""
    await set_two(api)
    await note(api, "harbour", "It freezes in January.")
    await note(api, "lens", "It is cracked.", message_id="m36")
    await note(api, "boat", "She is called the Petrel.", message_id="to-come-too")
    await delete_fact(api, "lamp_oil")


async def set_everywhere(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """The fact of the examples, in each scope: some are read before they are set, and a tool forgets one."""
    for under in (chat, USER, f"{USER}/characters/Kai", "/v1"):
        (await api.put(f"{under}/facts/user_brother", json={"value": "Tomas"})).raise_for_status()
    return {}


async def widen_one(connection: Connection, chat_key: UUID) -> None:
    """A teaching as if the chat had taught something about its user."""
    await connection.execute(
        "UPDATE teachings SET wide_key = chat_key WHERE chat_key = $1 AND teaching_id = ("
        " SELECT min(teaching_id::text)::uuid FROM teachings WHERE chat_key = $1)",
        chat_key,
    )


SAMPLE = LayerSample(
    rich=RichRows(write_last=set_and_note, fill=widen_one),
    write=set_two,
    path_parameters={"key": "user_brother"},
    before=dict.fromkeys(("get_fact", "delete_fact"), set_everywhere),
    missing={"/facts": "fact_not_found"},
    in_presets={"facts.enabled": (True,) * 6},
)
