"""What the tests of all layers need to know of consolidation."""

from uuid import UUID

import httpx

from app.kit.db import Connection
from tests.layers.sample import LastAttempt, LayerSample, RichRows, Stage, refuse
from tests.talk import append, edit, put, talk

LEARNT = '{"memory": "Kai counts the lamps every night.", "category": "context", "importance": 0.7, "from": [1]}'


async def due_range(stage: Stage) -> None:
    await put(stage.api, settings={"memos": {"enabled": False}, "consolidation": {"enabled": True, "every_turns": 2}})
    stage.model.otherwise = lambda _: LEARNT
    await append(stage.api, talk(1, 4))


async def change_one(api: httpx.AsyncClient) -> None:
    """A range that is read again."""
    await edit(api, "m36", content="The lens is broken.")


async def name_the_model(connection: Connection, chat_key: UUID) -> None:
    """Ranges as if the model had read them: in the story, it answers other prompts only."""
    await connection.execute("UPDATE consolidations SET model = 'scripted-1' WHERE chat_key = $1", chat_key)
    await refuse(connection, chat_key, "consolidations")


SAMPLE = LayerSample(
    last_attempts={"range:": LastAttempt("range:%", due_range, "UPDATE messages SET digest = '\\x00'")},
    jobs_without_draft=frozenset({"again"}),
    begins={"consolidations": lambda row: row["first_seq"]},
    rich=RichRows(
        settings={"consolidation": {"enabled": True, "every_turns": 1}}, write_last=change_one, fill=name_the_model
    ),
    wording={"consolidation/1": "eb931a0e0242"},
    examples=frozenset({"Petra", "Halvard", "Suli"}),
    settings={"consolidation": {"enabled": True, "every_turns": 2}},
    in_presets={
        "consolidation.enabled": (False, False, False, True, True, True),
        "consolidation.every_turns": (5, 5, 5, 1, 5, 5),
    },
)
