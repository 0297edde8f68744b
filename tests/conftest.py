"""Real servers for the tests: PostgreSQL and Valkey from their wheels, one pair for each process of the run.

A test that writes gets a tenant of its own in the process's database, so nothing has to be rolled back and
commits are real. A test that needs a service without any key gets a database of its own.
"""

import asyncio
import gc
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from redis.asyncio import Redis

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database, open_connections
from app.kit.idle_connections import IdleConnections
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.layers.layer import Layer
from app.local.directory import DataDirectory
from app.local.running import Urls
from app.local.servers import running_servers
from app.main import create_app
from app.migrate import migrate
from app.pipeline import open_database
from app.registry import LAYERS
from tests import run_order
from tests.databases import clone, run, set_name
from tests.examples import pytest_configure as pytest_configure
from tests.facts.asking import begin
from tests.layers.sample import Stage
from tests.memories.asking import Learner
from tests.revision_watch import watch_revisions
from tests.scripted_model import ScriptedModel
from tests.slowness import ALLOCATOR, SLOWNESS
from tests.talk import append, talk
from tests.worker_processes import Workers

pytest.register_assert_rewrite("tests.oracle")  # its checks are not in files named test_*.py

PROJECT = Path(__file__).parent.parent
"""The folder of the project."""

NOON = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
SETTLE_S = 2.0
DATABASE_POOL = 8
APP_POOL = int(Settings.model_fields["database_pool"].default)
TEMPLATE = "template_memobook"
ROOM_BYTES = 12 * 2**30
"""What the files of all servers of a run may need, in memory instead of on the disk."""

POSTGRES_SETTINGS = {
    "max_connections": "200",
    # Nothing is kept, so nothing has to be safe on the disk.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Its background processes are idle: together they need more time than the statements of most tests.
    "checkpoint_timeout": "1d",
    "max_wal_size": "2GB",
    "bgwriter_delay": "10s",
    "bgwriter_lru_maxpages": "0",
    "wal_writer_delay": "10s",
    "io_method": "sync",
    "max_logical_replication_workers": "0",
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collections, which took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude the imported modules and the tests from garbage collections, as the service does when it has started."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files into the order of tests/run_order.py."""
    files: dict[str, bool] = {}
    for item in items:
        files[file_of(item.nodeid)] = files.get(file_of(item.nodeid), False) or needs_servers(item)
    numbers = {file: number for number, file in enumerate(run_order.order_files(files, run_order.SEED))}
    items.sort(key=lambda item: numbers[file_of(item.nodeid)])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave a test out if the time of `make check` is over and the test may be left out."""
    if run_order.is_left_out(file_of(item.nodeid), needs_servers=needs_servers(item), now_s=time.time()):
        pytest.skip(run_order.LEFT_OUT)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what repeats the order, and list the files with tests that were left out, to which pytest gives one line."""
    terminalreporter.line(f"TESTS_ORDER={run_order.SEED} (slowness {SLOWNESS:.1f})")
    skipped = terminalreporter.stats.get("skipped", [])
    files = Counter(file_of(one.nodeid) for one in skipped if run_order.LEFT_OUT in str(one.longrepr))
    if files:
        terminalreporter.section(f"{files.total()} tests were left out")
        for file, count in sorted(files.items()):
            terminalreporter.line(f"{count:5} {file}")


def file_of(nodeid: str) -> str:
    """The path of a test's file, relative to the project."""
    return nodeid.split("::", 1)[0]


def needs_servers(item: pytest.Item) -> bool:
    """Whether a test uses PostgreSQL and Valkey."""
    return isinstance(item, pytest.Function) and "servers" in item.fixturenames


def roomy_memory() -> str | None:
    """Return the folder that Linux keeps in memory, if it has room for the databases; None for the default folder."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES
    return str(memory) if has_room else None


@pytest.fixture(scope="session")
async def servers() -> AsyncIterator[Urls]:
    """PostgreSQL, without waiting for the disk, and Valkey."""
    with tempfile.TemporaryDirectory(prefix="mb-", dir=roomy_memory()) as path:
        directory = DataDirectory(Path(path) / "data")
        directory.make()
        async with running_servers(
            directory,
            database_url=None,
            redis_url=None,
            postgres_settings=POSTGRES_SETTINGS,
            say=lambda _line: None,
        ) as urls:
            async with Redis.from_url(urls.redis_url) as client:
                await client.config_set("hz", 1)  # it wakes up 10 times a second otherwise
            yield urls


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
async def template(servers: Urls) -> str:
    """The name of a migrated database that others are cloned from."""
    await run(servers, f"CREATE DATABASE {TEMPLATE}")
    migrate_url = set_name(servers.database_url, TEMPLATE)
    await asyncio.to_thread(migrate, sqlalchemy_url(migrate_url))
    await watch_revisions(migrate_url)
    return TEMPLATE


@pytest.fixture(scope="session")
async def database_url(servers: Urls, template: str) -> str:
    """The database of this process of the run; it has a key, so every request needs one."""
    return await clone(servers, template)


@pytest.fixture
async def fresh_database_url(servers: Urls, template: str) -> str:
    """A database of the test's own, without any key."""
    return await clone(servers, template)


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own."""
    return f"t-{uuid4().hex}"


@pytest.fixture
def clock() -> SteppedClock:
    """A clock that shows noon until the test steps it."""
    return SteppedClock(NOON)


@pytest.fixture(scope="session")
async def opened_connections(database_url: str) -> AsyncIterator[IdleConnections]:
    """Connections to the database of this process of the run, for all its tests.

    To open a connection and to compile and plan its statements takes longer than most tests do.
    """
    opened = open_connections(sqlalchemy_url(database_url), pool_size=DATABASE_POOL + APP_POOL)
    yield opened
    await opened.close()


@pytest.fixture
def connections(opened_connections: IdleConnections) -> Iterator[IdleConnections]:
    """The same connections. After the test, none of them may be in a transaction."""
    yield opened_connections
    assert not any(one.is_in_transaction() for one in opened_connections.list_idle())


@pytest.fixture
def layers() -> tuple[Layer, ...]:
    """The layers of the database and of the application; a file can add its own."""
    return LAYERS


@pytest.fixture
def database(
    database_url: str, layers: tuple[Layer, ...], connections: IdleConnections, clock: SteppedClock
) -> Database:
    """The database with everything that follows from a change."""
    return open_database(
        sqlalchemy_url(database_url),
        layers,
        clock=clock,
        settle_s=SETTLE_S,
        notify=lambda: None,
        pool_size=DATABASE_POOL,
        connections=connections,
    )


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Connection]:
    """A connection to the database."""
    async with database.raw() as raw:
        yield raw


@pytest.fixture
async def key(database: Database, tenant: str) -> str:
    """A key of the test's tenant that may read and write."""
    async with database.unit_of_work() as db_session:
        return (await create_key(db_session, tenant, ["read", "write"], NOON)).text


@pytest.fixture(scope="session")
def given_settings(database_url: str, servers: Urls) -> Settings:
    """The settings of the application."""
    return Settings(database_url=database_url, redis_url=servers.redis_url, settle_s=SETTLE_S, _env_file=None)


@pytest.fixture
async def app(
    given_settings: Settings, layers: tuple[Layer, ...], connections: IdleConnections, clock: SteppedClock
) -> AsyncIterator[FastAPI]:
    """The application on the process's database and the test's clock."""
    made = create_app(given_settings, clock=clock, layers=layers, connections=connections)
    yield made
    await close_app(made)


async def close_app(made: FastAPI) -> None:
    """Close the connections of an application that no server has started."""
    await made.state.rate_limiter.close()
    await made.state.recall_memory.close()
    await made.state.notifier.close()
    await made.state.database.close()


@pytest.fixture
async def api(app: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the tenant's key."""
    async with client_of(app, key) as client:
        yield client


@pytest.fixture
async def admin(app: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that may do everything, of the test's tenant."""
    async with client_with(app, database, tenant, "read", "write", "admin") as client:
        yield client


@asynccontextmanager
async def client_with(app: FastAPI, database: Database, tenant: str, *scopes: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a new key of the tenant that has these scopes."""
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, tenant, scopes, NOON)
    async with client_of(app, key.text) as client:
        yield client


@asynccontextmanager
async def client_of(app: FastAPI, key: str | None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application, on loopback as it sees it."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    """A scripted model on loopback."""
    async with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
async def replied(api: httpx.AsyncClient) -> None:
    """The chat `c` of the user mira, with a message and its reply."""
    await begin(api)
    await append(api, talk(1, 2))


@pytest.fixture
def learn(database: Database, tenant: str, clock: SteppedClock) -> Learner:
    """Learns from messages as a job does."""
    return Learner(database, tenant, clock)


@pytest.fixture
async def nothing_due(database: Database) -> None:
    """Forget what earlier tests left due: a dispatcher works for all tenants of its database."""
    async with database.raw() as connection:
        await connection.execute("DELETE FROM work")


@pytest.fixture
async def dispatcher(
    database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> AsyncIterator[Dispatcher]:
    """A worker's loop that makes memos with the scripted model; `drain` makes what is ripe."""
    client = ModelClient(model.base_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=8, max_attempts=1)
    yield Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=3_600)
    await client.aclose()


@pytest.fixture
def stage(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel) -> Stage:
    """A service with a worker and a scripted model."""
    return Stage(api, dispatcher, clock, model)


@pytest.fixture
def quoting_dispatcher(database: Database, clock: SteppedClock, nothing_due: None) -> Dispatcher:
    """A worker's loop without a model."""
    return Dispatcher(JobContext(database, clock), LAYERS, slots=8, poll_s=3_600)


@pytest.fixture
async def workers(database_url: str, model: ScriptedModel, nothing_due: None) -> AsyncIterator[Workers]:
    """Workers as processes of their own; they end with the test."""
    environment = {
        **ALLOCATOR,
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(PROJECT),
        "MEMOBOOK_DATABASE_URL": database_url,
        "MEMOBOOK_LLM_BASE_URL": model.base_url,
        "MEMOBOOK_LLM_MODEL": "scripted",
        "MEMOBOOK_POLL_S": "1",
        "MEMOBOOK_LOG_LEVEL": "error",
    }
    async with AsyncExitStack() as stack:
        yield Workers(environment, stack)


def sqlalchemy_url(url: str) -> str:
    """The same database for SQLAlchemy."""
    return "postgresql+asyncpg://" + url.split("://", 1)[1]
