"""Kill -9 and after: workers as real processes, killed at every moment of a memo, and Valkey under them."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key
from app.local.directory import DataDirectory
from app.local.servers import running_servers
from tests.background import locked_chat
from tests.book import book, change, due_rows
from tests.scripted_model import ScriptedModel
from tests.talk import append, talk

PATIENCE_S = 40
"""A dead worker's lease lasts 15 seconds; then the next look finds what it held."""

PROGRAM = (sys.executable, "-m", "app.cli", "worker")


class Workers:
    """Workers as processes of their own, all on the test's database and model."""

    def __init__(self, environment: dict[str, str], stack: AsyncExitStack) -> None:
        self._environment = environment
        self._stack = stack

    async def start(self, *, stderr: int | None = None, **environment: str) -> asyncio.subprocess.Process:
        """Start one; it is killed in the end, if it still runs."""
        process = await asyncio.create_subprocess_exec(*PROGRAM, env=self._environment | environment, stderr=stderr)

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await process.wait()

        self._stack.push_async_callback(end)
        return process


@pytest.fixture
async def workers(database_url: str, model: ScriptedModel, nothing_due: None) -> AsyncIterator[Workers]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "MEMOBOOK_DATABASE_URL": database_url,
        "MEMOBOOK_LLM_BASE_URL": model.base_url,
        "MEMOBOOK_LLM_MODEL": "scripted",
        "MEMOBOOK_SWEEP_S": "1",
        "MEMOBOOK_LOG_LEVEL": "error",
    }
    async with AsyncExitStack() as stack:
        yield Workers(environment, stack)


async def until(database: Database, tenant: str, question: str) -> None:
    """Ask about the chat, whose key is $1, until the answer is true."""
    async with asyncio.timeout(PATIENCE_S), database.raw() as connection:
        while not await connection.fetchval(f"SELECT {question}, pg_sleep(0.02)", chat_key(tenant, "c")):
            pass


async def until_all_is_made(database: Database, tenant: str) -> None:
    await until(database, tenant, "NOT EXISTS (SELECT FROM work WHERE owner_key = $1)")


async def kill(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.wait()


async def assert_one_memo_for_each_batch(api: httpx.AsyncClient, batches: int) -> None:
    memos = await book(api)
    assert [(memo["first_seq"], memo["status"]) for memo in memos] == [(8 * n + 1, "ready") for n in range(batches)]


async def test_a_worker_killed_during_the_call_is_replaced(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    gate = model.hold(2)
    await append(api, talk(1, 16))
    first = await workers.start()
    await gate.reached(2)
    await kill(first)
    assert [row["attempts"] for row in await due_rows(database, tenant)] == [1, 1]
    await workers.start()
    await until_all_is_made(database, tenant)
    await assert_one_memo_for_each_batch(api, 2)
    assert [memo["attempts"] for memo in await book(api)] == [2, 2]
    assert len(model.calls) == 4


async def test_a_worker_killed_before_its_write_leaves_no_partial_row(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    async with locked_chat(database, tenant):
        first = await workers.start()
        await until(
            database,
            tenant,
            "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND $1::uuid IS NOT NULL)",
        )
        await kill(first)
    (memo,) = await book(api)
    assert (memo["status"], memo["attempts"]) == ("pending", 1)
    await change(database, tenant, "work", "leased_until = clock_timestamp()")  # the wait for it is tested above
    await workers.start()
    await until_all_is_made(database, tenant)
    await assert_one_memo_for_each_batch(api, 1)


async def test_a_worker_killed_after_its_write_leaves_no_work(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    first = await workers.start()
    await until_all_is_made(database, tenant)
    await kill(first)
    await append(api, talk(9, 16))
    await workers.start()
    await until_all_is_made(database, tenant)
    await assert_one_memo_for_each_batch(api, 2)
    assert len(model.calls) == 2


async def test_repeatedly_killed_workers_make_each_memo_once(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 240))
    for _ in range(3):
        gate = model.hold()
        doomed = await workers.start()
        await gate.reached(4)
        gate.release()
        await gate.answered()
        await kill(doomed)  # it reads, writes or asks again: who knows
        await change(database, tenant, "work", "leased_until = NULL, lease = NULL")
    await workers.start()
    await until_all_is_made(database, tenant)
    await assert_one_memo_for_each_batch(api, 30)


async def test_valkey_killed_under_a_worker_loses_no_memo(
    api: httpx.AsyncClient, workers: Workers, database: Database, tenant: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        directory = DataDirectory(Path(path) / "data")
        directory.make()
        async with running_servers(
            directory, database_url="postgresql://not.used", redis_url=None, postgres_settings={}, say=lambda _: None
        ) as urls:
            await append(api, talk(1, 8))
            worker = await workers.start(MEMOBOOK_REDIS_URL=urls.redis_url)
            await until_all_is_made(database, tenant)
            socket = urls.redis_url.removeprefix("unix://")
            valkey = next(p for p in psutil.Process().children() if socket in " ".join(p.cmdline()))
            valkey.kill()
            await append(api, talk(9, 24))
            await until_all_is_made(database, tenant)
            assert worker.returncode is None
    await append(api, talk(25, 32))
    await until_all_is_made(database, tenant)
    assert worker.returncode is None
    await assert_one_memo_for_each_batch(api, 4)
