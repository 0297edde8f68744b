"""A client for embedding models behind an OpenAI-compatible `POST /embeddings`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from app.embeddings.answer import read_embeddings
from app.embeddings.batches import split_texts
from app.kit.clock import Clock, system_clock
from app.kit.llm.answer import ModelError
from app.kit.llm.embeddings import Embeddings, Vector
from app.kit.llm.server import ModelServer

MAX_ANSWER_MIB = 64

_TOO_MUCH = (400, 413, 422)
"""The statuses with which servers refuse too many texts, or texts that are too long."""

_MIN_CHARS = 256
"""A text of so many characters or fewer is not shortened further."""


class EmbeddingClient:
    """A client for one model on one server.

    Args:
        base_url: The base URL as the server documents it, e.g. `http://localhost:11434/v1`.
        name: The model's name on that server.
        api_key: Sent as a bearer token; None if the server requires none.
        dimension: The length of the vectors that the server is asked for; None for the model's own.
        timeout_s: The maximum duration of a request with its retries, without the wait for a slot.
        batch_size: The maximum number of texts of a request.
        concurrency: The number of requests that run at once; further ones wait for a slot.
        max_attempts: The maximum number of attempts per request, including the first.
        clock: Used to convert a Retry-After date to a delay.
        sleep: Called to wait between attempts.

    Raises ValueError if `base_url` is not an http(s) URL or `api_key` cannot be sent in a header.

    """

    def __init__(
        self,
        base_url: str,
        name: str,
        *,
        api_key: str | None = None,
        dimension: int | None = None,
        timeout_s: float = 30.0,
        batch_size: int = 64,
        concurrency: int = 4,
        max_attempts: int = 3,
        clock: Clock = system_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self._asked_dimension = dimension
        self._batch_size = batch_size
        self._server = ModelServer(
            base_url,
            "/embeddings",
            api_key=api_key,
            timeout_s=timeout_s,
            concurrency=concurrency,
            max_attempts=max_attempts,
            max_answer_mib=MAX_ANSWER_MIB,
            clock=clock,
            sleep=sleep,
        )

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the vectors of `texts`, which must not be blank. Each request has as many texts as its limits permit.

        If the server refuses a request as too large, its texts are sent in two halves; a single text is shortened to
        its first half. Raises ModelError, also if the length of the vectors is not `dimension`, or differs from the
        length of earlier vectors.
        """
        vectors: list[Vector] = []
        counts: list[int | None] = []
        for batch in split_texts(texts, max_texts=self._batch_size):
            for part in await self._embed_batch(batch):
                vectors += part.vectors
                counts.append(part.tokens)
        known = [count for count in counts if count is not None]
        return Embeddings(vectors, sum(known) if len(known) == len(counts) else None)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._server.aclose()

    async def _embed_batch(self, texts: Sequence[str]) -> list[Embeddings]:
        """Return the vectors of a batch, in one or more parts."""
        answer = await self._server.call(lambda: self._ask(texts))
        if answer is not None:
            return [answer]
        if len(texts) == 1:
            return await self._embed_batch([texts[0][: len(texts[0]) // 2]])
        middle = len(texts) // 2
        return await self._embed_batch(texts[:middle]) + await self._embed_batch(texts[middle:])

    async def _ask(self, texts: Sequence[str]) -> Embeddings | None:
        """Make one attempt. Returns None if the server refuses the request as too large, and it can be made smaller."""
        body: dict[str, object] = {"model": self.name, "input": list(texts)}
        if self._asked_dimension is not None:
            body["dimensions"] = self._asked_dimension
        response, answer = await self._server.post(body)
        if response.status_code in _TOO_MUCH and (len(texts) > 1 or len(texts[0]) > _MIN_CHARS):
            return None
        if not response.is_success:
            raise self._server.refusal(response)
        made = read_embeddings(answer, texts=len(texts))
        found = len(made.vectors[0])
        if self.dimension not in (None, found):
            reason = f"the model server answers vectors of length {found} instead of {self.dimension}"
            raise ModelError(reason, transient=False, curable=True)
        self.dimension = found
        return made
