"""A model client that counts its calls for one tenant and layer."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.llm.client import ChatMessage, Completion, LanguageModel, ModelError
from app.kit.llm.request_settings import RequestSettings
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from app.kit.usage import MAX_CALL_TOKENS, ModelCall, count_or_warn


class MeteredModel:
    """A wrapper around a model that counts every completed call, including failed ones.

    A call that the client retries by itself, such as after a 503, counts as one call with its total waiting time. A
    failed call counts the tokens that the server reports, because an answer without text is billed too. If the server
    reports none, the failed call counts as zero tokens, so that an outage of the model does not use up the month's
    limit. A call that is cancelled, for example because the worker stops, is not counted. If counting fails, a warning
    is logged and the answer is returned all the same.

    Args:
        model: The model to call.
        database: Where calls are counted, each in its own statement.
        clock: Determines the month.
        tenant: The tenant to count for.
        layer: The layer to count for.

    Attributes:
        has_answered: Whether any call has returned an answer.

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
        """The size of the model's context window, prompt and answer together."""
        return self._model.context_tokens

    @property
    def settings(self) -> RequestSettings:
        """The deployment's settings for requests."""
        return self._model.settings

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float | None = None
    ) -> Completion:
        """Return the model's answer and count the call. Raises ModelError."""
        asked_at, asked_s = self._clock(), _loop_s()
        try:
            answer = await self._model.complete(messages, max_tokens=max_tokens, temperature=temperature)
        except ModelError as error:
            tokens = _capped(error.prompt_tokens), _capped(error.completion_tokens)
            await self._count(asked_at, _loop_s() - asked_s, tokens, failed=True)
            raise
        self.has_answered = True
        tokens = _prompt_tokens(messages, answer), _completion_tokens(answer)
        await self._count(asked_at, _loop_s() - asked_s, tokens, failed=False)
        return answer

    async def _count(self, asked_at: datetime, wait_s: float, tokens: tuple[int, int], *, failed: bool) -> None:
        """Count a call; `tokens` are those of the prompt and of the answer."""
        call = ModelCall(
            tenant=self._tenant,
            layer=self._layer,
            asked_at=asked_at,
            failed=failed,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            wait_ms=round(wait_s * 1_000),
        )
        await count_or_warn(self._database, call)


def _prompt_tokens(messages: Sequence[ChatMessage], answer: Completion) -> int:
    """Return the server's count, or our own if the server returns none, so that limits apply in any case."""
    if answer.prompt_tokens is None:
        return sum(MESSAGE_OVERHEAD_TOKENS + count_tokens(message["content"]) for message in messages)
    return _capped(answer.prompt_tokens)


def _completion_tokens(answer: Completion) -> int:
    """Return the tokens of the answer, counted like those of the prompt."""
    return count_tokens(answer.text) if answer.completion_tokens is None else _capped(answer.completion_tokens)


def _capped(tokens: int | None) -> int:
    return min(tokens or 0, MAX_CALL_TOKENS)


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
