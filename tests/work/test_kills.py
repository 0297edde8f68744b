"""Kill -9 and after: workers as real processes, killed at every moment of a memo, and Valkey under them."""

import tempfile
from pathlib import Path

import httpx
import psutil

from app.kit.db import Database
from app.kit.ids import chat_key
from app.local.directory import DataDirectory
from app.local.servers import running_servers
from tests.background import holding
from tests.book import book, change, due_rows
from tests.scripted_model import ScriptedModel
from tests.talk import append, talk
from tests.worker_processes import Workers, kill, until, until_all_is_made


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
    api: httpx.AsyncClient,
    workers: Workers,
    model: ScriptedModel,
    database: Database,
    database_url: str,
    tenant: str,
) -> None:
    await append(api, talk(1, 8))
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, 'c')}' FOR UPDATE"
    async with holding(database_url, lock):  # for longer than a transaction of the service may be idle
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
