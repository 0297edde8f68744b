"""Limits the time of a call of an embedding model, for callers who can do without the vectors."""

import asyncio
from collections.abc import Sequence

from app.embeddings.wrapping import WrappedEmbedder
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.kit.llm.embeddings import Embeddings


def limit_time(embedder: TextEmbedder, within_s: float) -> TextEmbedder:
    """Return an embedder that calls `embedder`, and raises ModelError if it needs more than `within_s` seconds."""
    return _LimitedEmbedder(embedder, within_s)


class _LimitedEmbedder(WrappedEmbedder):
    def __init__(self, embedder: TextEmbedder, within_s: float) -> None:
        super().__init__(embedder)
        self._within_s = within_s

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        try:
            async with asyncio.timeout(self._within_s):
                return await self._embedder.embed(texts)
        except TimeoutError:
            raise ModelError(f"the model did not answer within {self._within_s:g} s", transient=True) from None
