"""The embedding model of the API and of a worker's jobs."""

from typing import ClassVar

from fastapi import FastAPI

from app.chats.settings import LayerSettings
from app.dispatcher import Dispatcher
from app.embeddings.client import EmbeddingClient
from app.embeddings.configured import make_embedder
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database, DbSession
from app.kit.job_context import JobContext
from app.kit.limits import TokenLimits
from app.kit.owners import Owner
from app.kit.settings import Settings
from app.kit.usage import list_usage, month_of
from app.kit.work_queue import Claimed, NewWork
from app.layers.job import Job, Made
from app.layers.layer import Layer
from app.main import create_app
from tests.scripted_embeddings import ScriptedEmbeddings


async def test_without_settings_there_is_no_model(app: FastAPI) -> None:
    assert app.state.embedder is None
    assert make_embedder(Settings(embeddings_model="tiny", _env_file=None)) is None


async def test_the_api_has_the_configured_model(database_url: str, clock: SteppedClock) -> None:
    async with ScriptedEmbeddings() as server:
        settings = Settings(
            database_url=database_url,
            embeddings_base_url=server.base_url,
            embeddings_model="tiny",
            embeddings_api_key="sk-1",
            embeddings_dimensions=16,
            embeddings_batch_size=2,
            _env_file=None,
        )
        app = create_app(settings, clock=clock)
        async with app.router.lifespan_context(app):
            made = await app.state.embedder.embed(["one", "two", "three"])
    assert [len(vector) for vector in made.vectors] == [16] * 3
    assert server.texts == [["one", "two"], ["three"]]
    assert server.requests[0]["model"] == "tiny"
    assert server.calls[0].headers["authorization"] == "Bearer sk-1"


class WordSettings(LayerSettings):
    """Vectors of words."""

    section: ClassVar[str] = "vectors"


async def _read(_ctx: JobContext, _db_session: DbSession, claimed: Claimed) -> str:
    return claimed.key


async def _draft(ctx: JobContext, _claimed: Claimed, source: str) -> int:
    assert ctx.embedder is not None
    return len((await ctx.embedder.embed([source])).vectors[0])


async def _save(_db_session: DbSession, made: Made[str, int]) -> None:
    assert made.draft == 64


async def test_a_job_has_a_model_that_counts_for_its_tenant(
    database: Database, clock: SteppedClock, tenant: str, client: EmbeddingClient, nothing_due: None
) -> None:
    layer = Layer(name="vectors", settings=WordSettings, jobs=(Job(read=_read, draft=_draft, save=_save),))
    async with database.unit_of_work() as db_session:
        await work_queue.schedule(
            db_session, Owner.of_tenant(tenant), layer.name, [NewWork("a lighthouse")], now=clock(), settle_s=0
        )
    dispatcher = Dispatcher(JobContext(database, clock, embedder=client), (layer,), slots=1, poll_s=30)
    assert await dispatcher.drain() == 1
    async with database.raw() as connection:
        (usage,) = await list_usage(connection, tenant=tenant, month=month_of(clock()))
        assert await connection.fetchval("SELECT count(*) FROM work WHERE tenant = $1", tenant) == 0
    assert (usage["layer"], usage["calls"], usage["prompt_tokens"]) == ("vectors", 1, 2)


async def test_its_tokens_count_towards_the_limit(
    database: Database, clock: SteppedClock, tenant: str, client: EmbeddingClient, nothing_due: None
) -> None:
    layer = Layer(name="vectors", settings=WordSettings, jobs=(Job(read=_read, draft=_draft, save=_save),))
    ctx, limits = JobContext(database, clock, embedder=client), TokenLimits(2)
    dispatcher = Dispatcher(ctx, (layer,), slots=1, poll_s=30, limits=limits)
    for started in (1, 0):
        async with database.unit_of_work() as db_session:
            await work_queue.schedule(
                db_session, Owner.of_tenant(tenant), layer.name, [NewWork("a lighthouse")], now=clock(), settle_s=0
            )
        assert await dispatcher.drain() == started
