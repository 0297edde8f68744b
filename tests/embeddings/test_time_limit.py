"""The embedding model whose time is limited."""

import pytest

from app.embeddings.client import EmbeddingClient
from app.embeddings.time_limit import limit_time
from app.kit.llm.answer import ModelError
from tests.scripted_embeddings import ScriptedEmbeddings


async def test_a_late_answer_is_an_error(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    gate = server.hold()
    with pytest.raises(ModelError, match=r"^the model did not answer within 0\.05 s$") as raised:
        await limit_time(client, 0.05).embed(["A lighthouse."])
    assert raised.value.transient
    gate.release()


async def test_an_answer_in_time_is_returned(client: EmbeddingClient) -> None:
    limited = limit_time(client, 30)
    made = await limited.embed(["A lighthouse."])
    assert made.vectors == (await client.embed(["A lighthouse."])).vectors
    assert (limited.name, limited.dimension) == (client.name, 64)
