"""A worker process that is asked to stop lets its calls of the model end, for as long as its grace time lasts."""

import asyncio
import signal
import time
from asyncio.subprocess import PIPE, Process

import httpx
import pytest

from app.dispatcher import RELEASE_S, SIGN_OFF_S
from app.kit.db import Database
from app.kit.settings import Settings
from tests.book import due_rows, statuses
from tests.deploy.test_deploy import SERVICES
from tests.scripted_model import ScriptedModel
from tests.talk import append, talk
from tests.worker_processes import PATIENCE_S, Workers, until_all_is_made

CLOSING_S = 3
"""More than a worker needs to close its connections."""


async def start(workers: Workers, **environment: str) -> Process:
    """Start a worker, and wait until it says that it starts."""
    process = await workers.start(stderr=PIPE, MEMOBOOK_LOG_LEVEL="info", **environment)
    await says(process, b"the worker starts")
    return process


async def stop(process: Process) -> None:
    """Send SIGTERM, and wait until the worker says that it stops."""
    process.send_signal(signal.SIGTERM)
    await says(process, b"the worker stops")


async def says(process: Process, text: bytes) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while text not in (line := await process.stderr.readline()):
            assert line, "it ended"


async def ended(process: Process) -> int:
    async with asyncio.timeout(PATIENCE_S):
        await process.communicate()
    assert process.returncode is not None
    return process.returncode


async def test_a_stopping_worker_saves_what_its_call_returns(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel
) -> None:
    gate = model.hold(1)
    await append(api, talk(1, 16))
    worker = await start(workers, MEMOBOOK_LLM_CONCURRENCY="1")
    await gate.reached()
    await stop(worker)
    gate.release()
    assert await ended(worker) == 0
    assert sorted(await statuses(api)) == ["pending", "ready"], "it claims nothing more"
    assert len(model.calls) == 1


async def test_a_call_that_outlasts_the_grace_time_is_given_back(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    gate = model.hold(1)
    await append(api, talk(1, 8))
    worker = await start(workers, MEMOBOOK_STOP_GRACE_S="1")
    await gate.reached()
    began_s = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert await ended(worker) == 0
    assert time.monotonic() - began_s >= 1
    (row,) = await due_rows(database, tenant)
    assert (row["attempts"], row["lease"], row["error"]) == (0, None, None)
    await workers.start()
    await until_all_is_made(database, tenant)
    assert await statuses(api) == ["ready"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_a_worker_at_once(
    api: httpx.AsyncClient,
    workers: Workers,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    number: signal.Signals,
) -> None:
    gate = model.hold(1)
    await append(api, talk(1, 8))
    worker = await start(workers, MEMOBOOK_STOP_GRACE_S="3600")
    await gate.reached()
    await stop(worker)
    worker.send_signal(number)
    assert await ended(worker) == 0
    (row,) = await due_rows(database, tenant)
    assert (row["attempts"], row["lease"]) == (0, None)


async def test_an_idle_worker_stops_at_once(workers: Workers, nothing_due: None) -> None:
    worker = await start(workers, MEMOBOOK_STOP_GRACE_S="3600")
    await stop(worker)
    assert await ended(worker) == 0


def test_compose_waits_for_longer_than_the_grace_time() -> None:
    waits_s = float(SERVICES["worker"]["stop_grace_period"].removesuffix("s"))
    grace_s: float = Settings.model_fields["stop_grace_s"].default
    assert grace_s + SIGN_OFF_S + RELEASE_S + CLOSING_S <= waits_s
