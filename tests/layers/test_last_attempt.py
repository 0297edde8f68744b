"""A cut that waits is judged again when a job ends, also when its last attempt fails because its source changed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS
from app.layers.layer import find_layer
from app.registry import LAYERS
from app.sweep import Sweep
from tests.diary.diaries import KAI, keep_diary, save
from tests.scenes.story import BY_HAND
from tests.scenes.story import telling as telling_scenes
from tests.scripted_model import Reply, Request, ScriptedModel
from tests.summary.folds import OWN_FOLDS, counting_fold
from tests.talk import append, edit, get, ok, put, talk

CHANGED = "its source changed while it was being made"


@dataclass(frozen=True)
class Stage:
    api: httpx.AsyncClient
    sweep: Sweep
    clock: SteppedClock
    model: ScriptedModel

    async def settle(self, answer: Callable[[Request], str | Reply]) -> None:
        """Make everything that is due with this answer of the model."""
        self.model.otherwise = answer
        self.clock.step(5)
        await self.sweep.drain()

    async def close_scene(self, seq: int) -> None:
        ok(await self.api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)


async def due_memo(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))


async def due_summary(stage: Stage) -> None:
    folds = {"summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2}}
    await put(stage.api, settings=OWN_FOLDS | folds | {"history": {"grow_messages": 40, "edges": "folds"}})
    stage.model.otherwise = counting_fold
    await append(stage.api, talk(1, 9))


async def due_diary_fold(stage: Stage) -> None:
    await keep_diary(stage.api, KAI, lines=2)
    stage.model.otherwise = lambda _request: "I remember the lamps, and the sea."
    await append(stage.api, talk(1, 2))
    for n in range(3):
        await save(stage.api, f"I lit lamp number {n} for Mira tonight.")


async def due_entry(stage: Stage) -> None:
    await keep_diary(stage.api, KAI, auto_write_turns=1)
    stage.model.otherwise = lambda _request: "I told Mira about the lamp, and I meant it."
    await append(stage.api, talk(1, 2))


async def due_stale_entry(stage: Stage) -> None:
    await due_entry(stage)
    await stage.settle(lambda _request: "I told Mira about the lamp, and I meant it.")
    await edit(stage.api, "m1", content="The lamp is out.")


async def due_look(stage: Stage) -> None:
    await put(stage.api, settings={"preset": "scenes"})
    stage.model.otherwise = telling_scenes(lambda possible: possible[0])
    await append(stage.api, talk(1, 14))


async def due_scene(stage: Stage) -> None:
    await put(stage.api, settings=BY_HAND)
    stage.model.otherwise = telling_scenes()
    await append(stage.api, talk(1, 8))
    await stage.close_scene(4)


async def due_recap(stage: Stage) -> None:
    await due_scene(stage)
    await stage.settle(telling_scenes())
    scene = (await get(stage.api, "/scenes"))["items"][0]
    ok(await stage.api.patch(f"/v1/chats/c/scenes/{scene['id']}", json={"recap": "# Outcomes\n- Kai stayed."}), 200)


@dataclass(frozen=True)
class Case:
    """How the work of a job becomes due, which key it has, and what changes its source behind the service's back."""

    key: str
    make_due: Callable[[Stage], Awaitable[None]]
    change: str


CASES: dict[tuple[str, str], Case] = {
    ("memos", ""): Case("%", due_memo, "UPDATE memos SET current_hash = '\\x00'"),
    ("summary", ""): Case("fold", due_summary, "UPDATE messages SET digest = '\\x00'"),
    ("diary", "fold:"): Case("fold:%", due_diary_fold, "UPDATE diary_entries SET content = content || ' Yes.'"),
    ("diary", "write:"): Case("write:%", due_entry, "UPDATE messages SET digest = '\\x00'"),
    ("diary", "entry:"): Case("entry:%", due_stale_entry, "UPDATE diary_entries SET current_hash = '\\x00'"),
    ("scenes", "detect"): Case("detect", due_look, "UPDATE messages SET excluded = true"),
    ("scenes", ""): Case("%-%-%", due_scene, "UPDATE scenes SET current_hash = '\\x00'"),
    ("scenes", "recap"): Case("recap", due_recap, "UPDATE scenes SET recap = recap || ' Yes.'"),
}
JOBS = {(layer.name, job.prefix) for layer in LAYERS for job in layer.jobs}
WITHOUT_MODEL = {("scenes", "hide")}
"""It reads and writes in one transaction, so its source cannot change in between."""


def test_every_registered_job_has_a_case() -> None:
    assert set(CASES) | WITHOUT_MODEL == JOBS


@pytest.mark.parametrize(("layer", "prefix"), sorted(CASES), ids=lambda part: part or "*")
async def test_a_waiting_cut_is_judged_after_the_last_attempt(
    layer: str,
    prefix: str,
    api: httpx.AsyncClient,
    sweep: Sweep,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    case, chat = CASES[layer, prefix], chat_key(tenant, "c")
    stage = Stage(api, sweep, clock, model)
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
    draining = asyncio.create_task(sweep.drain())
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
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock, model: ScriptedModel, database: Database, tenant: str
) -> None:
    stage: Any = Stage(api, sweep, clock, model)
    await due_scene(stage)
    chat = chat_key(tenant, "c")
    async with database.raw() as connection:
        await connection.execute("DELETE FROM work WHERE owner_key = $1 AND key <> 'hide'", chat)
        await connection.execute("UPDATE chats SET cut_waits = true WHERE chat_key = $1", chat)
    await stage.settle(telling_scenes())
    async with database.raw() as connection:
        assert await connection.fetchval("SELECT cut_waits FROM chats WHERE chat_key = $1", chat) is False
