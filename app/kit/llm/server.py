"""The calls of one path of an OpenAI-compatible server: slots, a time limit, and retries.

A call first waits for a slot. From then on it ends within its time limit, which covers the connection, every byte of
the response, and the waits between attempts.
"""

import asyncio
import random
import re
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TypeVar

import httpx

from app.kit.clock import Clock, system_clock
from app.kit.llm.answer import ModelError, refusal
from app.kit.llm.retry import read_retry_after, wait_before_retry_s

_CONNECT_TIMEOUT_S = 10.0

# A proxy from the environment variables cannot reach servers on this machine, so requests to them bypass the proxy.
_DIRECT: dict[str, httpx.AsyncBaseTransport | None] = dict.fromkeys(
    ("all://localhost", "all://127.0.0.1", "all://[::1]")
)

_Answer = TypeVar("_Answer")


class ModelServer:
    """One path of one server.

    Args:
        base_url: The base URL as the server documents it, e.g. `http://localhost:11434/v1`. A user and password in it
            are sent as Basic authentication.
        path: Appended to the path of `base_url`.
        api_key: Sent as a bearer token; None if the server requires none.
        timeout_s: The maximum duration of a call once it has a slot. Waiting for a slot does not count, so slow
            earlier calls do not make a call fail.
        concurrency: The number of calls that run at once; further calls wait for a slot.
        max_attempts: The maximum number of attempts per call, including the first.
        max_answer_mib: The maximum size of a response.
        clock: Used to convert a Retry-After date to a delay.
        sleep: Called to wait between attempts.

    Raises ValueError if `base_url` is not an http(s) URL or `api_key` cannot be sent in a header. The message does not
    contain the value.

    """

    def __init__(
        self,
        base_url: str,
        path: str,
        *,
        api_key: str | None,
        timeout_s: float,
        concurrency: int,
        max_attempts: int,
        max_answer_mib: int,
        clock: Clock = system_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._timeout_s = timeout_s
        self._max_attempts = max_attempts
        self._max_answer_mib = max_answer_mib
        self._clock = clock
        self._sleep = sleep
        self._slots = asyncio.Semaphore(concurrency)
        url = _parse_url(base_url)
        # The user info is removed because httpx logs the URL of every request.
        self._url = url.copy_with(path=url.path.rstrip("/") + path, userinfo=b"")
        self._http = httpx.AsyncClient(
            auth=(url.username, url.password) if url.userinfo else None,
            headers=_headers(api_key),
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=concurrency),
            follow_redirects=False,  # the key must not reach another server
            mounts=_DIRECT,
            verify=_make_tls(),
        )

    async def call(self, attempt: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return what `attempt` returns; repeat it after transient errors. Raises ModelError."""
        async with self._slots:
            deadline_s = asyncio.get_running_loop().time() + self._timeout_s
            try:
                async with asyncio.timeout_at(deadline_s):
                    return await self._try_until(deadline_s, attempt)
            except TimeoutError:
                reason = f"the model did not answer within {self._timeout_s:g} s"
                raise ModelError(reason, transient=True) from None

    async def post(self, body: dict[str, object]) -> tuple[httpx.Response, bytes]:
        """Return the response, whatever its status, and its body.

        Of error responses, only the body of a 400 is read, because it can name a parameter that the server refuses.
        Raises ModelError if there is no complete response, or if its body is too long.
        """
        try:
            async with self._http.stream("POST", self._url, json=body) as response:
                wanted = response.is_success or response.status_code == 400
                return response, await self._read_body(response) if wanted else b""
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise ModelError("the model server cannot be reached", transient=True) from None
        except httpx.TransportError:  # its text may quote the request
            raise ModelError("the connection to the model server broke", transient=True) from None

    def refusal(self, response: httpx.Response) -> ModelError:
        """Return the error for a response whose status is not 2xx."""
        retry_after_s = read_retry_after(response.headers.get("Retry-After"), now=self._clock())
        return refusal(response.status_code, retry_after_s=retry_after_s)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _try_until(self, deadline_s: float, attempt: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return the answer; retry transient errors while attempts are left and the wait ends before the deadline.

        `deadline_s` is in the event loop's time.
        """
        failures = 0
        while True:
            try:
                return await attempt()
            except ModelError as error:
                failures += 1
                wait_s = wait_before_retry_s(failures, asked_s=error.retry_after_s, jitter=random.random())
                too_late = asyncio.get_running_loop().time() + wait_s >= deadline_s
                if not error.transient or too_late or failures >= self._max_attempts:
                    raise
            await self._sleep(wait_s)

    async def _read_body(self, response: httpx.Response) -> bytes:
        """Return the raw body. Raises ModelError if it is too long."""
        body = bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) > self._max_answer_mib * 2**20:
                raise ModelError(f"the model's answer is longer than {self._max_answer_mib} MiB", transient=False)
        return bytes(body)


@cache
def _make_tls() -> ssl.SSLContext:
    """Return httpx's TLS settings, which all clients share: reading the certificate authorities takes 25 ms."""
    return httpx.create_ssl_context()


def _parse_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
        is_valid = url.scheme in ("http", "https") and bool(url.host)
    except (httpx.InvalidURL, ValueError):  # a ValueError for a host that is not valid IDNA
        is_valid = False
    if not is_valid:
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
