"""A model whose calls are counted for one tenant and layer."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.errors import Unavailable
from app.kit.llm import ChatMessage, Completion, LanguageModel, ModelError
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from app.kit.usage import ModelCall, count_call

log = logging.getLogger(__name__)

_MOST_TOKENS = 2**31 - 1
"""No call takes more; a server that says so must not make the sum of all calls too large to be kept."""


class MeteredModel:
    """The same model; every call that ends is counted, whether it brought something or not.

    What the client tries again by itself, as after a 503, is one call, with all of its waiting time.
    A failed call counts the tokens that the server tells of: an answer without text is paid for too. Where it tells
    nothing they count as none, for a day without a model must not use up the month.
    One that is given up, as by a worker that is told to stop, is not counted, as it is no attempt either.
    What cannot be counted is logged and costs nobody the answer.

    Args:
        model: Whom to ask.
        database: Where to count, each time in a statement of its own.
        clock: Says which month it is.
        tenant: For whom the model is asked.
        layer: For what.

    Attributes:
        has_answered: Whether any call has brought an answer.

    """

    def __init__(self, model: LanguageModel, database: Database, clock: Clock, *, tenant: str, layer: str) -> None:
        self._model = model
        self._database = database
        self._clock = clock
        self._tenant = tenant
        self._layer = layer
        self.has_answered = False

    @property
    def context_tokens(self) -> int:
        """What the model takes, prompt and answer together."""
        return self._model.context_tokens

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float | None = None
    ) -> Completion:
        """Let the model answer, and count it. Raises ModelError."""
        asked_at, asked_s = self._clock(), _loop_s()
        try:
            answer = await self._model.complete(messages, max_tokens=max_tokens, temperature=temperature)
        except ModelError as error:
            tokens = _told(error.prompt_tokens), _told(error.completion_tokens)
            await self._count(asked_at, _loop_s() - asked_s, tokens, failed=True)
            raise
        self.has_answered = True
        tokens = _prompt_tokens(messages, answer), _completion_tokens(answer)
        await self._count(asked_at, _loop_s() - asked_s, tokens, failed=False)
        return answer

    async def _count(self, asked_at: datetime, wait_s: float, tokens: tuple[int, int], *, failed: bool) -> None:
        """Count a call that took so many tokens, of the prompt and of the answer."""
        call = ModelCall(
            tenant=self._tenant,
            layer=self._layer,
            asked_at=asked_at,
            failed=failed,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            wait_ms=round(wait_s * 1_000),
        )
        try:
            async with self._database.raw() as connection:
                await count_call(connection, call)
        except (Unavailable, asyncpg.PostgresError) as error:
            log.warning("a call of the model for %s was not counted: %s", self._layer, error)


def _prompt_tokens(messages: Sequence[ChatMessage], answer: Completion) -> int:
    """As the server counts them; where it doesn't, our own count, so that a limit means something there too."""
    if answer.prompt_tokens is None:
        return sum(MESSAGE_OVERHEAD_TOKENS + count_tokens(message["content"]) for message in messages)
    return _told(answer.prompt_tokens)


def _completion_tokens(answer: Completion) -> int:
    """Likewise."""
    return count_tokens(answer.text) if answer.completion_tokens is None else _told(answer.completion_tokens)


def _told(tokens: int | None) -> int:
    return min(tokens or 0, _MOST_TOKENS)


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
