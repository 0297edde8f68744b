"""A client for language models behind an OpenAI-compatible `POST /chat/completions`.

A call always ends within its time limit, which covers the connection, every byte of the response, and the waits between
attempts.
"""

import asyncio
import random
import re
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Literal, NamedTuple, Protocol, TypedDict

import httpx

from app.kit.clock import Clock, system_clock
from app.kit.llm.answer import Completion, ModelError, read_completion, refusal, refused_parameter
from app.kit.llm.request_settings import RequestSettings
from app.kit.llm.retry import read_retry_after, wait_before_retry_s

__all__ = ["MAX_ANSWER_BYTES", "ChatMessage", "Completion", "LanguageModel", "ModelClient", "ModelError"]

MAX_ANSWER_BYTES = 1_048_576
_CONNECT_TIMEOUT_S = 10.0

# A proxy from the environment cannot reach servers on this machine.
_DIRECT: dict[str, httpx.AsyncBaseTransport | None] = dict.fromkeys(
    ("all://localhost", "all://127.0.0.1", "all://[::1]")
)

_SOMETIMES_REFUSED = ("max_tokens", "temperature")
"""Parameters that newer models reject: the first has another name there, the second cannot be set."""


class ChatMessage(TypedDict):
    """A message of a request to the model."""

    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModel(Protocol):
    """The interface that jobs use: a model client, or one whose calls are counted (`kit/llm/metered.py`)."""

    @property
    def context_tokens(self) -> int:
        """The size of the model's context window, prompt and answer together."""
        ...

    @property
    def settings(self) -> RequestSettings:
        """What the deployment sets for requests. Its `max_tokens` and `temperature` replace those of the caller."""
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
        settings: What the deployment sets for requests. The client itself applies its `model` and `extra_body`.
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
        self._clock = clock
        self._sleep = sleep
        self._slots = asyncio.Semaphore(concurrency)
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        url = _parse_url(base_url)
        # The user info is removed because httpx logs the URL of every request.
        self._url = url.copy_with(path=url.path.rstrip("/") + "/chat/completions", userinfo=b"")
        self._http = httpx.AsyncClient(
            auth=(url.username, url.password) if url.userinfo else None,
            headers=_headers(api_key),
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=concurrency),
            follow_redirects=False,  # the key must not reach another server
            mounts=_DIRECT,
            verify=_make_tls(),
        )

    def with_settings(self, settings: RequestSettings) -> "ModelClient":
        """Return a client that adds `settings` to these. Both share connections and slots; close only this one."""
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
        async with self._slots:
            deadline_s = asyncio.get_running_loop().time() + self.timeout_s
            try:
                async with asyncio.timeout_at(deadline_s):
                    return await self._try_until(deadline_s, request)
            except TimeoutError:
                reason = f"the model did not answer within {self.timeout_s:g} s"
                raise ModelError(reason, transient=True) from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _try_until(self, deadline_s: float, request: "_Request") -> Completion:
        """Return the answer; retry transient errors while attempts are left and the wait ends before the deadline.

        `deadline_s` is in the event loop's time.
        """
        failures = 0
        while True:
            try:
                return await self._ask(request)
            except ModelError as error:
                failures += 1
                wait_s = wait_before_retry_s(failures, asked_s=error.retry_after_s, jitter=random.random())
                too_late = asyncio.get_running_loop().time() + wait_s >= deadline_s
                if not error.transient or too_late or failures >= self.max_attempts:
                    raise
            await self._sleep(wait_s)

    async def _ask(self, request: "_Request") -> Completion:
        """Make one attempt. If the model rejects a parameter, adapt the request and remember that for later calls."""
        while True:
            body = request.body(self._refused[request.model])
            response, answer = await self._post(body)
            if response.is_success:
                return read_completion(answer, asked_model=request.model)
            parameter = refused_parameter(answer)
            if parameter not in _SOMETIMES_REFUSED or parameter not in body:
                retry_after_s = read_retry_after(response.headers.get("Retry-After"), now=self._clock())
                raise refusal(response.status_code, retry_after_s=retry_after_s)
            self._refused[request.model].add(parameter)

    async def _post(self, body: dict[str, object]) -> tuple[httpx.Response, bytes]:
        """Return the response and its body. The body of an error is only read for a 400, which it explains."""
        try:
            async with self._http.stream("POST", self._url, json=body) as response:
                wanted = response.is_success or response.status_code == 400
                return response, await _read_body(response) if wanted else b""
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise ModelError("the model server cannot be reached", transient=True) from None
        except httpx.TransportError:  # its text may quote the request
            raise ModelError("the connection to the model server broke", transient=True) from None


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


async def _read_body(response: httpx.Response) -> bytes:
    """Return the raw body. Raises ModelError if it exceeds MAX_ANSWER_BYTES."""
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise ModelError("the model's answer is longer than 1 MiB", transient=False)
    return bytes(body)


@cache
def _make_tls() -> ssl.SSLContext:
    """Return httpx's TLS settings, which all clients share: reading the certificate authorities takes 25 ms."""
    return httpx.create_ssl_context()


def _parse_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the model's base URL is not a valid http(s) URL")
    return url


def _headers(api_key: str | None) -> dict[str, str]:
    # No compression: a response of a few kilobytes must not exceed the limit once it is decompressed.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    key = (api_key or "").strip()  # a key that was read from a file ends with a newline
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise ValueError("the model's API key has characters that are not allowed in a header")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers
