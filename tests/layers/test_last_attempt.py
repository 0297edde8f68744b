"""A cut that waits is judged again when a job ends, also when its last attempt fails because its source changed."""

import asyncio

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS
from app.layers.layer import find_layer
from app.registry import LAYERS
from tests.layers.sample import LastAttempt, Stage
from tests.layers.samples import SAMPLES
from tests.scenes.sample import due_scene
from tests.scenes.story import telling as telling_scenes
from tests.scripted_model import ScriptedModel

CHANGED = "the source of the item changed while the item was being made"

CASES: dict[tuple[str, str], LastAttempt] = {
    (layer, prefix): case for layer, sample in SAMPLES.items() for prefix, case in sample.last_attempts.items()
}
"""By layer and prefix of the job; `test_samples.py` compares them with the registered jobs."""


@pytest.mark.parametrize(("layer", "prefix"), sorted(CASES), ids=lambda part: part or "*")
async def test_a_waiting_cut_is_judged_after_the_last_attempt(
    layer: str,
    prefix: str,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    case, chat = CASES[layer, prefix], chat_key(tenant, "c")
    stage = Stage(api, dispatcher, clock, model)
    await case.make_due(stage)
    async with database.raw() as connection:
        await connection.execute(
            "DELETE FROM work WHERE owner_key = $1 AND NOT (layer = $2 AND key LIKE $3)", chat, layer, case.key
        )
        await connection.execute(
            "UPDATE work SET attempts = $2, run_after = $3 WHERE owner_key = $1", chat, MAX_ATTEMPTS - 1, clock()
        )
        await connection.execute("UPDATE chats SET cut_waits = true WHERE chat_key = $1", chat)
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    async with database.raw() as connection:
        await connection.execute(f"{case.change} WHERE chat_key = $1", chat)
    gate.release()
    await draining
    async with database.raw() as connection:
        work = await connection.fetchrow(
            "SELECT key, error, failed_at FROM work WHERE owner_key = $1 AND layer = $2 AND key LIKE $3",
            *(chat, layer, case.key),
        )
        waits = await connection.fetchval("SELECT cut_waits FROM chats WHERE chat_key = $1", chat)
    assert work is not None
    assert find_layer(LAYERS, layer).job_for(work["key"]).prefix == prefix
    assert (work["error"], work["failed_at"] is not None) == (CHANGED, True)
    assert waits is False


async def test_a_waiting_cut_is_judged_after_scenes_were_hidden(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    stage = Stage(api, dispatcher, clock, model)
    await due_scene(stage)
    chat = chat_key(tenant, "c")
    async with database.raw() as connection:
        await connection.execute("DELETE FROM work WHERE owner_key = $1 AND key <> 'hide'", chat)
        await connection.execute("UPDATE chats SET cut_waits = true WHERE chat_key = $1", chat)
    await stage.settle(telling_scenes())
    async with database.raw() as connection:
        assert await connection.fetchval("SELECT cut_waits FROM chats WHERE chat_key = $1", chat) is False
