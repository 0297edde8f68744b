"""What the tests of all layers need to know of core blocks."""

import httpx

from tests.blocks.asking import edit_block, put_block, update
from tests.facts.asking import USER
from tests.layers.sample import LayerSample, RichRows


async def set_two(api: httpx.AsyncClient) -> None:
    await put_block(api, "Mira, a cartographer. She has a brother.")
    await put_block(api, "The lamp is lit.", label="context")


async def set_and_update(api: httpx.AsyncClient) -> None:
    """Blocks of a person and of tools, one for a reply to come."""
    await set_two(api)
    await edit_block(api, "search_replace", "a sister", "a brother")
    await update(api, "search_replace", "Mira Voss", "Mira", message_id="m36")
    await update(api, "append", "The harbour freezes.", label="context")
    await update(api, "append", "She sails the Petrel.", message_id="to-come-later")


async def write_everywhere(api: httpx.AsyncClient, chat: str) -> dict[str, str]:
    """The block of the examples, in each scope: some are read before they are written."""
    for under in (chat, USER, f"{USER}/characters/Kai", "/v1"):
        (await api.put(f"{under}/blocks/user", json={"text": "Mira, a cartographer."})).raise_for_status()
    return {}


SAMPLE = LayerSample(
    rich=RichRows(write_last=set_and_update),
    write=set_two,
    path_parameters={"label": "user"},
    before=dict.fromkeys(("get_block", "delete_block"), write_everywhere),
    missing={"/blocks": "block_not_found"},
    in_presets={"blocks.enabled": (True,) * 6, "blocks.from_memories": (True,) * 6},
)
