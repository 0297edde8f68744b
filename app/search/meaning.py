"""The vector of a query, by which texts are found that have the same meaning in other words."""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from app.embeddings.vectors import format_halfvec
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.search.queries import QueryVector
from app.search.recall_memory import RecallMemory

log = logging.getLogger(__name__)

MOST_CHARS: Final = 1_000
"""Only the beginning of a longer query gets a vector."""

EmbedderOf = Callable[[str], TextEmbedder | None]
"""Returns the embedding model for queries, with its calls counted for a tenant and limited in time (`limit_time`).

It returns None if no model is configured.
"""


class Recalling(NamedTuple):
    """What recall needs of the application.

    Attributes:
        memory: What was recalled before.
        embedder_of: Returns the embedding model of a tenant.

    """

    memory: RecallMemory
    embedder_of: EmbedderOf


async def embed_query(embedder: TextEmbedder | None, query: str) -> QueryVector | None:
    """Return the vector of a query; None if there is no model, if it fails or is too slow, or if the query is blank."""
    if embedder is None or not query.strip():
        return None
    try:
        made = await embedder.embed([query[:MOST_CHARS]])
    except ModelError as error:
        log.info("a search compares words alone: %s", error.reason)
    else:
        return QueryVector(format_halfvec(made.vectors[0]), embedder.name)
    return None
