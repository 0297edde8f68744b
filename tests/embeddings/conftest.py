import contextlib
from collections.abc import AsyncIterator

import pytest

from app.embeddings.client import EmbeddingClient
from app.kit.db import Database
from tests.conftest import sqlalchemy_url
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.slowness import SLOWNESS


@pytest.fixture
async def server() -> AsyncIterator[ScriptedEmbeddings]:
    async with ScriptedEmbeddings() as scripted:
        yield scripted


@pytest.fixture
async def client(server: ScriptedEmbeddings) -> AsyncIterator[EmbeddingClient]:
    """A client that sends at most four texts at once, and asks once."""
    async with contextlib.aclosing(
        EmbeddingClient(server.base_url, "tiny", timeout_s=5 * SLOWNESS, batch_size=4, max_attempts=1)
    ) as opened:
        yield opened


@pytest.fixture
async def fresh_database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing is recorded or counted."""
    async with contextlib.aclosing(Opened(sqlalchemy_url(fresh_database_url), pool_size=4)) as opened:
        yield opened


class Opened(Database):
    async def aclose(self) -> None:
        await self.close()
