"""What floods of hostile clients do to other clients, and to the memory of the API.

    python -m bench.floods [--seconds 8]

Contexts are requested at a steady pace, every tenth over a new connection: alone, beside each flood of `bench.flood`,
and beside the same flood of a server that drops what it gets (`bench.sink`), because on few cores a flood takes
processor time from every process.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import httpx
import psutil

from app.local.stack import Stack
from bench.flood import FLOODS
from bench.lines import IDLE
from bench.processes import process_of, running_server, say
from bench.stage import make_key, serving

PER_SECOND = 50
NEW_EACH = 10
"""Every tenth request opens a connection."""

MESSAGES = 200
BEGIN_S, PAUSE_S, SAMPLE_S = 1.0, 2.0, 0.05
_MB = 1e6
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What other clients and the process were like for a time: milliseconds, bytes."""

    p95_ms: float
    failed: int
    rss_bytes: int


class Reader:
    """A client that reads contexts, one after the other, from the times at which they should begin."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port, self._request = port, request
        self._latencies_ms: list[float] = []
        self._failed = 0
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def read(self, seconds: float) -> tuple[Sequence[float], int]:
        """Return the latencies of the requests that began in the next seconds, and the number of those that failed."""
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        async with asyncio.TaskGroup() as group:
            for number in range(int(seconds * PER_SECOND)):
                at_s = begin_s + number / PER_SECOND
                await asyncio.sleep(max(0.0, at_s - loop.time()))
                group.create_task(self._one(at_s, opens=number % NEW_EACH == 0))
        for _, writer in self._idle:
            writer.close()
        return self._latencies_ms, self._failed

    async def _one(self, at_s: float, *, opens: bool) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._ask(opens=opens)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            self._failed += 1
        self._latencies_ms.append(1e3 * (asyncio.get_running_loop().time() - at_s))

    async def _ask(self, *, opens: bool) -> None:
        kept = None if opens or not self._idle else self._idle.pop()
        reader, writer = kept or await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(head)
        length = re.search(rb"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        if opens:
            writer.close()
        else:
            self._idle.append((reader, writer))


async def _measure(process: psutil.Process, reader: Reader, seconds: float) -> Measured:
    most = 0

    async def sample() -> None:
        nonlocal most
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(SAMPLE_S)

    sampling = asyncio.create_task(sample())
    try:
        latencies_ms, failed = await reader.read(seconds)
    finally:
        sampling.cancel()
    return Measured(quantiles(latencies_ms, n=20)[-1], failed, most)


async def _beside(name: str, port: int, asset: str, process: psutil.Process, reader: Reader, s: float) -> Measured:
    flooding = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.flood", name, str(port), str(s + BEGIN_S), asset),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        await asyncio.sleep(BEGIN_S)
        found = await _measure(process, reader, s)
        sent = json.loads((await flooding.communicate())[0])
        say(f"  sent {sent['bytes'] / 1e9:.1f} GB over {sent['connections']:,} connections")
    finally:
        with suppress(ProcessLookupError):
            flooding.kill()
    await asyncio.sleep(PAUSE_S)
    return found


async def _prepare(stack: Stack) -> tuple[bytes, str]:
    """Return the request for the context of a new chat, and the path of a file of `/docs`."""
    key = await make_key(stack)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=stack.url, headers=headers, timeout=_TIMEOUT_S) as client:
        said = [
            {
                "id": f"m{number}",
                "role": ("assistant", "user")[number % 2],
                "content": f"The lamp is lit, {number}. " * 9,
            }
            for number in range(MESSAGES)
        ]
        (await client.post("/v1/chats/flooded/messages", json={"messages": said})).raise_for_status()
        page = (await client.get("/docs")).text
    asset = re.search(r'src="([^"]+bundle\.js)"', page)
    if asset is None:
        raise LookupError("/docs names no script")
    request = f"GET /v1/chats/flooded/context HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"
    return request.encode(), f"/{asset[1].lstrip('/')}"


async def main(data: Path, seconds: float) -> None:
    """Measure all floods, and print the table."""
    async with serving(data, IDLE) as stack, running_server(stack.directory, "sink", environment={}) as sink:
        request, asset = await _prepare(stack)
        port, process = int(stack.url.rpartition(":")[2]), process_of(stack.directory, "api")
        await _measure(process, Reader(port, request), 2.0)
        print("| flood | RSS | p95 alone | beside the flood of a sink | beside the flood | × sink | failed |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, flood in FLOODS.items():
            say(flood.label)
            before = process.memory_info().rss
            alone = await _measure(process, Reader(port, request), seconds / 2)
            dropped = await _beside(name, sink, asset, process, Reader(port, request), seconds)
            flooded = await _beside(name, port, asset, process, Reader(port, request), seconds)
            print(
                f"| {flood.label} | +{(flooded.rss_bytes - before) / _MB:.0f} MB | {alone.p95_ms:.1f} ms"
                f" | {dropped.p95_ms:.1f} ms | {flooded.p95_ms:.1f} ms | **{flooded.p95_ms / dropped.p95_ms:.1f}**"
                f" | {flooded.failed} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="the duration of each measurement")
    with tempfile.TemporaryDirectory(prefix="memobook-bench-") as directory:
        asyncio.run(main(Path(directory) / "data", parser.parse_args().seconds))
