"""The vector of a query, by which texts are found that have the same meaning in other words."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from app.embeddings.vectors import format_halfvec
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.search.queries import QueryVector
from app.search.recall_memory import RecallMemory

log = logging.getLogger(__name__)

EMBED_S: Final = 0.3
"""How long a search waits for the vector of its query; without it, words alone are compared."""

MOST_CHARS: Final = 1_000
"""Only the beginning of a longer query gets a vector."""

EmbedderOf = Callable[[str], TextEmbedder | None]
"""Returns the embedding model, with its calls counted for a tenant; None if none is configured."""


class Recalling(NamedTuple):
    """What recall needs of the application.

    Attributes:
        memory: What was recalled before.
        embedder_of: The embedding model of a tenant.

    """

    memory: RecallMemory
    embedder_of: EmbedderOf


async def embed_query(embedder: TextEmbedder | None, query: str) -> QueryVector | None:
    """Return the vector of a query; None without a model, or if it does not answer within EMBED_S."""
    if embedder is None or not query.strip():
        return None
    try:
        async with asyncio.timeout(EMBED_S):
            made = await embedder.embed([query[:MOST_CHARS]])
    except ModelError as error:
        log.info("a search compares words alone: %s", error.reason)
    except TimeoutError:
        log.info("a search compares words alone: the embedding model did not answer within %g s", EMBED_S)
    else:
        return QueryVector(format_halfvec(made.vectors[0]), embedder.name)
    return None
