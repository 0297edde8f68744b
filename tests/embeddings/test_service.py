"""The recorded model: the first one is recorded, and another one ends the start."""

import asyncio
import logging

import pytest

from app.embeddings.client import EmbeddingClient
from app.embeddings.recorded import RecordedModel
from app.embeddings.scale import UNRELATED, measure_unrelated
from app.embeddings.service import ModelDiffers, check_at_start, get_current, make_current, record_coming
from app.embeddings.vectors import normalise
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.settings import SettingsError
from tests.scripted_embeddings import ScriptedEmbeddings, hash_words
from tests.scripted_model import refuses
from tests.slowness import SLOWNESS


def other_client(server: ScriptedEmbeddings, name: str = "other", dimension: int | None = None) -> EmbeddingClient:
    return EmbeddingClient(server.base_url, name, dimension=dimension, timeout_s=5 * SLOWNESS, max_attempts=1)


async def test_the_first_model_is_recorded(
    fresh_database: Database, client: EmbeddingClient, server: ScriptedEmbeddings, clock: SteppedClock
) -> None:
    recorded = await get_current(fresh_database, client, clock)
    vectors = [hash_words(text, 64) for text in UNRELATED]
    unrelated = measure_unrelated([normalise(vector) for vector in vectors])
    assert (recorded.name, recorded.dimension) == ("tiny", 64)
    assert recorded.unrelated == pytest.approx(unrelated)
    asked = len(server.calls)
    assert await get_current(fresh_database, client, clock) == recorded
    assert len(server.calls) == asked, "all that was asked is known"


async def test_a_missing_similarity_of_a_recorded_model_is_measured(
    fresh_database: Database, client: EmbeddingClient, clock: SteppedClock
) -> None:
    recorded = await get_current(fresh_database, client, clock)
    async with fresh_database.raw() as connection:
        await connection.execute("UPDATE embedding_models SET unrelated_similarity = NULL")
    assert await get_current(fresh_database, client, clock) == recorded


async def test_processes_that_start_together_record_one_model(
    fresh_database: Database, server: ScriptedEmbeddings, clock: SteppedClock
) -> None:
    clients = [other_client(server, "tiny") for _ in range(3)]
    found = await asyncio.gather(*(get_current(fresh_database, client, clock) for client in clients))
    assert found == [found[0]] * 3
    for client in clients:
        await client.aclose()


@pytest.mark.parametrize(
    ("name", "dimension", "said"),
    [
        ("other", None, "other"),
        ("other", 64, "other (64 dimensions)"),
        ("tiny", 32, "tiny (32 dimensions)"),
    ],
)
async def test_another_model_ends_the_start(
    fresh_database: Database,
    client: EmbeddingClient,
    server: ScriptedEmbeddings,
    clock: SteppedClock,
    name: str,
    dimension: int | None,
    said: str,
) -> None:
    await check_at_start(fresh_database, client, clock)
    other = other_client(server, name, dimension)
    with pytest.raises(SettingsError) as refused:
        await check_at_start(fresh_database, other, clock)
    assert str(refused.value) == (
        "MEMOBOOK_EMBEDDINGS_MODEL: the stored vectors are of tiny (64 dimensions),"
        f" not of {said}; run memobook reindex"
    )
    await other.aclose()


async def test_a_model_that_changed_its_length_ends_the_start(
    fresh_database: Database, client: EmbeddingClient, server: ScriptedEmbeddings, clock: SteppedClock
) -> None:
    await check_at_start(fresh_database, client, clock)
    server.dimension = 32
    changed = other_client(server, "tiny")
    with pytest.raises(SettingsError, match=r"not of tiny \(32 dimensions\); run memobook reindex$"):
        await check_at_start(fresh_database, changed, clock)
    await changed.aclose()


async def test_a_model_that_does_not_answer_ends_no_start(
    fresh_database: Database,
    client: EmbeddingClient,
    server: ScriptedEmbeddings,
    clock: SteppedClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.script(refuses(503))
    with caplog.at_level(logging.WARNING, "app.embeddings"):
        await check_at_start(fresh_database, client, clock)
    assert caplog.messages == ["the embedding model cannot be checked: the model server fails (503)"]
    assert (await get_current(fresh_database, client, clock)).name == "tiny"  # recorded as soon as it answers


async def test_a_reindex_makes_the_configured_model_current(
    fresh_database: Database, client: EmbeddingClient, server: ScriptedEmbeddings, clock: SteppedClock
) -> None:
    first = await get_current(fresh_database, client, clock)
    other = other_client(server, dimension=16)
    second, is_current = await record_coming(fresh_database, other, clock)
    assert (second, is_current) == (RecordedModel(second.model_id, "other", 16, second.unrelated), False)
    assert second.unrelated not in {None, first.unrelated}
    assert await record_coming(fresh_database, other, clock) == (second, False)
    with pytest.raises(ModelDiffers):
        await get_current(fresh_database, other, clock)
    await make_current(fresh_database, second)
    assert await get_current(fresh_database, other, clock) == second
    with pytest.raises(ModelDiffers):
        await get_current(fresh_database, client, clock)
    assert await record_coming(fresh_database, client, clock) == (first, False)  # with its id
    await other.aclose()
