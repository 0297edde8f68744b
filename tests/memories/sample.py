"""What the tests of all layers need to know of memories."""

from uuid import UUID

import httpx

from app.kit.db import Connection
from tests.layers.sample import LayerSample, RichRows
from tests.memories.asking import change, write


async def learn_one(connection: Connection, chat_key: UUID) -> None:
    """A teaching as if a job had learnt it from a message."""
    await connection.execute(
        "UPDATE teachings SET message_id = 'm36', text_hash = decode('00', 'hex'), said_at = now()"
        " WHERE chat_key = $1 AND teaching_id = ("
        " SELECT max(teaching_id::text)::uuid FROM teachings WHERE chat_key = $1)",
        chat_key,
    )


async def write_two(api: httpx.AsyncClient) -> None:
    await write(api, "Mira's brother Tomas is a ferryman.", category="personal", importance=0.8, tags=["family"])
    two = await write(api, "Two cans of lamp oil are left.")
    await change(api, two["id"], importance=0.4)


SAMPLE = LayerSample(
    rich=RichRows(write_last=write_two, fill=learn_one),
    write=write_two,
    missing={"/memories": "memory_not_found"},
    in_presets={"memories.enabled": (True,) * 6},
)
