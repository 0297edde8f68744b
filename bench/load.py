"""The load: a process of its own that sends prepared requests over kept connections, as fast or as often as asked.

It reads one `Plan` a line from its standard input and answers each with one `Outcome` a line, both JSON, so that
one process serves all runs. Requests are bytes before the clock starts, an answer is parsed by httptools, and
nothing is kept of it but its status and its time: the load has to be much cheaper than what it measures.

A run is bounded by its seconds or by its number of requests, and by a deadline in either case.
"""

import asyncio
import itertools
import json
import math
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import httptools
import uvloop

MARK = b"########"
"""Replaced by a new number in every request, so that no two bodies are the same."""

_DEADLINE_S = 30.0
"""What a run may take beyond its own seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        port: Of the server on loopback.
        requests: Whole HTTP requests. Connection n of c begins at the n-th and takes every c-th of them,
            so no two connections share one as long as there are enough.
        connections: How many are kept open, one request at a time on each.
        warm_s: What is not counted at the beginning.
        measure_s: What is counted after it.
        limit: End after so many requests of a connection.
        per_second: How many requests a second are begun on all connections together; None is as many as can be.

    """

    port: int
    requests: Sequence[str]
    connections: int = 1
    warm_s: float = 0.0
    measure_s: float = _DEADLINE_S
    limit: int | None = None
    per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run found.

    Attributes:
        sent: Requests, warming up included.
        count: Answers within the time that counts.
        per_second: The same by the second.
        p50_ms, p95_ms, p99_ms: Their latencies, from when the request should have begun.
        refused: Answers of any status but 200 and 201, warming up included.
        body_bytes: The mean size of a body.
        busy: The part of a core that the load itself took.

    """

    sent: int
    count: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    refused: int
    body_bytes: float
    busy: float


class Run:
    """What the connections of one run share: the clock, the numbers, what was measured."""

    def __init__(self, plan: Plan) -> None:
        self.began_at = time.perf_counter()
        self.counts_from = self.began_at + plan.warm_s
        self.ends_at = self.counts_from + plan.measure_s
        self.every_s = plan.connections / plan.per_second if plan.per_second else 0.0
        self.limit = sys.maxsize if plan.limit is None else plan.limit
        self.numbers = itertools.count(1)
        self.latencies_s = array("d")
        self.last_at = self.counts_from
        self.refused = 0
        self.body_bytes = 0

    def answered(self, begun_at: float, now: float, status: int) -> None:
        """Take down one answer."""
        self.refused += status not in (200, 201)
        if self.counts_from <= now <= self.ends_at:
            self.latencies_s.append(now - begun_at)
            self.last_at = now

    def outcome(self, busy_s: float) -> Outcome:
        """What the run found, after the last connection has ended."""
        ordered = sorted(self.latencies_s)
        took_s = max(self.last_at - self.counts_from, 1e-9)
        sent = next(self.numbers) - 1
        return Outcome(
            sent=sent,
            count=len(ordered),
            per_second=len(ordered) / took_s,
            p50_ms=1000 * percentile(ordered, 50),
            p95_ms=1000 * percentile(ordered, 95),
            p99_ms=1000 * percentile(ordered, 99),
            refused=self.refused,
            body_bytes=self.body_bytes / max(1, sent),
            busy=busy_s / (time.perf_counter() - self.began_at),
        )


class Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next request. `ended` tells when it has done its part."""

    def __init__(self, run: Run, requests: Iterator[bytes], first_at: float) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self._run = run
        self._requests = requests
        self._due_at = first_at
        self._left = run.limit
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._wait_or_send()

    def data_received(self, data: bytes) -> None:
        """Hand what has come to the parser."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Count a piece of a body."""
        self._run.body_bytes += len(body)

    def on_message_complete(self) -> None:
        """Take down the answer and go on."""
        now = time.perf_counter()
        self._run.answered(self._begun_at, now, self._parser.get_status_code())
        self._left -= 1
        if now >= self._run.ends_at or self._left == 0:
            self._transport.close()
        else:
            self._wait_or_send()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; that the server closed it in the middle of a run is an error."""
        if exc is not None or (self._left > 0 and time.perf_counter() < self._run.ends_at):
            self.ended.set_exception(exc or ConnectionError("the server closed a connection"))
        else:
            self.ended.set_result(None)

    def _wait_or_send(self) -> None:
        """Send when the next request is due; one that is late already counts from when it was."""
        if not self._run.every_s:
            self._send(time.perf_counter())
        elif (wait_s := self._due_at - time.perf_counter()) > 0:
            asyncio.get_running_loop().call_later(wait_s, self._send)
        else:
            self._send(self._due_at)

    def _send(self, begun_at: float | None = None) -> None:
        self._begun_at = time.perf_counter() if begun_at is None else begun_at
        self._due_at += self._run.every_s
        number = b"%08d" % next(self._run.numbers)
        self._transport.write(next(self._requests).replace(MARK, number))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest of `ordered` (ascending) that `percent` of them do not exceed; nan if there are none."""
    if not ordered:
        return float("nan")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


async def carry_out(plan: Plan) -> Outcome:
    """Carry out a plan. Raises OSError if a connection breaks, TimeoutError past the deadline."""
    requests = [request.encode() for request in plan.requests]
    busy_s = time.process_time()
    run = Run(plan)
    loop = asyncio.get_running_loop()
    connections = []
    async with asyncio.timeout(plan.warm_s + plan.measure_s + _DEADLINE_S):
        for nth in range(plan.connections):
            own = itertools.cycle(requests[nth % len(requests) :: plan.connections])
            make = partial(Connection, run, own, run.began_at + nth * run.every_s / plan.connections)
            _, connection = await loop.create_connection(make, "127.0.0.1", plan.port)
            connections.append(connection.ended)
        await asyncio.gather(*connections)
    return run.outcome(time.process_time() - busy_s)


def main() -> None:
    """Carry out plans until the standard input ends."""
    for line in sys.stdin:
        outcome = uvloop.run(carry_out(Plan(**json.loads(line))))
        sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
