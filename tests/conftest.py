"""Real servers for the tests: PostgreSQL and Valkey from their wheels, one pair for each process of the run.

A test that writes gets a tenant of its own in the process's database, so nothing has to be rolled back and
commits are real. A test that needs a service without any key gets a database of its own.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from hypothesis import settings

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.local.directory import DataDirectory
from app.local.running import Urls
from app.local.servers import running_servers
from app.main import create_app
from app.migrate import migrate
from app.pipeline import open_database
from app.registry import LAYERS
from tests.revision_watch import watch_revisions
from tests.scripted_model import ScriptedModel
from tests.worker_processes import Workers

settings.register_profile("memobook", deadline=None)  # the time that a test takes is no verdict
settings.load_profile("memobook")

pytest.register_assert_rewrite("tests.oracle")  # its checks are not in files named test_*.py

NOON = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
SETTLE_S = 2.0
TEMPLATE = "template_memobook"


@pytest.fixture(scope="session")
async def servers() -> AsyncIterator[Urls]:
    """PostgreSQL, without waiting for the disk, and Valkey."""
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        directory = DataDirectory(Path(path) / "data")
        directory.make()
        async with running_servers(
            directory,
            database_url=None,
            redis_url=None,
            postgres_settings={"fsync": "off", "synchronous_commit": "off", "max_connections": "200"},
            say=lambda _line: None,
        ) as urls:
            yield urls


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
async def template(servers: Urls) -> str:
    """The name of a migrated database that others are cloned from."""
    await _run(servers, f"CREATE DATABASE {TEMPLATE}")
    migrate_url = _named(servers.database_url, TEMPLATE)
    await asyncio.to_thread(migrate, sqlalchemy_url(migrate_url))
    await watch_revisions(migrate_url)
    return TEMPLATE


@pytest.fixture(scope="session")
async def database_url(servers: Urls, template: str) -> str:
    """The database of this process of the run; it has a key, so every request needs one."""
    return await _clone(servers, template)


@pytest.fixture
async def fresh_database_url(servers: Urls, template: str) -> str:
    """A database of the test's own, without any key."""
    return await _clone(servers, template)


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own."""
    return f"t-{uuid4().hex}"


@pytest.fixture
def clock() -> SteppedClock:
    """A clock that shows noon until the test steps it."""
    return SteppedClock(NOON)


@pytest.fixture
async def database(database_url: str, clock: SteppedClock) -> AsyncIterator[Database]:
    """The database with everything that follows from a change."""
    url = sqlalchemy_url(database_url)
    opened = open_database(url, LAYERS, clock=clock, settle_s=SETTLE_S, notify=lambda: None, pool_size=8)
    yield opened
    await opened.close()


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


@pytest.fixture
async def app(database_url: str, servers: Urls, clock: SteppedClock) -> AsyncIterator[FastAPI]:
    """The application on the process's database and the test's clock."""
    given = Settings(database_url=database_url, redis_url=servers.redis_url, settle_s=SETTLE_S, _env_file=None)
    made = create_app(given, clock=clock)
    yield made
    await made.state.rate_limiter.close()
    await made.state.recall_memory.close()
    await made.state.notifier.close()
    await made.state.database.close()


@pytest.fixture
async def api(app: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the tenant's key."""
    async with client_of(app, key) as client:
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
async def nothing_due(database: Database) -> None:
    """Forget what earlier tests left due: a dispatcher works for all tenants of its database."""
    async with database.raw() as connection:
        await connection.execute("DELETE FROM work")


@pytest.fixture
async def dispatcher(
    database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> AsyncIterator[Dispatcher]:
    """A worker's loop that makes memos with the scripted model; `drain` makes what is ripe."""
    client = ModelClient(model.base_url, "scripted", timeout_s=5, concurrency=8, max_attempts=1)
    yield Dispatcher(JobContext(database, clock, client), LAYERS, slots=8, poll_s=30)
    await client.aclose()


@pytest.fixture
def quoting_dispatcher(database: Database, clock: SteppedClock, nothing_due: None) -> Dispatcher:
    """A worker's loop without a model."""
    return Dispatcher(JobContext(database, clock), LAYERS, slots=8, poll_s=30)


@pytest.fixture
async def workers(database_url: str, model: ScriptedModel, nothing_due: None) -> AsyncIterator[Workers]:
    """Workers as processes of their own; they end with the test."""
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


def sqlalchemy_url(url: str) -> str:
    """The same database for SQLAlchemy."""
    return "postgresql+asyncpg://" + url.split("://", 1)[1]


async def _clone(servers: Urls, template: str) -> str:
    name = f"db_{uuid4().hex}"
    await _run(servers, f"CREATE DATABASE {name} TEMPLATE {template}")
    return _named(servers.database_url, name)


def _named(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    head, query = url.split("?", 1)
    return f"{head.rsplit('/', 1)[0]}/{name}?{query}"


async def _run(servers: Urls, statement: str) -> None:
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
