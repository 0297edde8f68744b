"""An application and a worker with a scripted embedding model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.embeddings.client import EmbeddingClient
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from app.pipeline import open_database
from app.registry import LAYERS
from tests.background import settle
from tests.conftest import SETTLE_S, client_of, sqlalchemy_url
from tests.facts.asking import begin
from tests.meaning.asking import mean, rest
from tests.memories.asking import Learner
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.search.finding import message
from tests.talk import append


@pytest.fixture
async def model(database: Database) -> AsyncIterator[ScriptedEmbeddings]:
    """The embedding model; the database knows no other one."""
    async with database.raw() as connection:
        await connection.execute("TRUNCATE embedding_models, vectors, text_vectors")
    async with ScriptedEmbeddings(dimension=4) as server:
        server.otherwise = mean
        yield server
    async with database.raw() as connection:
        await connection.execute("TRUNCATE embedding_models, vectors, text_vectors")


@pytest.fixture
async def api(
    database_url: str, servers: Urls, clock: SteppedClock, model: ScriptedEmbeddings, key: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with this model, which waits until a query has its vector."""
    settings = settings_of(database_url, servers, model, query_timeout_s=10)
    async with serving(settings, clock, key) as client:
        yield client


@pytest.fixture
async def impatient_api(
    database_url: str, servers: Urls, clock: SteppedClock, model: ScriptedEmbeddings, key: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another application with this model, for queries to which the model does not answer."""
    async with serving(settings_of(database_url, servers, model, query_timeout_s=0.3), clock, key) as client:
        yield client


def settings_of(database_url: str, servers: Urls, model: ScriptedEmbeddings, *, query_timeout_s: float) -> Settings:
    """The settings of an application with this model."""
    return Settings(
        database_url=database_url,
        redis_url=servers.redis_url,
        settle_s=SETTLE_S,
        embeddings_base_url=model.base_url,
        embeddings_model="scripted",
        embeddings_query_timeout_s=query_timeout_s,
        _env_file=None,
    )


@asynccontextmanager
async def serving(settings: Settings, clock: SteppedClock, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with these settings."""
    app = create_app(settings, clock=clock)
    async with client_of(app, key) as client:
        yield client
    state = app.state
    for one in (state.rate_limiter, state.recall_memory, state.notifier, state.database):
        await one.close()
    await state.embedder.aclose()


@pytest.fixture
async def of_worker(database_url: str, clock: SteppedClock) -> AsyncIterator[Database]:
    """The database as a worker with a model opens it."""
    url = sqlalchemy_url(database_url)
    database = open_database(
        url, LAYERS, clock=clock, settle_s=SETTLE_S, notify=lambda: None, pool_size=10, with_vectors=True
    )
    yield database
    await database.close()


@pytest.fixture
def learn(of_worker: Database, tenant: str, clock: SteppedClock) -> Learner:
    """Learns from messages as a job of that worker does."""
    return Learner(of_worker, tenant, clock)


@pytest.fixture
async def dispatcher(
    of_worker: Database, clock: SteppedClock, model: ScriptedEmbeddings, nothing_due: None
) -> AsyncIterator[Dispatcher]:
    """A worker's loop with this model."""
    embedder = EmbeddingClient(model.base_url, "scripted", max_attempts=1)
    yield Dispatcher(JobContext(of_worker, clock, embedder=embedder), LAYERS, slots=8, poll_s=30)
    await embedder.aclose()


@pytest.fixture
async def story(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """Seven messages: m1 is about a ship, m2 about a cat, the others about nothing."""
    await begin(api, memos={"enabled": False})
    await append(api, [message(1, "The vessel leaves at noon."), message(2, "My kitten purrs."), *rest(3, 7)])
    await settle(dispatcher, clock)
