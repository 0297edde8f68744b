"""What `memobook doctor` finds about the model that turns texts into vectors."""

from pathlib import Path

import pytest

from app.embeddings.client import EmbeddingClient
from app.embeddings.configured import LOCAL_MODULE, LOCAL_PACKAGE
from app.embeddings.service import get_current
from app.kit.clock import system_clock
from app.kit.db import Database
from tests.conftest import sqlalchemy_url
from tests.doctor.test_doctor import CHECKS, assert_fault, findings
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.scripted_model import HANG_UP, Reply, refuses


@pytest.mark.parametrize(
    ("name", "dimension", "message"),
    [
        ("other", 64, "The stored vectors are of tiny (64 dimensions), not of other (64 dimensions)."),
        ("tiny", 32, "The stored vectors are of tiny (64 dimensions), not of tiny (32 dimensions)."),
    ],
)
async def test_another_model_than_the_recorded_is_a_fault(
    fresh_database_url: str, name: str, dimension: int, message: str
) -> None:
    database = Database(sqlalchemy_url(fresh_database_url), pool_size=2)
    async with ScriptedEmbeddings() as server:
        client = EmbeddingClient(server.base_url, "tiny")
        await get_current(database, client, system_clock)
        server.dimension = dimension
        found = await findings(fresh_database_url, embeddings_base_url=server.base_url, embeddings_model=name)
        await client.aclose()
    await database.close()
    assert_fault(found["embeddings"], message, "memobook reindex")


@pytest.mark.parametrize(
    ("reply", "state", "reason", "do"),
    [
        (refuses(401), "fault", "the model refuses the key (401)", "MEMOBOOK_EMBEDDINGS_API_KEY"),
        (refuses(429), "note", "the model is rate-limited (429)", "MEMOBOOK_EMBEDDINGS_CONCURRENCY"),
        (HANG_UP, "fault", "the connection to the model server broke", "MEMOBOOK_EMBEDDINGS_BASE_URL"),
    ],
)
async def test_a_model_that_refuses_is_explained(
    fresh_database_url: str, reply: Reply, state: str, reason: str, do: str
) -> None:
    async with ScriptedEmbeddings() as server:
        server.otherwise = reply
        found = await findings(fresh_database_url, embeddings_base_url=server.base_url, embeddings_model="tiny")
    assert (found["embeddings"].state, found["embeddings"].message) == (state, f"tiny: {reason}.")
    assert do in found["embeddings"].advice


async def test_a_model_that_hangs_is_found_in_time(fresh_database_url: str) -> None:
    async with ScriptedEmbeddings() as server:
        server.hold()
        found = await findings(
            fresh_database_url, embeddings_base_url=server.base_url, embeddings_model="tiny", embeddings_timeout_s=0.3
        )
    assert_fault(found["embeddings"], "tiny: the model did not answer within 0.3 s.", "MEMOBOOK_EMBEDDINGS_TIMEOUT_S")


async def test_a_local_model_without_weights_is_a_fault(
    fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LOCAL_MODULE).mkdir()
    (tmp_path / LOCAL_MODULE / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)  # found before the package that has the weights
    found = await findings(fresh_database_url, embeddings_base_url="local")
    assert found["embeddings"].state == "fault"
    assert LOCAL_PACKAGE in found["embeddings"].message
    assert list(found) == CHECKS
