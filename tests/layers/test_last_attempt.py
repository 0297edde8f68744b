"""The last attempt of a job: a failure is final, and a source that changed meanwhile is none."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS
from app.layers.layer import find_layer
from app.registry import LAYERS
from tests.layers.sample import LastAttempt, Stage
from tests.layers.samples import SAMPLES
from tests.scenes.sample import due_scene
from tests.scenes.story import story_model as scene_model
from tests.scripted_model import refuses

CASES: dict[tuple[str, str], LastAttempt] = {
    (layer, prefix): case for layer, sample in SAMPLES.items() for prefix, case in sample.last_attempts.items()
}
"""By layer and prefix of the job; `test_samples.py` compares them with the registered jobs."""


BY_CASE = pytest.mark.parametrize(("layer", "prefix"), sorted(CASES), ids=lambda part: part or "*")


@BY_CASE
async def test_a_source_that_changed_costs_no_attempt(
    layer: str, prefix: str, stage: Stage, database: Database, tenant: str
) -> None:
    case, chat = CASES[layer, prefix], chat_key(tenant, "c")
    await _make_last(stage, database, chat, layer, case)
    gate = stage.model.hold(1)
    draining = asyncio.create_task(stage.dispatcher.drain())
    await gate.reached()
    async with database.raw() as connection:
        await connection.execute(f"{case.change} WHERE chat_key = $1", chat)
    gate.release()
    await draining
    work, waits = await _read(database, chat, layer, case)
    assert find_layer(LAYERS, layer).job_for(work["key"]).prefix == prefix
    assert (work["attempts"], work["error"], work["failed_at"], work["lease"]) == (0, None, None, None)
    assert 1 <= (work["run_after"] - stage.clock()).total_seconds() <= 60
    assert waits, "the item is still due, so the cut goes on waiting"


@BY_CASE
async def test_a_waiting_cut_is_judged_after_the_last_attempt(
    layer: str, prefix: str, stage: Stage, database: Database, tenant: str
) -> None:
    case, chat = CASES[layer, prefix], chat_key(tenant, "c")
    await _make_last(stage, database, chat, layer, case)
    stage.model.otherwise = refuses(400)
    await stage.dispatcher.drain()
    work, waits = await _read(database, chat, layer, case)
    assert (work["attempts"], work["failed_at"] is not None) == (MAX_ATTEMPTS, True)
    assert waits is False


async def test_a_waiting_cut_is_judged_after_scenes_were_hidden(stage: Stage, database: Database, tenant: str) -> None:
    await due_scene(stage)
    chat = chat_key(tenant, "c")
    async with database.raw() as connection:
        await connection.execute("DELETE FROM work WHERE owner_key = $1 AND key <> 'hide'", chat)
        await connection.execute("UPDATE chats SET cut_waits = true WHERE chat_key = $1", chat)
    await stage.settle(scene_model())
    async with database.raw() as connection:
        assert await connection.fetchval("SELECT cut_waits FROM chats WHERE chat_key = $1", chat) is False


async def _make_last(stage: Stage, database: Database, chat: UUID, layer: str, case: LastAttempt) -> None:
    """Leave only the case's item due, with one attempt left, and let a cut wait."""
    await case.make_due(stage)
    async with database.raw() as connection:
        await connection.execute(
            "DELETE FROM work WHERE owner_key = $1 AND NOT (layer = $2 AND key LIKE $3)", chat, layer, case.key
        )
        await connection.execute(
            "UPDATE work SET attempts = $2, run_after = $3 WHERE owner_key = $1", chat, MAX_ATTEMPTS - 1, stage.clock()
        )
        await connection.execute("UPDATE chats SET cut_waits = true WHERE chat_key = $1", chat)


async def _read(database: Database, chat: UUID, layer: str, case: LastAttempt) -> tuple[asyncpg.Record, bool]:
    """Return the case's item and whether a cut waits."""
    async with database.raw() as connection:
        work = await connection.fetchrow(
            "SELECT * FROM work WHERE owner_key = $1 AND layer = $2 AND key LIKE $3", chat, layer, case.key
        )
        waits = await connection.fetchval("SELECT cut_waits FROM chats WHERE chat_key = $1", chat)
    assert work is not None
    return work, waits
