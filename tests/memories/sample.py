"""What the tests of all layers need to know of memories."""

from uuid import UUID

from app.kit.db import Connection
from tests.layers.sample import LayerSample, RichRows


async def learn_one(connection: Connection, chat_key: UUID) -> None:
    """A teaching as if a job had learnt it from a message."""
    await connection.execute(
        "UPDATE teachings SET message_id = 'm36', text_hash = decode('00', 'hex')"
        " WHERE chat_key = $1 AND teaching_id = ("
        " SELECT max(teaching_id::text)::uuid FROM teachings WHERE chat_key = $1)",
        chat_key,
    )


SAMPLE = LayerSample(rich=RichRows(fill=learn_one), in_presets={"memories.enabled": (True,) * 6})
