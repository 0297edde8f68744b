"""The embedding model that is counted: every call that ends, for its tenant and layer."""

import asyncpg
import pytest

from app.embeddings.client import EmbeddingClient
from app.embeddings.metered import meter
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.llm.answer import ModelError
from app.kit.tokens import count_tokens
from tests.scripted_embeddings import ScriptedEmbeddings, embeds
from tests.scripted_model import refuses


async def only(database: Database) -> asyncpg.Record:
    async with database.raw() as connection:
        (row,) = await connection.fetch("SELECT * FROM model_usage")
    return row


async def test_a_call_counts_the_tokens_of_the_server(
    server: ScriptedEmbeddings, client: EmbeddingClient, fresh_database: Database, clock: SteppedClock
) -> None:
    metered = meter(client, fresh_database, clock, tenant="t", layer="search")
    assert metered.name == "tiny"
    made = await metered.embed([f"message {n}" for n in range(6)])  # two requests
    assert (len(made.vectors), metered.dimension) == (6, 64)
    row = await only(fresh_database)
    assert (row["tenant"], row["layer"], row["month"].isoformat()) == ("t", "search", "2026-04-01")
    assert (row["calls"], row["failures"], row["prompt_tokens"], row["completion_tokens"]) == (1, 0, 12, 0)


@pytest.mark.parametrize("told", [None, 2**40])
async def test_a_missing_or_wrong_count_is_replaced(
    server: ScriptedEmbeddings, client: EmbeddingClient, fresh_database: Database, clock: SteppedClock, told: int | None
) -> None:
    server.script(embeds([[1, 0]], tokens=told))
    await meter(client, fresh_database, clock, tenant="t", layer="search").embed(["Kai gave her the key."])
    expected = 2**31 - 1 if told else count_tokens("Kai gave her the key.")
    assert (await only(fresh_database))["prompt_tokens"] == expected


async def test_a_failed_call_counts_no_tokens(
    server: ScriptedEmbeddings, client: EmbeddingClient, fresh_database: Database, clock: SteppedClock
) -> None:
    server.script(refuses(503))
    with pytest.raises(ModelError):
        await meter(client, fresh_database, clock, tenant="t", layer="search").embed(["Kai."])
    row = await only(fresh_database)
    assert (row["calls"], row["failures"], row["prompt_tokens"]) == (1, 1, 0)
