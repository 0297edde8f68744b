"""The client of embedding models, over real HTTP."""

import contextlib
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.embeddings.client import EmbeddingClient
from app.kit.llm.answer import ModelError
from app.kit.llm.embeddings import Vector
from tests.scripted_embeddings import ScriptedEmbeddings, embeds
from tests.scripted_model import HANG_UP, Reply, Request, Step, refuses, sends

TEXTS = ["Kai gave her the silver key.", "She keeps the key.", "It rains."]


@contextlib.asynccontextmanager
async def client_of(server: ScriptedEmbeddings, **options: Any) -> AsyncIterator[EmbeddingClient]:
    async def go_on(_seconds: float) -> None:
        """Take the place of sleeping."""

    async with contextlib.aclosing(EmbeddingClient(server.base_url, "tiny", sleep=go_on, **options)) as opened:
        yield opened


def cosine(one: Vector, other: Vector) -> float:
    return math.sumprod(one, other) if hasattr(math, "sumprod") else sum(a * b for a, b in zip(one, other, strict=True))


async def error_of(client: EmbeddingClient, texts: list[str] = TEXTS) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await client.embed(texts)
    return caught.value


async def test_texts_become_vectors_of_length_one(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    made = await client.embed(TEXTS)
    assert [len(vector) for vector in made.vectors] == [64] * 3
    assert [cosine(vector, vector) for vector in made.vectors] == pytest.approx([1.0] * 3)
    assert (made.tokens, client.dimension) == (12, 64)
    key, keeps, rains = made.vectors
    assert cosine(key, keeps) > cosine(key, rains)
    assert server.requests == [{"model": "tiny", "input": TEXTS}]
    assert server.calls[0].path == "/v1/embeddings"


async def test_no_text_costs_no_request(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    assert (await client.embed([])).vectors == []
    assert server.calls == []


async def test_a_dimension_is_asked_for_only_if_it_is_set(server: ScriptedEmbeddings) -> None:
    async with client_of(server, dimension=16, api_key="sk-1") as client:
        assert client.dimension == 16
        assert len((await client.embed(TEXTS)).vectors[0]) == 16
    assert server.requests[0]["dimensions"] == 16
    assert server.calls[0].headers["authorization"] == "Bearer sk-1"


async def test_vectors_are_in_the_order_of_their_texts(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    server.script(embeds([[1, 0], [0, 2]], shuffled=True))
    assert (await client.embed(TEXTS[:2])).vectors == [[1.0, 0.0], [0.0, 1.0]]


async def test_a_zero_vector_is_not_normalised(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    server.script(embeds([[0, 0], [5, 0]]))
    assert (await client.embed(TEXTS[:2])).vectors == [[0.0, 0.0], [1.0, 0.0]]


async def test_many_texts_are_sent_in_batches(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    texts = [f"message {n}" for n in range(10)]
    made = await client.embed(texts)
    assert [len(batch) for batch in server.texts] == [4, 4, 2]
    assert len(made.vectors) == 10
    assert made.vectors[9] == (await client.embed([texts[9]])).vectors[0]
    assert made.tokens == 20


async def test_tokens_are_unknown_if_a_batch_lacks_them(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    server.script(embeds([[1, 0]] * 4, tokens=9), embeds([[0, 1]]))
    assert (await client.embed(["a"] * 5)).tokens is None


def refusing(limit: int, status: int = 413) -> Step:
    """Refuse requests with more characters."""

    def answer(request: Request) -> Reply:
        if sum(map(len, request["input"])) > limit:
            return refuses(status)
        return embeds([[1, len(text)] for text in request["input"]])

    return answer


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_request_that_is_too_large_is_halved(
    server: ScriptedEmbeddings, client: EmbeddingClient, status: int
) -> None:
    server.otherwise = refusing(20, status)
    made = await client.embed(["a" * 9, "b" * 8, "c" * 7, "d" * 6])
    assert [len(batch) for batch in server.texts] == [4, 2, 2]
    assert [round(vector[1] / vector[0]) for vector in made.vectors] == [9, 8, 7, 6]


async def test_a_text_that_is_too_long_is_shortened(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    server.otherwise = refusing(500)
    made = await client.embed(["a" * 1_600, "b"])
    assert [round(vector[1] / vector[0]) for vector in made.vectors] == [400, 1]


async def test_a_permanent_refusal_ends_after_a_few_requests(
    server: ScriptedEmbeddings, client: EmbeddingClient
) -> None:
    server.otherwise = refuses(400)
    error = await error_of(client, ["a" * 2_000] * 4)
    assert (error.reason, error.transient) == ("the model server refuses the request (400)", False)
    assert len(server.calls) == 6  # of 4 texts, 2, 1, and then of 1,000, 500 and 250 characters


@pytest.mark.parametrize(
    ("step", "reason", "transient"),
    [
        (refuses(401), "the model refuses the key (401)", False),
        (refuses(429), "the model is rate-limited (429)", True),
        (refuses(503), "the model server fails (503)", True),
        (HANG_UP, "the connection to the model server broke", True),
        (sends(b'{"error": {"code": 502}}'), "the model server fails (502)", True),
        (sends(b"<html>"), "the model server answers something that is not a JSON object", False),
        (sends(b'{"data": "none"}'), "the model server does not answer one vector for each text", False),
        (embeds([[1, 0]] * 2), "the model server does not answer one vector for each text", False),
        (embeds([[1, 0], [1, 0], [1]]), "the model server answers vectors of several lengths", False),
        (embeds([[1, 0], [1, 0], []]), "the model server answers something that is not a vector", False),
        (sends(b'{"data": [{"embedding": "AAAA"}]}'), "the model server answers something that is not a vector", False),
        (sends(b'{"data": [{"embedding": [true]}]}'), "the model server answers something that is not a vector", False),
        (embeds([[1e308] * 4] * 3), "the model server answers a vector that is not finite", False),
        (sends(b'{"data": [3]}'), "the model server answers something that is not a vector", False),
    ],
)
async def test_a_failure_has_a_reason(
    server: ScriptedEmbeddings, client: EmbeddingClient, step: Step, reason: str, transient: bool
) -> None:
    server.script(step)
    error = await error_of(client)
    assert (error.reason, error.transient) == (reason, transient)


async def test_a_transient_failure_is_retried(server: ScriptedEmbeddings) -> None:
    server.script(refuses(503), HANG_UP)
    async with client_of(server) as client:
        assert len((await client.embed(TEXTS)).vectors) == 3
    assert len(server.calls) == 3


async def test_another_length_than_before_is_refused(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    await client.embed(TEXTS)
    server.dimension = 32
    error = await error_of(client)
    assert (error.reason, error.curable) == ("the model server answers vectors of length 32 instead of 64", True)
    server.dimension = 64
    assert len((await client.embed(TEXTS)).vectors) == 3


async def test_a_server_that_hangs_is_given_up(server: ScriptedEmbeddings) -> None:
    server.hold()
    async with client_of(server, timeout_s=0.2) as client:
        error = await error_of(client)
    assert (error.reason, error.transient) == ("the model did not answer within 0.2 s", True)


async def test_a_long_vector_is_read(server: ScriptedEmbeddings, client: EmbeddingClient) -> None:
    server.dimension = 16_000
    assert len((await client.embed(TEXTS)).vectors[2]) == 16_000
    assert len(json.dumps(server.requests)) < 200
