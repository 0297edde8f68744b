"""Another embedding model gets its vectors while the service searches those of the former one."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app.dispatcher import Dispatcher
from app.embeddings.client import EmbeddingClient
from app.embeddings.service import check_at_start
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.settings import Settings, SettingsError
from app.local.running import Urls
from app.main import create_app
from app.pipeline import open_database
from app.registry import LAYERS
from tests.background import settle
from tests.commands.here import refusal_here, said_here
from tests.conftest import PROJECT, SETTLE_S, client_of, sqlalchemy_url
from tests.meaning.asking import find_best, mean, rest
from tests.memories.asking import write
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.scripted_model import Reply, Request, refuses
from tests.search.finding import message
from tests.slowness import ALLOCATOR
from tests.talk import append, edit, ok, put


@dataclass(frozen=True)
class Service:
    """An API and a worker with one model."""

    api: httpx.AsyncClient
    dispatcher: Dispatcher


@dataclass(frozen=True)
class Stage:
    """A database, and two models."""

    url: str
    servers: Urls
    clock: SteppedClock
    place: Path
    former: ScriptedEmbeddings
    coming: ScriptedEmbeddings

    def settings(self, model: ScriptedEmbeddings) -> dict[str, str]:
        """The environment of a command with a model."""
        return {
            "MEMOBOOK_DATABASE_URL": self.url,
            "MEMOBOOK_EMBEDDINGS_BASE_URL": model.base_url,
            "MEMOBOOK_EMBEDDINGS_MODEL": self.name(model),
            "MEMOBOOK_EMBEDDINGS_DIMENSIONS": str(model.dimension),
        }

    def name(self, model: ScriptedEmbeddings) -> str:
        return "former" if model is self.former else "coming"

    async def reindex(self, model: ScriptedEmbeddings) -> list[str]:
        """What `memobook reindex` says."""
        return (await said_here(self.place, "reindex", **self.settings(model))).splitlines()

    @asynccontextmanager
    async def reindexing(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """A `memobook reindex` for the coming model; it is killed if it still runs when the block ends."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app.cli", "reindex"),
            cwd=self.place,
            env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)} | self.settings(self.coming),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    @asynccontextmanager
    async def serve(self, model: ScriptedEmbeddings) -> AsyncIterator[Service]:
        """Start a service with a model, as `memobook api` and `memobook worker` do."""
        async with AsyncExitStack() as stack:
            name, url = self.name(model), sqlalchemy_url(self.url)
            embedder = EmbeddingClient(model.base_url, name, dimension=model.dimension, max_attempts=1)
            stack.push_async_callback(embedder.aclose)
            database = open_database(
                url, LAYERS, clock=self.clock, settle_s=SETTLE_S, notify=lambda: None, pool_size=4, with_vectors=True
            )
            stack.push_async_callback(database.close)
            await check_at_start(database, embedder, self.clock)
            settings = Settings(
                database_url=url,
                redis_url=self.servers.redis_url,
                settle_s=SETTLE_S,
                embeddings_base_url=model.base_url,
                embeddings_model=name,
                embeddings_dimensions=model.dimension,
                embeddings_query_timeout_s=10,
                _env_file=None,
            )
            app = create_app(settings, clock=self.clock)
            for one in (app.state.rate_limiter, app.state.recall_memory, app.state.notifier, app.state.database):
                stack.push_async_callback(one.close)
            stack.push_async_callback(app.state.embedder.aclose)
            api = await stack.enter_async_context(client_of(app, None))
            ctx = JobContext(database, self.clock, embedder=embedder)
            yield Service(api, Dispatcher(ctx, LAYERS, slots=4, poll_s=30))

    async def count(self, model: ScriptedEmbeddings, table: str = "vectors") -> int:
        """The number of a model's vectors."""
        query = f"SELECT count(*) FROM {table} JOIN embedding_models USING (model_id) WHERE name = $1"
        return int(await self._fetch(query, model))

    async def is_current(self, model: ScriptedEmbeddings) -> bool:
        return bool(await self._fetch("SELECT is_current FROM embedding_models WHERE name = $1", model))

    async def _fetch(self, query: str, model: ScriptedEmbeddings) -> Any:
        connection = await asyncpg.connect(self.url.replace("+asyncpg", ""))
        try:
            return await connection.fetchval(query, self.name(model))
        finally:
            await connection.close()


def texts_of(model: ScriptedEmbeddings) -> list[str]:
    """The messages that a model was asked about."""
    return [text for texts in model.texts for text in texts if ": " in text]


@pytest.fixture
async def stage(fresh_database_url: str, servers: Urls, clock: SteppedClock, tmp_path: Path) -> AsyncIterator[Stage]:
    async with ScriptedEmbeddings(dimension=4) as former, ScriptedEmbeddings(dimension=64) as coming:
        former.otherwise = mean
        yield Stage(fresh_database_url, servers, clock, tmp_path, former, coming)


async def begin(service: Service, clock: SteppedClock, messages: int = 7) -> None:
    """A chat with vectors: m1 is about a ship."""
    await put(service.api, settings={"memos": {"enabled": False}})
    await append(service.api, [message(1, "The vessel leaves at noon."), *rest(2, messages)])
    await settle(service.dispatcher, clock)


async def test_the_service_searches_on_until_it_is_restarted(stage: Stage, clock: SteppedClock) -> None:
    async with stage.serve(stage.former) as service, AsyncExitStack() as stack:
        await begin(service, clock)
        assert await find_best(service.api, "Which ferry?") == "m1"
        gate = stage.coming.hold()
        process = await stack.enter_async_context(stage.reindexing())
        await gate.reached()
        assert await find_best(service.api, "Which ferry?") == "m1"
        await append(service.api, [message(8, "My kitten purrs.")])
        await settle(service.dispatcher, clock)
        assert await find_best(service.api, "a cat") == "m8"
        with pytest.raises(SettingsError, match=r"run memobook reindex$"):
            async with stage.serve(stage.coming):
                pass
        assert not await stage.is_current(stage.coming)
        gate.release()
        said, _ = await process.communicate()
        assert process.returncode == 0
        assert said.decode().splitlines()[-1].startswith("From now on, the model is coming (64 dimensions). Restart")

        assert await find_best(service.api, "Which ferry?") == "m1", "the former service has its vectors"
        await append(service.api, [message(9, "The oven is warm.")])
        await settle(service.dispatcher, clock)
        assert len([text for text in texts_of(stage.former) if "oven" in text]) == 0, (
            "left to a worker of the new model"
        )
    async with stage.serve(stage.coming) as service:
        await settle(service.dispatcher, clock, wait_s=60)
        assert await find_best(service.api, "the kitten purrs") == "m8"
        assert await stage.count(stage.coming) == 9
    assert len(texts_of(stage.coming)) == 9, "each message was asked once"


async def test_the_next_run_deletes_the_former_vectors(stage: Stage, clock: SteppedClock) -> None:
    async with stage.serve(stage.former) as service:
        await begin(service, clock)
        await stage.reindex(stage.coming)
        assert (await stage.count(stage.former), await stage.count(stage.coming)) == (7, 7)
        assert (await stage.reindex(stage.former))[-1].startswith("From now on, the model is former")
        assert len(texts_of(stage.former)) == 7, "a way back costs nothing"
        await stage.reindex(stage.coming)
    assert await stage.reindex(stage.coming) == [
        "7 vectors of former models were deleted.",
        "All chats have vectors of coming (64 dimensions).",
    ]
    assert (await stage.count(stage.former), await stage.count(stage.coming)) == (0, 7)


async def test_a_killed_run_is_continued(stage: Stage, clock: SteppedClock) -> None:
    async with stage.serve(stage.former) as service:
        await begin(service, clock, messages=100)
        gates = [stage.coming.hold(1)]  # of the sentences of the scale
        async with stage.reindexing():
            for held in (1, None):  # 64 messages, and the others
                await gates[-1].reached()
                gates.append(stage.coming.hold(held))
                gates[-2].release()
            await gates[-1].reached()
        gates[-1].release()
        assert await stage.count(stage.coming) == 64
        await edit(service.api, "m1", content="The loaf is warm.")
        await settle(service.dispatcher, clock)
        assert await stage.count(stage.coming) == 63, "only the vector of the former text is gone"
        stage.coming.calls.clear()
        await stage.reindex(stage.coming)
    assert len(texts_of(stage.coming)) == 37
    assert await stage.count(stage.coming) == 100


async def test_a_message_that_the_model_refuses_ends_no_run(stage: Stage, clock: SteppedClock) -> None:
    def answer(request: Request) -> Reply:
        refused = any("vessel" in text for text in request["input"])
        return refuses(400) if refused else stage.coming._embed(request)

    stage.coming.otherwise = answer
    async with stage.serve(stage.former) as service:
        await begin(service, clock)
        said = await stage.reindex(stage.coming)
        assert await stage.count(stage.coming) == 6
    assert "Texts that the model refused, and that are found by their words only: 1." in said
    assert await stage.is_current(stage.coming)


async def test_the_texts_of_layers_get_vectors_too(stage: Stage, clock: SteppedClock) -> None:
    async with stage.serve(stage.former) as service:
        await begin(service, clock)
        for number in range(130):
            await write(service.api, f"Mira has seen {number} ships.")
        await stage.reindex(stage.coming)
        assert await stage.count(stage.coming, "text_vectors") == 130
        await stage.reindex(stage.coming)
        assert await stage.count(stage.former, "text_vectors") == 0
    async with stage.serve(stage.coming) as service:
        best = ok(await service.api.post("/v1/chats/c/memories/search", json={"query": "7 ships"}), 200)["hits"][0]
        assert (best["text"], best["parts"]["vector"]) == ("Mira has seen 7 ships.", pytest.approx(0.5))


async def test_a_first_model_makes_the_vectors_of_earlier_chats(stage: Stage, clock: SteppedClock) -> None:
    async with stage.serve(stage.former) as service:
        await begin(service, clock)
        connection = await asyncpg.connect(stage.url.replace("+asyncpg", ""))
        await connection.execute("TRUNCATE vectors, embedding_models")
        await connection.close()
        assert await stage.reindex(stage.former) == ["All chats have vectors of former (4 dimensions)."]
        assert await find_best(service.api, "Which ferry?") == "m1"


async def test_a_model_that_is_away_ends_the_run_with_one_line(stage: Stage, clock: SteppedClock) -> None:
    stage.coming.otherwise = refuses(401)
    async with stage.serve(stage.former) as service:
        await begin(service, clock)
        said = await refusal_here(stage.place, "reindex", **stage.settings(stage.coming))
    assert said == "memobook: MEMOBOOK_EMBEDDINGS_BASE_URL: the model refuses the key (401)\n"
    assert await stage.is_current(stage.former)
