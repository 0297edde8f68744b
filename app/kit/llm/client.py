"""A client for language models behind an OpenAI-compatible `POST /chat/completions`."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from typing import Literal, NamedTuple, Protocol, TypedDict

from app.kit.clock import Clock, system_clock
from app.kit.llm.answer import Completion, ModelError, read_completion, refused_parameter
from app.kit.llm.request_settings import RequestSettings
from app.kit.llm.server import ModelServer

__all__ = ["MAX_ANSWER_MIB", "ChatMessage", "Completion", "LanguageModel", "ModelClient", "ModelError"]

MAX_ANSWER_MIB = 1

_SOMETIMES_REFUSED = ("max_tokens", "temperature")
"""Parameters that newer models reject: the first has another name there, the second cannot be set."""


class ChatMessage(TypedDict):
    """A message of a request to the model."""

    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModel(Protocol):
    """The interface that jobs use: a model client, or a wrapper that counts its calls (`kit/llm/metered.py`)."""

    @property
    def context_tokens(self) -> int:
        """The size of the model's context window, prompt and answer together."""
        ...

    @property
    def settings(self) -> RequestSettings:
        """The deployment's settings for requests.

        `complete` does not apply their `max_tokens` and `temperature`: its callers do (`layers/ask.py`).
        """
        ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float | None = None
    ) -> Completion:
        """Return the model's answer to `messages`, at most `max_tokens` long. Raises ModelError."""
        ...


class ModelClient:
    """A client for one model on one server. Create one per process: `concurrency` applies to each client separately.

    Args:
        base_url: The base URL as the server documents it, e.g. `http://localhost:11434/v1`; `/chat/completions` is
            appended to its path. A user and password in it are sent as Basic authentication.
        model: The model's name on that server.
        api_key: Sent as a bearer token; None if the server requires none.
        timeout_s: The maximum duration of a call once it has a slot. Waiting for a slot does not count, so slow
            earlier calls do not make a call fail.
        concurrency: The number of calls that run at once; further calls wait for a slot.
        max_attempts: The maximum number of attempts per call, including the first.
        context_tokens: The size of the model's context window, prompt and answer together. The client does not check
            it; callers fit their prompts to it.
        settings: The deployment's settings for requests. The client itself applies their `model` and `extra_body`.
        clock: Used to convert a Retry-After date to a delay.
        sleep: Called to wait between attempts.

    Raises ValueError if `base_url` is not an http(s) URL or `api_key` cannot be sent in a header. The message does not
    contain the value.

    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        concurrency: int = 4,
        max_attempts: int = 3,
        context_tokens: int = 16_384,
        settings: RequestSettings | None = None,
        clock: Clock = system_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self.concurrency = concurrency
        self.max_attempts = max_attempts
        self.context_tokens = context_tokens
        self.settings = settings or RequestSettings()
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        self._server = ModelServer(
            base_url,
            "/chat/completions",
            api_key=api_key,
            timeout_s=timeout_s,
            concurrency=concurrency,
            max_attempts=max_attempts,
            max_answer_mib=MAX_ANSWER_MIB,
            clock=clock,
            sleep=sleep,
        )

    def with_settings(self, settings: RequestSettings) -> "ModelClient":
        """Return a client with this client's settings, overridden by those that are set in `settings`.

        The returned client uses the connections and slots of this one; close only this one.
        """
        client = copy(self)
        client.settings = self.settings.merge(settings)
        return client

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float | None = None
    ) -> Completion:
        """Return the model's answer to `messages`, at most `max_tokens` long. Raises ModelError."""
        request = _Request(
            self.settings.model or self.model, messages, max_tokens, temperature, self.settings.extra_body
        )
        return await self._server.call(lambda: self._ask(request))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._server.aclose()

    async def _ask(self, request: "_Request") -> Completion:
        """Make one attempt. If the model rejects a parameter, adapt the request and remember that for later calls."""
        while True:
            body = request.body(self._refused[request.model])
            response, answer = await self._server.post(body)
            if response.is_success:
                return read_completion(answer, asked_model=request.model)
            parameter = refused_parameter(answer)
            if parameter not in _SOMETIMES_REFUSED or parameter not in body:
                raise self._server.refusal(response)
            self._refused[request.model].add(parameter)


class _Request(NamedTuple):
    model: str
    messages: Sequence[ChatMessage]
    max_tokens: int
    temperature: float | None
    extra_body: Mapping[str, object]

    def body(self, refused: set[str]) -> dict[str, object]:
        """Return the request body. If in `refused`, `max_tokens` gets its newer name and `temperature` is omitted."""
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        body = {**self.extra_body, "model": self.model, "messages": list(self.messages), limit: self.max_tokens}
        if self.temperature is not None and "temperature" not in refused:
            body["temperature"] = self.temperature
        return body
