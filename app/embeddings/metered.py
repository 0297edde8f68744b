"""Counts the calls of an embedding model for a tenant and a layer, like the calls of the language model."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from app.embeddings.wrapping import WrappedEmbedder
from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.kit.llm.embeddings import Embeddings
from app.kit.tokens import count_tokens
from app.kit.usage import MAX_CALL_TOKENS, ModelCall, count_or_warn


def meter(embedder: TextEmbedder, database: Database, clock: Clock, *, tenant: str, layer: str) -> TextEmbedder:
    """Return an embedder that calls `embedder` and counts every completed call of `embed`, including failed ones.

    One call of `embed` is counted once, whatever the number of its requests. Its tokens are those that the server
    counted, or our own count if the server counts none. A failed call counts no tokens. A cancelled call is not
    counted. If counting fails, a warning is logged and the vectors are returned all the same.

    Args:
        embedder: The embedder to call.
        database: Where calls are counted, each in its own statement.
        clock: Determines the month.
        tenant: The tenant to count for.
        layer: The layer to count for.

    """
    return _MeteredEmbedder(embedder, database, clock, tenant, layer)


class _MeteredEmbedder(WrappedEmbedder):
    def __init__(self, embedder: TextEmbedder, database: Database, clock: Clock, tenant: str, layer: str) -> None:
        super().__init__(embedder)
        self._database = database
        self._clock = clock
        self._tenant = tenant
        self._layer = layer

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        asked_at, asked_s = self._clock(), asyncio.get_running_loop().time()
        try:
            made = await self._embedder.embed(texts)
        except ModelError:
            await self._count(asked_at, asked_s, 0, failed=True)
            raise
        tokens = sum(map(count_tokens, texts)) if made.tokens is None else made.tokens
        await self._count(asked_at, asked_s, tokens, failed=False)
        return made

    async def _count(self, asked_at: datetime, asked_s: float, tokens: int, *, failed: bool) -> None:
        call = ModelCall(
            tenant=self._tenant,
            layer=self._layer,
            asked_at=asked_at,
            failed=failed,
            prompt_tokens=min(tokens, MAX_CALL_TOKENS),
            completion_tokens=0,
            wait_ms=round((asyncio.get_running_loop().time() - asked_s) * 1_000),
        )
        await count_or_warn(self._database, call)
