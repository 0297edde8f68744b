"""A scripted model server: OpenAI's chat completions on loopback, over real HTTP.

    async with ScriptedModel() as model:
        model.script(refuses(429, retry_after="1"), "【Highlight 1】: Kai gave her the key.")
        gate = model.hold()
        ...                     # something calls the model at model.base_url
        await gate.reached()    # now it waits for the answer
        gate.release()

Each call takes one step of the script, in the order of arrival, and `model.otherwise` after the last; the
default is a memo that quotes from the request. As a process of its own: `python -m tests.scripted_model`.
"""

import argparse
import asyncio
import contextlib
import json
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http.client import responses
from typing import Any, Self

from tests.slowness import SLOWNESS

PATIENCE_S = 60.0 * SLOWNESS
"""How long a test waits for a call before it fails."""

Request = dict[str, Any]
"""The JSON body of a call."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes over the wire. `replace(says("…"), cut_at=9)` spoils another reply.

    Attributes:
        status: None closes the connection without a word.
        body: As it is sent; its full length is announced.
        headers: Beside Content-Length and Connection.
        cut_at: Close after so many bytes of the body.
        byte_every_s: Send the body byte by byte, so long apart.

    """

    status: int | None = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    byte_every_s: float | None = None


Step = str | Reply | Callable[[Request], str | Reply]
"""One call's part: the text of the answer, a whole reply, or either as a function of the request."""

HANG_UP = Reply(status=None)


def says(text: Any, *, finish_reason: str = "stop", **message: Any) -> Reply:
    """A completion; `text` is the message's content, `message` its further fields."""
    message = {"role": "assistant", "content": text, **message}
    answer = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
    }
    return sends(json.dumps(answer).encode(), "application/json")


def sends(body: bytes, content_type: str = "text/html") -> Reply:
    """Any bytes with a 200."""
    return Reply(body=body, headers={"Content-Type": content_type})


def refuses(status: int, *, retry_after: str | None = None, message: str = "no", **error: Any) -> Reply:
    """An error as OpenAI words it; `error` are its further fields, such as `code` and `param`."""
    headers = {"Content-Type": "application/json"} | ({"Retry-After": retry_after} if retry_after else {})
    return Reply(status, json.dumps({"error": {"message": message, **error}}).encode(), headers)


def quoting_memo(request: Request) -> str:
    """Two highlights that quote the two longest texts of the request's last message, in their order."""
    content = str(request["messages"][-1]["content"])
    quoted = [json.loads(text) for text in re.findall(r'"message": ?("(?:[^"\\]|\\.)*")', content)]
    lines = [line for line in quoted or content.splitlines() if line.strip()]
    longest = sorted(sorted(range(len(lines)), key=lambda at: (-len(lines[at]), at))[:2])
    return "\n".join(
        f"【Highlight {number}】: (milestone) One of them said “{' '.join(lines[at].split()[:16])[:200]}”."
        for number, at in enumerate(longest, start=1)
    )


class Tally:
    """A number that only grows, and can be waited for."""

    def __init__(self) -> None:
        self._count = 0
        self._grown = asyncio.Event()

    @property
    def count(self) -> int:
        """The number."""
        return self._count

    def add(self) -> None:
        self._count += 1
        self._grown.set()
        self._grown = asyncio.Event()

    async def reaches(self, count: int) -> None:
        """Wait until the number is at least `count`. Raises TimeoutError after PATIENCE_S."""
        async with asyncio.timeout(PATIENCE_S):
            while self._count < count:
                await self._grown.wait()


class Gate:
    """Holds calls back before they are answered."""

    def __init__(self, calls: int | None) -> None:
        self._free = calls
        self._open = asyncio.Event()
        self._arrived = Tally()
        self._answered = Tally()

    async def reached(self, calls: int = 1) -> None:
        """Wait until `calls` calls have come to the gate."""
        await self._arrived.reaches(calls)

    def release(self) -> None:
        """Let them be answered, and all later ones pass."""
        self._open.set()

    async def answered(self, calls: int = 1) -> None:
        """Wait until `calls` of the calls that were held have been sent their reply."""
        await self._answered.reaches(calls)

    def admits(self) -> bool:
        """Whether the next call has to wait here; if so, its place is taken."""
        if self._open.is_set() or self._free == 0:
            return False
        if self._free is not None:
            self._free -= 1
        return True

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """A call waits at the gate, then is answered in the block."""
        self._arrived.add()
        await self._open.wait()
        yield
        self._answered.add()


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it came in. Names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Request


class ScriptedModel:
    """The server; it listens from `async with` on.

    Attributes:
        calls: Every call so far, in the order of arrival.
        otherwise: The step of a call for which the script has none.
        active, peak: How many calls are being served now, and at most were at once.

    """

    def __init__(self, *, port: int = 0, delay_s: float = 0.0) -> None:
        self.calls: list[Call] = []
        self.otherwise: Step = quoting_memo
        self.active = 0
        self.peak = 0
        self._port = port
        self._delay_s = delay_s
        self._steps: deque[Step] = deque()
        self._gates: list[Gate] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[Request]:
        """The JSON bodies of the calls."""
        return [call.body for call in self.calls]

    @property
    def questions(self) -> list[str]:
        """The last message of each call."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def script(self, *steps: Step) -> None:
        """Add steps for the next calls, one each."""
        self._steps.extend(steps)

    def hold(self, calls: int | None = None) -> Gate:
        """Hold the next `calls` calls back, or all, until the gate is released."""
        gate = Gate(calls)
        self._gates.append(gate)
        return gate

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        for end in ends:
            if isinstance(end, Exception):  # a fault in a step fails the test that wrote it
                raise end

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call on one connection. A caller who leaves before the answer ends it."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            call = await _receive(reader)
            self.calls.append(call)
            answering = asyncio.create_task(self._answer(call, writer))
            leaving = asyncio.create_task(reader.read(1))
            try:
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
            finally:
                answering.cancel()
                leaving.cancel()
                await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> None:
        self.active += 1
        self.peak = max(self.peak, self.active)
        step = self._steps.popleft() if self._steps else self.otherwise
        gate = next((gate for gate in self._gates if gate.admits()), None)
        try:
            await asyncio.sleep(self._delay_s)
            async with gate.held() if gate else contextlib.nullcontext():
                made = step(call.body) if callable(step) else step
                await _send(says(made) if isinstance(made, str) else made, writer)
        finally:
            self.active -= 1


async def _receive(reader: asyncio.StreamReader) -> Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.rstrip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Call(path=request_line.split()[1], headers=headers, body=json.loads(body))


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    if reply.status is None:
        return
    headers = {**reply.headers, "Content-Length": str(len(reply.body)), "Connection": "close"}
    lines = (f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}\r\n{''.join(lines)}\r\n"
    writer.write(head.encode("latin-1"))
    body = reply.body[: reply.cut_at]
    if reply.byte_every_s is None:
        writer.write(body)
    else:
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(reply.byte_every_s)
    await writer.drain()


async def _serve_until_killed(port: int, *, delay_s: float, hang: bool) -> None:
    async with ScriptedModel(port=port, delay_s=delay_s) as model:
        if hang:
            model.hold()
        sys.stdout.write(f"{model.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model server; prints its base URL once it listens.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="before each answer")
    parser.add_argument("--hang", action="store_true", help="never answer")
    asked = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_until_killed(asked.port, delay_s=asked.delay_ms / 1_000, hang=asked.hang))


if __name__ == "__main__":
    main()
